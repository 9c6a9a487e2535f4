package artifact

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// joined returns the bytes of all parts.
func (r *rig) joined(path string) []byte {
	r.Helper()
	names, _, err := partNames(path)
	r.must(err)
	var all []byte
	for _, n := range names {
		all = append(all, r.read(n)...)
	}
	return all
}

func TestParts(t *testing.T) {
	r := newRig(t)
	b := r.documented(r.builder("v1.34.4", amd64))
	whole := r.read(r.write(b, "whole.tar", Options{}))
	for _, split := range []int64{100, block, 1000, 1 << 12, 1 << 14, int64(len(whole)) - 1, int64(len(whole)), 1 << 20} {
		path := r.write(b, fmt.Sprintf("split-%d.tar", split), Options{Split: split})
		if !bytes.Equal(r.joined(path), whole) {
			t.Errorf("%d: the parts together are not the whole", split)
		}
		want := (len(whole) + int(split) - 1) / int(split)
		if found, err := filepath.Glob(path + "*"); err != nil || len(found) != want {
			t.Errorf("%d: %d files instead of %d", split, len(found), want)
		}
		for _, name := range []string{path, path + ".001", partName(path, want)} {
			f := r.open(name)
			if err := f.Verify(t.Context(), nil, nil); err != nil || f.Path != path {
				t.Errorf("%s: %s, %v", name, f.Path, err)
			}
		}
		if changed, err := b.Write(t.Context(), path, Options{Split: split}); err != nil || changed {
			t.Errorf("%d: written again: %v, %v", split, changed, err)
		}
	}
	if _, err := b.Write(t.Context(), filepath.Join(r.dir, "x.tar"), Options{Split: 10}); err == nil ||
		!strings.Contains(err.Error(), "make at most 999 parts, of at least ") {
		t.Error(err)
	}
}

// What an earlier file of the name has left is removed, and nothing else.
func TestEarlierParts(t *testing.T) {
	r := newRig(t)
	b := r.builder("v1.34.4", amd64)
	names := func() []string {
		found, err := filepath.Glob(filepath.Join(r.dir, "out.tar*"))
		r.must(err)
		for i := range found {
			found[i] = strings.TrimPrefix(found[i], filepath.Join(r.dir, "out.tar"))
		}
		return found
	}
	path := r.write(b, "out.tar", Options{Split: 4096})
	many := names()
	r.file("out.tar.900.part", "of a write that was killed")
	size := int64(len(r.joined(path)))
	r.write(b, "out.tar", Options{Split: size/2 + 1})
	if got := names(); !slices.Equal(got, []string{".001", ".002"}) || len(many) < 4 {
		t.Error(many, got)
	}
	r.write(b, "out.tar", Options{})
	if got := names(); !slices.Equal(got, []string{""}) {
		t.Error(got)
	}
	r.write(b, "out.tar", Options{Split: size/2 + 1})
	if got := names(); !slices.Equal(got, []string{".001", ".002"}) {
		t.Error(got)
	}
	r.file("other.tar.001", "of the user")
	r.write(b, "other.tar", Options{})
	if got := string(r.read(filepath.Join(r.dir, "other.tar.001"))); got != "of the user" {
		t.Error(got)
	}
}

func TestWrongParts(t *testing.T) {
	r := newRig(t)
	b := r.builder("v1.34.4", amd64)
	write := func() (string, int) {
		path := r.write(b, "out.tar", Options{Split: 4096})
		names, _, err := partNames(path)
		r.must(err)
		return path, len(names)
	}
	swap := func(a, b string) {
		r.must(os.Rename(a, a+".x"))
		r.must(os.Rename(b, a))
		r.must(os.Rename(a+".x", b))
	}
	cut := func(name string) { r.must(os.Truncate(name, 100)) }
	for _, c := range []struct {
		name  string
		spoil func(path string, n int)
		want  string // N is the number of parts
	}{
		{"first missing", func(p string, _ int) { r.must(os.Remove(partName(p, 1))) }, "no such file or directory"},
		{"one missing", func(p string, _ int) { r.must(os.Remove(partName(p, 3))) }, "the part out.tar.003 is missing"},
		{"last missing", func(p string, n int) { r.must(os.Remove(partName(p, n))) }, "the part out.tar.N is missing"},
		{"one cut off", func(p string, _ int) { cut(partName(p, 2)) },
			"the part out.tar.002 has 100 bytes, and out.tar.001 has 4096"},
		{"first cut off", func(p string, _ int) { cut(partName(p, 1)) },
			"the part out.tar.002 has 4096 bytes, and out.tar.001 has 100"},
		{"last cut off", func(p string, n int) { cut(partName(p, n)) }, "the part out.tar.N is cut off"},
		{"out of order", func(p string, n int) { swap(partName(p, n-1), partName(p, n-2)) },
			"the part out.tar.N is in another place than it belongs"},
		{"of a longer split", func(p string, n int) {
			r.must(os.WriteFile(partName(p, n+1), r.read(partName(p, 2)), 0o644))
		}, "the part out.tar.O is of another split: delete it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, n := write()
			c.spoil(path, n)
			_, err := Open(path)
			want := c.want
			for letter, number := range map[string]int{"N": n, "O": n + 1} {
				want = strings.ReplaceAll(want, "tar."+letter, fmt.Sprintf("tar.%03d", number))
			}
			if c.name == "out of order" {
				want = strings.ReplaceAll(want, fmt.Sprintf("%03d", n), "")
				want = strings.ReplaceAll(want, "tar. is", fmt.Sprintf("tar.%03d is", n-2))
			}
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), r.dir+"/", ""), want) {
				t.Errorf("%v\nwant %s", err, want)
			}
			for i := range n + 2 {
				_ = os.Remove(partName(path, i+1))
			}
		})
	}
}

// A part of another file of the same size is found when the file is opened, or, if nothing but the inside of a blob
// is in it, when it is verified.
func TestPartOfAnotherFile(t *testing.T) {
	r := newRig(t)
	other := r.joined(r.write(r.builder("v1.34.5", arm64), "other.tar", Options{}))
	path := r.write(r.builder("v1.34.4", amd64), "out.tar", Options{Split: 4096})
	names, _, err := partNames(path)
	r.must(err)
	opened := 0
	for i, name := range names[1 : len(names)-1] {
		was := r.read(name)
		r.must(os.WriteFile(name, other[4096*(i/2+1)+2048:][:4096], 0o644))
		f, err := Open(path)
		if err == nil {
			opened++
			err = f.Verify(t.Context(), nil, nil)
			r.must(f.Close())
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		r.must(os.WriteFile(name, was, 0o644))
	}
	if opened == 0 || opened == len(names)-2 {
		t.Errorf("%d of %d were found by opening the file", len(names)-2-opened, len(names)-2)
	}
	r.must(r.open(path).Verify(t.Context(), nil, nil))
}

// A signature goes into the last part, or into a further one where that is full.
func TestSignParts(t *testing.T) {
	r := newRig(t)
	b := r.builder("v1.34.4", amd64)
	size := int64(len(r.read(r.write(b, "whole.tar", Options{}))))
	text := []byte(armor + strings.Repeat("text\n", 300))
	for _, split := range []int64{size / 4, size/4 + 1, size / 2, size} {
		path := r.write(b, "out.tar", Options{Split: split})
		for _, more := range []string{"", "more\n"} {
			if changed, err := AppendSignature(path, append(text, more...)); err != nil || !changed {
				t.Error(changed, err)
			}
		}
		f := r.open(path)
		all, err := f.Signatures()
		if err != nil || len(all) != 2 || !bytes.Equal(all[0], text) {
			t.Errorf("%d: %d signatures, %v", split, len(all), err)
		}
		if err := f.Verify(t.Context(), nil, nil); err != nil {
			t.Errorf("%d: %v", split, err)
		}
		if split < size {
			for n := range f.parts.files {
				if start, end := f.parts.bounds(n); end-start > split {
					t.Errorf("%d: part %d has %d bytes", split, n, end-start)
				}
			}
		}
		if changed, err := b.Write(t.Context(), path, Options{Split: split}); err != nil || changed {
			t.Errorf("%d: written again although it is signed: %v %v", split, changed, err)
		}
	}
}

// Where the file cannot get its name, nothing is left behind.
func TestNameIsTaken(t *testing.T) {
	r := newRig(t)
	b := r.builder("v1.34.4", amd64)
	r.must(os.MkdirAll(filepath.Join(r.dir, "to", "out.tar.002", "x"), 0o755))
	for path, want := range map[string]string{"to": "is a directory: name a file in it", "to/out.tar": "file exists"} {
		_, err := b.Write(t.Context(), filepath.Join(r.dir, path), Options{Split: 20 << 10})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(r.dir, "to*", "*"+unfinished))
	if err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

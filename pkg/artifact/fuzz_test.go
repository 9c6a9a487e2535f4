package artifact

import (
	"bytes"
	"io"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// FuzzFile reads hostile files: it must end, within bounds, and what is accepted must be as the manifest says.
func FuzzFile(f *testing.F) {
	r := newRig(f)
	small := NewBuilder(r.dir, Covers{}, nil)
	r.must(small.AddFile(f.Context(), Item{Kind: KindFile, Name: "a", File: "a"}, r.file("a", "some text")))
	r.must(small.AddFile(f.Context(), Item{Kind: KindChart, Name: "b", File: "b"}, r.file("b", "\x1f\x8btext")))
	f.Add(r.read(r.write(r.documented(small), "small.tar", Options{})))
	r.must(small.AddImage(f.Context(), Item{Name: plainRef}, string(r.layout), []v1.Platform{amd64}))
	whole := r.write(small, "whole.tar", Options{})
	_, err := AppendSignature(whole, []byte(armor+"text\n"))
	r.must(err)
	f.Add(r.read(whole))
	older := NewBuilder(r.dir, Covers{}, nil)
	r.must(older.AddFile(f.Context(), Item{Kind: KindFile, Name: "a", File: "a"}, r.file("a", "some text")))
	base, err := older.Manifest()
	r.must(err)
	f.Add(r.read(r.write(small, "delta.tar", Options{Base: base})))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := &File{data: bytes.NewReader(text), size: int64(len(text))}
		if _, err := file.readHead(); err != nil {
			return
		}
		if err := file.Verify(t.Context(), nil, nil); err == nil {
			checkAccepted(t, file)
		}
		for _, i := range file.Manifest.Items {
			if c, err := file.Content(i); err == nil {
				n, err := io.Copy(io.Discard, io.LimitReader(c, 1<<24))
				if err == nil && n < 1<<24 && i.Kind != KindImage && n != i.Size {
					t.Errorf("%s has %d bytes instead of %d", i, n, i.Size)
				}
				_ = c.Close()
			}
		}
	})
}

// checkAccepted checks that a file that was verified has nothing but what it should have.
func checkAccepted(t *testing.T, f *File) {
	_, end, err := f.walkSignatures()
	if err != nil || end%block != 0 || end+trailer > f.size {
		t.Errorf("the last entry ends at %d of %d, %v", end, f.size, err)
	}
	for _, i := range f.Manifest.Items {
		if i.File != "" && !isLocal(i.File) {
			t.Errorf("the name %q", i.File)
		}
	}
}

// FuzzManifest reads hostile manifests: what is accepted has one form.
func FuzzManifest(f *testing.F) {
	r := newRig(f)
	m, err := r.documented(r.builder("v1.34.4", amd64, arm64)).Manifest()
	r.must(err)
	text, err := m.encode()
	r.must(err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseManifest(text)
		if err != nil {
			return
		}
		again, err := m.encode()
		if err != nil || !bytes.Equal(again, text) {
			t.Errorf("%q is written as %q, %v", text, again, err)
		}
	})
}

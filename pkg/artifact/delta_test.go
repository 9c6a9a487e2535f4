package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// generations writes whole files of three versions, and deltas from each to the next.
func (r *rig) generations() (wholes, deltas []string) {
	r.Helper()
	for i, version := range []string{"v1.34.3", "v1.34.4", "v1.34.5"} {
		whole := r.write(r.documented(r.builder(version, amd64)), version+".tar", Options{})
		if version == "v1.34.5" {
			_, err := AppendSignature(whole, []byte(armor+"text\n"))
			r.must(err)
		}
		if i > 0 {
			path := filepath.Join(r.dir, version+".delta")
			changed, err := Delta(r.Context(), r.open(wholes[i-1]).Manifest, r.open(whole), path, Options{})
			if err != nil || !changed {
				r.Fatal(changed, err)
			}
			deltas = append(deltas, path)
		}
		wholes = append(wholes, whole)
	}
	return wholes, deltas
}

func (r *rig) set(paths ...string) Set {
	r.Helper()
	s, err := OpenSet(paths)
	r.must(err)
	r.Cleanup(func() { _ = s.Close() })
	return s
}

func TestDelta(t *testing.T) {
	r := newRig(t)
	wholes, deltas := r.generations()
	whole, delta := r.open(wholes[1]), r.open(deltas[0])
	if !bytes.Equal(whole.ManifestBytes(), delta.ManifestBytes()) || delta.Base() != r.open(wholes[0]).Digest() {
		t.Error("the delta has another manifest or base")
	}
	if n := len(r.raw(r.read(deltas[0]))); n != 6+1 { // layout, index, manifest, delta, documents and kubelet
		t.Errorf("%d entries", n)
	}
	for _, given := range [][]string{{wholes[0], deltas[0], deltas[1]}, {deltas[0], deltas[1], wholes[0]}, {deltas[1],
		wholes[1]}} {
		s := r.set(given...)
		f, item, ok := s.File("kubelet/v1.34.5/amd64/kubelet")
		if !ok || s[0] != f || f.Path != deltas[1] {
			t.Errorf("%q: found in %v", given, f)
		}
		if _, _, ok = s.File("kubelet/v1.34.3/amd64/kubelet"); ok != slices.Contains(given, wholes[0]) {
			t.Errorf("%q: the item of the base: %v", given, ok)
		}
		for _, item := range []Item{item, f.Manifest.Items[0]} { // kubeadm is in the base
			c, err := f.Content(item)
			r.must(err)
			if _, err := io.Copy(io.Discard, c); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(s.Verify(t.Context(), nil), f.Verify(t.Context(), nil, nil)); err != nil {
			t.Error(err)
		}
	}
}

func TestDeltaOfManifest(t *testing.T) {
	r := newRig(t)
	wholes, deltas := r.generations()
	m, err := ParseManifest(r.open(wholes[0]).ManifestBytes())
	r.must(err)
	path := filepath.Join(r.dir, "again.delta")
	_, err = Delta(t.Context(), m, r.open(wholes[1]), path, Options{})
	r.must(err)
	if !bytes.Equal(r.read(path), r.read(deltas[0])) {
		t.Error("other bytes")
	}
	// An export that knows only what is new makes the same.
	b := NewBuilder(r.dir, Covers{Kubernetes: []string{"v1.34.4"}, Architectures: []string{"amd64"},
		Groups: []string{"web"}},
		m.Catalog)
	for _, i := range m.Items {
		if i.Name == "kubelet" {
			r.must(b.AddFile(t.Context(), Item{Kind: KindFile, Name: "kubelet", Version: "v1.34.4", Architecture: "amd64",
				File: "kubelet/v1.34.4/amd64/kubelet", Licence: "Apache-2.0"}, filepath.Join(r.dir, "kubeletamd64v1.34.4")))
			continue
		}
		if i.Name == "kubeadm" {
			i.Version, i.File = "v1.34.4", "kubeadm/v1.34.4/amd64/kubeadm"
		}
		r.must(b.AddKnown(i, &File{Manifest: m}))
	}
	r.documented(b)
	if _, err := b.Write(t.Context(), filepath.Join(r.dir, "whole.tar"), Options{}); err == nil ||
		!strings.Contains(err.Error(), "is not at hand") {
		t.Error(err)
	}
	if got := r.read(r.write(b, "known.delta", Options{Base: m})); !bytes.Equal(got, r.read(deltas[0])) {
		t.Error("an export with a base has other bytes")
	}
	if _, err := Delta(t.Context(), m, r.open(wholes[0]), path, Options{}); err == nil ||
		!strings.Contains(err.Error(), "nothing is new") {
		t.Error(err)
	}
}

// A delta without its base, or with another one, is rejected with both digests.
func TestDeltaWithoutBase(t *testing.T) {
	r := newRig(t)
	wholes, deltas := r.generations()
	base, other := r.open(wholes[0]), r.open(wholes[2])
	want := fmt.Sprintf("%s is a delta for the file with the manifest %s: name that file too", deltas[0], base.Digest())
	_, err := OpenSet(deltas[:1])
	if err == nil || err.Error() != want {
		t.Error(err)
	}
	_, err = OpenSet([]string{wholes[2], deltas[0]})
	if err == nil || err.Error() != want+fmt.Sprintf("; %s has the manifest %s", wholes[2], other.Digest()) {
		t.Error(err)
	}
	f := r.open(deltas[0])
	if err := f.Verify(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	if _, err := f.Content(f.Manifest.Items[0]); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

func TestWrongDelta(t *testing.T) {
	r := newRig(t)
	_, deltas := r.generations()
	good := r.raw(r.read(deltas[0]))
	own := r.open(deltas[0]).Digest()
	zeros := "sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct{ name, text, want string }{
		{"its own base", `{"base":"` + own + `","absent":[]}`, "is not in the form"},
		{"no JSON", `{`, "read kk/delta.json"},
		{"its own base in our form", "{\n \"base\": \"" + own + "\",\n \"absent\": []\n}\n",
			"is not the digest of another manifest"},
		{"unknown blob", "{\n \"base\": \"" + zeros + "\",\n \"absent\": [\n  \"" + zeros + "\"\n ]\n}\n",
			"is not in kk/manifest.json"},
	} {
		changed := slices.Clone(good)
		changed[3].text = []byte(c.text)
		if err := r.verifyBytes(changed.bytes()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestMerge(t *testing.T) {
	r := newRig(t)
	wholes, deltas := r.generations()
	for _, c := range []struct {
		given []string
		want  string
	}{
		{[]string{wholes[0], deltas[0], deltas[1]}, wholes[2]},
		{[]string{deltas[1], deltas[0], wholes[0]}, wholes[2]},
		{[]string{deltas[1], wholes[1]}, wholes[2]},
		{[]string{wholes[0], deltas[0]}, wholes[1]},
		{[]string{wholes[0], wholes[0]}, wholes[0]},
	} {
		path := filepath.Join(r.dir, "merged.tar")
		_, err := Merge(t.Context(), r.set(c.given...), path, Options{})
		r.must(err)
		if !bytes.Equal(r.read(path), r.read(c.want)) {
			t.Errorf("%q: not the bytes of %s", c.given, c.want)
		}
		if changed, err := Merge(t.Context(), r.set(c.given...), path, Options{}); err != nil || changed {
			t.Errorf("%q: merged again: %v, %v", c.given, changed, err)
		}
		path = filepath.Join(r.dir, "merged.split.tar")
		_, err = Merge(t.Context(), r.set(c.given...), path, Options{Split: 1 << 14})
		r.must(err)
		if !bytes.Equal(r.joined(path), r.read(c.want)) {
			t.Errorf("%q: the parts are not the bytes of %s", c.given, c.want)
		}
	}
}

// Files for one architecture each make what one export for both makes.
func TestJoin(t *testing.T) {
	r := newRig(t)
	one := r.write(r.builder("v1.34.4", amd64), "amd64.tar", Options{})
	two := r.write(r.builder("v1.34.4", arm64), "arm64.tar", Options{})
	both := r.write(r.builder("v1.34.4", arm64, amd64), "both.tar", Options{})
	for _, given := range [][]string{{one, two}, {two, one}, {one, two, both}} {
		path := filepath.Join(r.dir, "joined.tar")
		_, err := Merge(t.Context(), r.set(given...), path, Options{})
		r.must(err)
		if !bytes.Equal(r.read(path), r.read(both)) {
			t.Errorf("%q: other bytes", given)
		}
		r.must(r.open(path).Verify(t.Context(), nil, nil))
		r.must(os.Remove(path))
	}
	other := r.builder("v1.34.4", arm64)
	other.manifest.Catalog[0].Text = "other: 1\n"
	r.must(os.Remove(filepath.Join(r.dir, "flannel.tgz")))
	other.manifest.Items = slices.DeleteFunc(other.manifest.Items, func(i Item) bool { return i.Kind == KindChart })
	other.manifest.Blobs = slices.DeleteFunc(other.manifest.Blobs, func(b Blob) bool { return b.Size == 12 })
	r.must(other.AddFile(t.Context(), Item{Kind: KindChart, Name: "flannel", Version: "v0.28.4",
		File: "charts/flannel-v0.28.4.tgz"}, r.file("flannel.tgz", "\x1f\x8banother")))
	_, err := r.set(one, r.write(other, "other.tar", Options{})).Join()
	if err == nil || !strings.Contains(err.Error(), "were made with different catalogs (versions.yaml)") ||
		!strings.Contains(err.Error(), "chart flannel v0.28.4 has sha256 ") {
		t.Error(err)
	}
}

// When kk is killed while it signs, the file is unsigned or signed, and it can be signed again.
func TestSigningKilled(t *testing.T) {
	r := newRig(t)
	b := r.builder("v1.34.4", amd64)
	path := r.write(b, "out.tar", Options{})
	before := r.read(path)
	text := []byte(armor + strings.Repeat("text\n", 400))
	changed, err := AppendSignature(path, text)
	if err != nil || !changed {
		t.Fatal(changed, err)
	}
	after := r.read(path)
	at := len(before) - trailer
	if !bytes.Equal(before[:at], after[:at]) {
		t.Error("signing has changed what is signed")
	}
	for _, n := range []int{0, 1, 100, block, 2*block + 7,
		len(after) - at - block} { // bytes that were written before the header
		killed := slices.Concat(before[:at+block], after[at+block:at+block+n])
		if n < block {
			killed = append(killed, before[at+block+n:]...)
		}
		name := r.file("killed.tar", string(killed))
		f := r.open(name)
		if all, err := f.Signatures(); err != nil || len(all) > 0 {
			t.Errorf("%d: %d signatures, %v", n, len(all), err)
		}
		if err := f.Verify(t.Context(), nil, nil); err != nil {
			t.Errorf("%d: %v", n, err)
		}
		short := []byte(armor + "other\n")
		if _, err := AppendSignature(name, short); err != nil {
			t.Errorf("%d: %v", n, err)
		}
		f = r.open(name)
		if all, err := f.Signatures(); err != nil || len(all) != 1 || !bytes.Equal(all[0], short) {
			t.Errorf("%d: %q, %v", n, all, err)
		}
		r.must(f.Verify(t.Context(), nil, nil))
	}
	if changed, err := AppendSignature(path, text); err != nil || changed {
		t.Errorf("the same signature again: %v, %v", changed, err)
	}
	if _, err := AppendSignature(path, []byte("text")); err == nil {
		t.Error("another text is a signature")
	}
}

func TestDiff(t *testing.T) {
	r := newRig(t)
	wholes, deltas := r.generations()
	d := Diff(r.open(wholes[0]).Manifest, r.open(wholes[1]).Manifest)
	if len(d.Added) > 0 || len(d.Removed) > 0 || len(d.Changed) != 2 || d.Changed[1].Old.Version != "v1.34.3" ||
		d.Changed[1].New.Version != "v1.34.4" {
		t.Errorf("%+v", d)
	}
	f := r.open(deltas[0])
	if want := f.Manifest.Blobs[slices.IndexFunc(f.offsets,
		func(at int64) bool { return at >= 0 })].Size; d.Bytes != want {
		t.Errorf("%d bytes instead of %d", d.Bytes, want)
	}
	both := r.builder("v1.34.4", amd64, arm64)
	m, err := both.Manifest()
	r.must(err)
	d = Diff(r.open(wholes[1]).Manifest, m)
	var names []string
	for _, i := range d.Added {
		names = append(names, i.String())
	}
	if !slices.Equal(names, []string{"file kubeadm v1.34.4 arm64", "file kubelet v1.34.4 arm64"}) ||
		len(d.Changed) != 1 ||
		d.Changed[0].New.Name != indexRef {
		t.Errorf("%q %+v", names, d.Changed)
	}
	image := func(ref string) Item { return Item{Kind: KindImage, Name: ref} }
	d = Diff(&Manifest{Items: []Item{image("r:5000/a:1"), image("r:5000/b:1"), image("r:5000/c@sha256:x")}},
		&Manifest{Items: []Item{image("r:5000/a:2"), image("r:5000/a:3"), image("r:5000/c@sha256:y")}})
	if len(d.Added) != 1 || len(d.Removed) != 1 || d.Removed[0].Name != "r:5000/b:1" || len(d.Changed) != 2 {
		t.Errorf("%+v", d)
	}
}

// Deltas that are based on each other have no base: nothing can be read from them, and looking for it ends.
func TestDeltasForEachOther(t *testing.T) {
	r := newRig(t)
	wholes, deltas := r.generations()
	back := filepath.Join(r.dir, "back.delta")
	_, err := Delta(t.Context(), r.open(wholes[1]).Manifest, r.open(wholes[0]), back, Options{})
	r.must(err)
	if s, err := OpenSet([]string{deltas[0], back}); err == nil ||
		!strings.Contains(err.Error(), "are all deltas: name the whole file too") {
		t.Error(s, err)
	}
	r.set(deltas[0], back, wholes[0])
}

// A blob that several items say that they have in it is decoded for each of them.
func TestTwoContentsOfOneBlob(t *testing.T) {
	r := newRig(t)
	whole := r.open(r.write(r.builder("v1.34.4", amd64), "whole.tar", Options{}))
	for _, size := range []int64{0, 1} { // the digest is wrong, or only the size
		b, err := whole.builder()
		r.must(err)
		liar := b.manifest.Items[0]
		liar.Name, liar.File = "a liar", "liar"
		if liar.Size += size; size == 0 {
			liar.SHA256 = strings.Repeat("0", 64)
		}
		b.manifest.Items = append(b.manifest.Items, liar)
		path := r.write(b, fmt.Sprint("liar", size), Options{})
		delta := filepath.Join(r.dir, fmt.Sprint("delta", size))
		_, err = Delta(t.Context(), whole.Manifest, r.open(path), delta, Options{})
		r.must(err)
		for _, given := range [][]string{{path}, {whole.Path, delta}} {
			if err := r.set(given...).Verify(t.Context(), nil); err == nil || !strings.Contains(err.Error(), liar.SHA256) {
				t.Error(given, err)
			}
		}
	}
}

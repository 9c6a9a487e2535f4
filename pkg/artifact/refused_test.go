package artifact

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
)

// raw is an offline file, entry by entry.
type raw []rawEntry

type rawEntry struct {
	tar.Header
	text []byte
}

func (r *rig) raw(text []byte) raw {
	r.Helper()
	var all raw
	for tr := tar.NewReader(bytes.NewReader(text)); ; {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		r.must(err)
		text, err := io.ReadAll(tr)
		r.must(err)
		all = append(all, rawEntry{*hdr, text})
	}
}

// bytes writes the entries, whatever they are.
func (e raw) bytes() []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range e {
		hdr := e.Header
		hdr.Size, hdr.Format, hdr.ModTime = int64(len(e.text)), tar.FormatUSTAR, time.Unix(0, 0)
		_ = w.WriteHeader(&hdr)
		_, _ = w.Write(e.text)
	}
	_ = w.Close()
	return b.Bytes()
}

// with returns the entries with a further one at a place.
func (e raw) with(at int, hdr tar.Header, text string) raw {
	hdr.Mode = 0o644
	return slices.Insert(slices.Clone(e), at, rawEntry{hdr, []byte(text)})
}

// rewritten returns the file with a changed manifest, and the index that belongs to it.
func (r *rig) rewritten(e raw, change func(m *Manifest)) []byte {
	r.Helper()
	m, err := ParseManifest(e[2].text)
	r.must(err)
	change(m)
	e = slices.Clone(e)
	e[2].text, err = m.encode()
	r.must(err)
	e[1].text, err = m.index()
	r.must(err)
	return e.bytes()
}

// verifyBytes opens and verifies a file.
func (r *rig) verifyBytes(text []byte) error {
	r.Helper()
	f, err := Open(r.file("checked.tar", string(text)))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.Verify(r.Context(), nil, nil)
}

func TestCutAnywhere(t *testing.T) {
	r := newRig(t)
	path := r.write(r.documented(r.builder("v1.34.4", amd64)), "out.tar", Options{})
	_, err := AppendSignature(path, []byte(armor+"text\n"))
	r.must(err)
	text := r.read(path)
	r.must(r.verifyBytes(text))
	cuts := []int{0, 1, len(text) - 1, len(text) - block}
	for at := 0; at < len(text); at += block {
		cuts = append(cuts, at, at+block/2)
	}
	for _, at := range cuts {
		if err := r.verifyBytes(text[:at]); err == nil || at > 4*block && !errors.Is(err, errCut) {
			t.Fatalf("cut off after %d of %d bytes: %v", at, len(text), err)
		}
	}
}

// A changed byte in any entry is found, and the item that it belongs to is named.
func TestChangedByte(t *testing.T) {
	r := newRig(t)
	path := r.write(r.documented(r.builder("v1.34.4", amd64)), "out.tar", Options{})
	_, err := AppendSignature(path, []byte(armor+"text\n"))
	r.must(err)
	text := r.read(path)
	f := r.open(path)
	items := f.users()
	at := 0
	for _, e := range r.raw(text) {
		size := len(e.text)
		places := map[string]int{"its header": at + 20, "its first byte": at + block,
			"its last byte": at + block + size - 1,
			"in between":    at + block + size/2}
		if size%block != 0 {
			places["its padding"] = at + block + size
		}
		for place, i := range places {
			changed := bytes.Clone(text)
			changed[i] ^= 1
			err := r.verifyBytes(changed)
			name := items[strings.Replace(strings.TrimPrefix(e.Name, "blobs/"), "/", ":", 1)]
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s (%s): %s is changed: %v", e.Name, name, place, err)
			}
		}
		at += block + int(padded(int64(size)))
	}
	changed := bytes.Clone(text)
	changed[len(text)-1] ^= 1
	if err := r.verifyBytes(changed); err == nil {
		t.Error("the end is changed")
	}
	r.must(r.verifyBytes(text))
}

func TestRefused(t *testing.T) {
	r := newRig(t)
	good := r.raw(r.read(r.write(r.documented(r.builder("v1.34.4", amd64)), "out.tar", Options{})))
	r.must(r.verifyBytes(good.bytes()))
	n := len(good)
	zeros := strings.Repeat("0", 64)
	program := func(m *Manifest) *Item {
		return &m.Items[slices.IndexFunc(m.Items, func(i Item) bool { return i.Encoding == Zstd })]
	}
	image := func(m *Manifest) *Item {
		return &m.Items[slices.IndexFunc(m.Items, func(i Item) bool { return i.Name == indexRef })]
	}
	link := func(kind byte) tar.Header { return tar.Header{Name: "kk/x", Typeflag: kind, Linkname: "/etc/passwd"} }
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
	for _, c := range []struct {
		name string
		text []byte
		want string
	}{
		{"not ours", raw{}.with(0, file("etc/passwd"), "x").bytes(), "this is not an offline file of kk"},
		{"not a tar", []byte(strings.Repeat("text", 1000)), "this is not an offline file of kk"},
		{"empty", nil, "cut off"},
		{"item without its blob", slices.Delete(slices.Clone(good), 7, 8).bytes(), "cut off"},
		{"item in the place of another", r.swapped(good, 7, 8), "of the manifest: it is"},
		{"last blob missing", good[:n-1].bytes(), "cut off"},
		{"entry before the blobs", good.with(5, file("kk/other"), "x").bytes(), `it is "kk/other"`},
		{"entry among the blobs", good.with(8, file("blobs/sha256/"+zeros), "x").bytes(), zeros},
		{"entry behind the blobs", good.with(n, file("blobs/sha256/"+zeros), "x").bytes(), "is not in the manifest"},
		{"second entry of one name", good.with(n, good[n-1].Header, string(good[n-1].text)).bytes(),
			"is not in the manifest"},
		{"second manifest", good.with(3, good[2].Header, string(good[2].text)).bytes(), `it is "kk/manifest.json"`},
		{"absolute name", good.with(n, file("/etc/passwd"), "x").bytes(), `it is "/etc/passwd"`},
		{"name with ..", good.with(n, file("../x"), "x").bytes(), `it is "../x"`},
		{"symbolic link", good.with(n, link(tar.TypeSymlink), "").bytes(), `it is "kk/x" of type '2'`},
		{"hard link", good.with(5, link(tar.TypeLink), "").bytes(), `of type '1'`},
		{"device", good.with(n, link(tar.TypeBlock), "").bytes(), `of type '4'`},
		{"wrong size of a blob", r.rewritten(good, func(m *Manifest) { program(m).blob(m).Size++ }),
			"of the manifest: it is"},
		{"wrong size of a program", r.rewritten(good, func(m *Manifest) { program(m).Size++ }),
			"file kubeadm v1.34.4 amd64: sha256:"},
		{"zstd that grows", r.rewritten(good, func(m *Manifest) { program(m).Size = 1000 }),
			"has more bytes than the manifest says"},
		{"wrong size of an image", r.rewritten(good, func(m *Manifest) { image(m).Size++ }), "and its blobs have"},
		{"wrong digest of a program", r.rewritten(good, func(m *Manifest) { program(m).SHA256 = zeros }),
			"sha256:" + zeros + " is damaged"},
		{"item twice", r.rewritten(good, func(m *Manifest) { m.Items = append(m.Items[:1], m.Items...) }),
			"is listed twice"},
		{"items out of order", r.rewritten(good, func(m *Manifest) { slices.Reverse(m.Items) }), "is out of order"},
		{"blob twice", r.rewritten(good, func(m *Manifest) { m.Blobs = append(m.Blobs[:1], m.Blobs...) }),
			"is listed twice"},
		{"blob of no item", r.rewritten(good, func(m *Manifest) { m.Items = m.Items[1:] }), "belongs to no item"},
		{"blob that is not listed", r.rewritten(good, func(m *Manifest) { program(m).Blob = "sha256:" + zeros }),
			"is not in the list of blobs"},
		{"absolute name of an item", r.rewritten(good, func(m *Manifest) { program(m).File = "/etc/passwd" }),
			`"/etc/passwd" is not a relative path`},
		{"name of an item with ..", r.rewritten(good, func(m *Manifest) { program(m).File = "a/../../b" }),
			"is not a relative path"},
		{"name in two cases", r.rewritten(good, func(m *Manifest) {
			m.Items[0].File, m.Items[1].File = "A/kubeadm", "a/kubeadm"
		}), `the names "A/kubeadm" and "a/kubeadm" differ in upper and lower case only`},
		{"name twice", r.rewritten(good, func(m *Manifest) { m.Items[0].File, m.Items[1].File = "a", "a" }),
			`the name "a" is used twice`},
		{"unknown kind", r.rewritten(good, func(m *Manifest) { m.Items[0].Kind = "x" }), `unknown kind "x"`},
		{"unknown encoding", r.rewritten(good, func(m *Manifest) { program(m).Encoding = "xz" }), `unknown encoding "xz"`},
		{"unknown format", r.rewritten(good, func(m *Manifest) { m.Format = 2 }),
			"the file has format 2, and this kk reads format 1"},
		{"document of the manifest's name", r.rewritten(good, func(m *Manifest) { m.Documents[0].Name = manifestName }),
			"is not a name of a document"},
		{"large document", r.rewritten(good, func(m *Manifest) { m.Documents[0].Size = maxDocument + 1 }), "at most"},
		{"platform that is not in it", r.rewritten(good, func(m *Manifest) { image(m).Platforms = []string{"linux/arm64"} }),
			"image " + indexRef + ": the image for linux/arm64: blob"},
		{"another index", slices.Concat(good[:1], raw{{good[1].Header, []byte("{}")}}, good[2:]).bytes(),
			"index.json lists other images"},
		{"another layout", slices.Concat(raw{{good[0].Header, []byte("{}")}}, good[1:]).bytes(),
			"is not that of an OCI image layout"},
		{"manifest in another form", good.manifest(append([]byte(" "), good[2].text...)),
			"it is not in the form that kk writes"},
		{"manifest with a repeated key", good.manifest(bytes.Replace(good[2].text,
			[]byte(`"format": 1,`), []byte(`"format": 1, "format": 1,`), 1)), "it is not in the form that kk writes"},
		{"manifest with an unknown key", good.manifest(bytes.Replace(good[2].text, []byte(`"format": 1,`),
			[]byte(`"format": 1, "x": 1,`), 1)), `unknown field "x"`},
		{"large manifest", tooLarge(good), "at most 67108864 are read"},
		{"bytes behind the end", append(good.bytes(), make([]byte, block)...), "follow the end of the tar"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := r.verifyBytes(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

// manifest returns a file with another text of the manifest.
func (e raw) manifest(text []byte) []byte {
	return slices.Concat(e[:2], raw{{e[2].Header, text}}, e[3:]).bytes()
}

// blob returns the blob of an item.
func (i *Item) blob(m *Manifest) *Blob {
	n, _ := m.find(i.Blob)
	return &m.Blobs[n]
}

// swapped returns a file with two entries in each other's place.
func (r *rig) swapped(e raw, a, b int) []byte {
	e = slices.Clone(e)
	e[a], e[b] = e[b], e[a]
	return e.bytes()
}

// tooLarge returns a file whose manifest has one byte more than is read.
func tooLarge(good raw) []byte {
	hdr, _ := header(manifestName, MaxManifest+1)
	start := 2*block + padded(int64(len(good[0].text))) + padded(int64(len(good[1].text)))
	return append(good[:2].bytes()[:start], hdr...)
}

func TestTooManyEntries(t *testing.T) {
	m := &Manifest{Format: Format, Blobs: make([]Blob, maxEntries+1)}
	if err := m.check(); err == nil || err.Error() != "the manifest lists 1000001 entries: at most 1000000 are read" {
		t.Error(err)
	}
}

// A blob that needs more memory to decode than kk's own is rejected.
func TestLargeWindow(t *testing.T) {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithWindowSize(4*maxWindow))
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("0123456789abcdef"), 4<<20)
	_, err = z.Write(text)
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	c, err := content(&b, Item{Kind: KindFile, Name: "a", Size: int64(len(text)), Encoding: Zstd})
	if err == nil {
		_, err = io.Copy(io.Discard, c)
	}
	if err == nil || !strings.Contains(err.Error(), "cannot be unpacked: window size exceeded") {
		t.Error(err)
	}
}

// An image for another platform than its index says is rejected, when a file is made and when it is read.
func TestOtherPlatform(t *testing.T) {
	r := newRig(t)
	const ref = "registry.example/wrong:1"
	index := mutate.AppendManifests(testIndex(t, "web", amd64), mutate.IndexAddendum{Add: testImage(t, "other", amd64),
		Descriptor: v1.Descriptor{Platform: &arm64}})
	r.must(r.layout.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: ref})))
	b := NewBuilder(r.dir, Covers{}, nil)
	const want = "image " + ref + ": the image for linux/arm64: the index has an image for linux/arm64 that is for " +
		"linux/amd64"
	if err := b.AddImage(t.Context(), Item{Name: ref}, string(r.layout), []v1.Platform{amd64, arm64}); err == nil ||
		err.Error() != want {
		t.Error(err)
	}
	// Such a file is made by hand: all blobs are there.
	wrong := b.manifest
	w := walkLayout(t.Context(), string(r.layout), []v1.Platform{amd64})
	digest, err := index.Digest()
	r.must(err)
	manifest, err := index.IndexManifest()
	r.must(err)
	size, err := index.Size()
	r.must(err)
	root := v1.Descriptor{MediaType: manifest.MediaType, Digest: digest, Size: size}
	r.must(w.collect(root, 0))
	manifest.Manifests[1].Platform = nil
	r.must(w.collect(manifest.Manifests[1], maxNested))
	item := Item{Kind: KindImage, Name: ref, SHA256: digest.Hex, Blob: digest.String(), MediaType: manifest.MediaType,
		Platforms: []string{"linux/amd64", "linux/arm64"}}
	for blob := range w.blobs {
		item.Blobs, item.Size = append(item.Blobs, blob.Digest), item.Size+blob.Size
		wrong.Blobs = append(wrong.Blobs, blob)
		b.sources[blob.Digest] = openPath(layoutPath(string(r.layout), blob.Digest))
	}
	slices.Sort(item.Blobs)
	wrong.Items = append(wrong.Items, item)
	b.manifest = wrong
	f := r.open(r.write(b, "wrong.tar", Options{}))
	if err := f.Verify(t.Context(), nil, nil); err == nil || err.Error() != want {
		t.Error(err)
	}
}

// A disk that is full while a file is written is reported with how much more the file needs.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	r := newRig(t)
	small := filepath.Join(r.dir, "small")
	r.must(os.Mkdir(small, 0o755))
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=64k", "none",
		small).CombinedOutput(); err != nil {
		t.Skipf("mounting a small file system: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", small).Run() })
	b := r.builder("v1.34.4", amd64)
	noise := make([]byte, 100<<10)
	for i := range noise {
		noise[i] = byte(i*i>>3) ^ byte(i>>7)
	}
	r.must(b.AddFile(t.Context(), Item{Kind: KindExtra, Name: "noise", File: "noise"}, r.file("noise",
		"\x1f\x8b"+string(noise))))
	whole, err := os.Stat(r.write(b, "whole.tar", Options{}))
	r.must(err)
	for _, o := range []Options{{}, {Split: 20 << 10}} {
		_, err := b.Write(t.Context(), filepath.Join(small, "out.tar"), o)
		want := fmt.Sprintf("is full: the file needs %d bytes more; free some space", whole.Size()-64<<10)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
		left, err := os.ReadDir(small)
		if err != nil || len(left) > 0 {
			t.Error(left, err)
		}
	}
}

// Indexes that list the same index again and again are read once each.
func TestRepeatedIndexes(t *testing.T) {
	blobs := map[string][]byte{}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w := newWalk(ctx, func(digest string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(blobs[digest])), nil
	}, func(digest string) (int64, error) { return int64(len(blobs[digest])), nil })
	w.platforms = []v1.Platform{amd64}
	add := func(text []byte) v1.Descriptor {
		h, size, err := v1.SHA256(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		blobs[h.String()] = text
		return v1.Descriptor{MediaType: types.OCIImageIndex, Digest: h, Size: size, Platform: &amd64}
	}
	d := add([]byte(`{"schemaVersion":2,"manifests":[]}`))
	for range maxNested {
		index := v1.IndexManifest{SchemaVersion: 2}
		for range 300 {
			index.Manifests = append(index.Manifests, d)
		}
		text, err := encodeJSON(index)
		if err != nil {
			t.Fatal(err)
		}
		d = add(text)
	}
	if err := w.collect(d, 0); err != nil || len(w.blobs) != maxNested+1 {
		t.Error(len(w.blobs), err)
	}
}

// An image that an index lists again and again, for other versions of one platform, is read once.
func TestRepeatedImages(t *testing.T) {
	image := testImage(t, "web", amd64)
	manifest, err := image.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	m, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	index := v1.IndexManifest{SchemaVersion: 2}
	for i := range 300 {
		index.Manifests = append(index.Manifests, v1.Descriptor{MediaType: m.MediaType, Digest: digest,
			Size: int64(len(manifest)), Platform: &v1.Platform{OS: "linux", Architecture: "amd64", OSVersion: fmt.Sprint(i)}})
	}
	text, err := encodeJSON(index)
	if err != nil {
		t.Fatal(err)
	}
	root := digestOf(text)
	blobs := map[string][]byte{digest.String(): manifest, m.Config.Digest.String(): config, root: text}
	for _, attached := range []bool{false, true} {
		read := map[string]int{}
		w := newWalk(t.Context(), func(digest string) (io.ReadCloser, error) {
			read[digest]++
			return io.NopCloser(bytes.NewReader(blobs[digest])), nil
		}, func(digest string) (int64, error) {
			for _, l := range m.Layers {
				if l.Digest.String() == digest {
					return l.Size, nil
				}
			}
			return int64(len(blobs[digest])), nil
		})
		w.attached, w.platforms = attached, []v1.Platform{amd64}
		d := v1.Descriptor{MediaType: types.OCIImageIndex, Size: int64(len(text)), Digest: v1.Hash{Algorithm: "sha256",
			Hex: strings.TrimPrefix(root, "sha256:")}}
		if err := w.collect(d, 0); err != nil {
			t.Fatal(err)
		}
		for digest, times := range read {
			if times > 1 {
				t.Errorf("attached %v: %s was read %d times", attached, digest, times)
			}
		}
	}
}

// An index of many attestations is read in time that grows with their number alone.
func TestManyAttestations(t *testing.T) {
	about := v1.Descriptor{Digest: v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0", 64)}}
	index := v1.IndexManifest{Manifests: []v1.Descriptor{}}
	for range 15_000 {
		index.Manifests = append(index.Manifests, v1.Descriptor{Digest: v1.Hash{Algorithm: "sha256",
			Hex: strings.Repeat("1", 64)}, Annotations: map[string]string{
			"vnd.docker.reference.digest": about.Digest.String()}})
	}
	index.Manifests = append(index.Manifests, about)
	w := newWalk(t.Context(), nil, func(string) (int64, error) { return 0, nil })
	w.blobs[Blob{about.Digest.String(), 0}] = true
	began := time.Now()
	if err := w.attestations(&index, 0); err != nil || len(w.blobs) != 2 {
		t.Error(len(w.blobs), err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

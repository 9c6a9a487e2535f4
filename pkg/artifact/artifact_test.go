package artifact

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

var (
	amd64 = v1.Platform{OS: "linux", Architecture: "amd64"}
	arm64 = v1.Platform{OS: "linux", Architecture: "arm64"}
)

const (
	indexRef = "registry.example/library/web:1.0"
	plainRef = "registry.example/library/db:2.0"
)

// testImage returns an image whose bytes depend on the seed and the platform only.
func testImage(t testing.TB, seed string, p v1.Platform) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layerOf("base "+p.String()), layerOf(seed+p.String()))
	if err != nil {
		t.Fatal(err)
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = p.OS, p.Architecture
	if img, err = mutate.ConfigFile(img, c); err != nil {
		t.Fatal(err)
	}
	return mutate.ConfigMediaType(mutate.MediaType(img, types.OCIManifestSchema1), types.OCIConfigJSON)
}

// layerOf returns a layer: a tar with one file.
func layerOf(text string) v1.Layer {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: "etc/content", Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg})
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return static.NewLayer(b.Bytes(), types.OCIUncompressedLayer)
}

// testIndex returns an index with an image for each platform.
func testIndex(t testing.TB, seed string, platforms ...v1.Platform) v1.ImageIndex {
	t.Helper()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: testImage(t, seed, p),
			Descriptor: v1.Descriptor{Platform: &p}})
	}
	return index
}

// rig is a directory with what files are built from.
type rig struct {
	testing.TB
	dir    string
	layout layout.Path
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{TB: t, dir: t.TempDir()}
	var err error
	if r.layout, err = layout.Write(filepath.Join(r.dir, "images"), empty.Index); err != nil {
		t.Fatal(err)
	}
	name := layout.WithAnnotations(map[string]string{refName: indexRef})
	if err := r.layout.AppendIndex(testIndex(t, "web", amd64, arm64), name); err != nil {
		t.Fatal(err)
	}
	name = layout.WithAnnotations(map[string]string{refName: plainRef})
	if err := r.layout.AppendImage(testImage(t, "db", amd64), name); err != nil {
		t.Fatal(err)
	}
	return r
}

// file writes a file and returns its path.
func (r *rig) file(name, text string) string {
	r.Helper()
	p := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
		r.Fatal(err)
	}
	return p
}

// program returns text that does not compress to nothing.
func program(name string) string {
	random := rand.New(rand.NewSource(int64(len(name))))
	words := make([]string, 3000)
	for i := range words {
		words[i] = fmt.Sprint(name, random.Intn(1000))
	}
	return strings.Join(words, " ")
}

// builder returns a builder with programs of a version for the architectures, a chart and two images.
func (r *rig) builder(version string, platforms ...v1.Platform) *Builder {
	r.Helper()
	covers := Covers{Kubernetes: []string{version}, Groups: []string{"web"}}
	for _, p := range platforms {
		covers.Architectures = append(covers.Architectures, p.Architecture)
	}
	b := NewBuilder(r.dir, covers, []Document{{"versions.yaml", "kubernetes: [v1.34.4]\n"}})
	for _, p := range platforms {
		for _, name := range []string{"kubeadm", "kubelet"} {
			arch := p.Architecture
			text := program(name + arch)
			if name == "kubelet" {
				text += version
			}
			item := Item{Kind: KindFile, Name: name, Version: version, Architecture: arch,
				File: fmt.Sprintf("%s/%s/%s/%s", name, version, arch, name), Licence: "Apache-2.0"}
			r.must(b.AddFile(r.Context(), item, r.file(name+arch+version, text)))
		}
	}
	chart := r.file("flannel.tgz", "\x1f\x8bnot really")
	r.must(b.AddFile(r.Context(), Item{Kind: KindChart, Name: "flannel", Version: "v0.28.4",
		File: "charts/flannel-v0.28.4.tgz"}, chart))
	r.must(b.AddImage(r.Context(), Item{Name: indexRef, Group: "web"}, string(r.layout), platforms))
	if slices.Contains(covers.Architectures, "amd64") {
		r.must(b.AddImage(r.Context(), Item{Name: plainRef}, string(r.layout), []v1.Platform{amd64}))
	}
	return b
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// write writes what a builder has.
func (r *rig) write(b *Builder, name string, o Options) string {
	r.Helper()
	p := filepath.Join(r.dir, name)
	changed, err := b.Write(r.Context(), p, o)
	if err != nil || !changed {
		r.Fatal(changed, err)
	}
	return p
}

// documented adds documents.
func (r *rig) documented(b *Builder) *Builder {
	r.Helper()
	r.must(b.AddDocument("kk/sbom.spdx.json", []byte(`{"spdxVersion":"SPDX-2.3"}`+"\n")))
	r.must(b.AddDocument("kk/sbom.cdx.json", []byte(`{"bomFormat":"CycloneDX"}`+"\n")))
	return b
}

func (r *rig) open(path string) *File {
	r.Helper()
	f, err := Open(path)
	r.must(err)
	r.Cleanup(func() { _ = f.Close() })
	return f
}

func (r *rig) read(path string) []byte {
	r.Helper()
	text, err := os.ReadFile(path)
	r.must(err)
	return text
}

func TestRoundTrip(t *testing.T) {
	r := newRig(t)
	b := r.documented(r.builder("v1.34.4", amd64, arm64))
	path := r.write(b, "out.tar", Options{})
	f := r.open(path)
	if err := f.Verify(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
	_, item, ok := Set{f}.File("kubelet/v1.34.4/arm64/kubelet")
	if !ok || item.Encoding != Zstd {
		t.Fatalf("found %v %+v", ok, item)
	}
	for name, from := range map[string]interface {
		Content(Item) (io.ReadCloser, error)
	}{"file": f, "builder": b} {
		c, err := from.Content(item)
		r.must(err)
		text, err := io.ReadAll(c)
		if want := program("kubeletarm64") + "v1.34.4"; err != nil || string(text) != want {
			t.Errorf("%s: %d bytes instead of %d, %v", name, len(text), len(want), err)
		}
		r.must(c.Close())
	}
	text, err := f.Document("kk/sbom.cdx.json")
	if err != nil || string(text) != `{"bomFormat":"CycloneDX"}`+"\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := f.Document("kk/other.json"); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
	if changed, err := b.Write(t.Context(), path, Options{}); err != nil || changed {
		t.Errorf("written again: %v, %v", changed, err)
	}
}

// The order of the entries is that of the format, and tar reads them.
func TestEntries(t *testing.T) {
	r := newRig(t)
	path := r.write(r.documented(r.builder("v1.34.4", amd64)), "out.tar", Options{})
	f := tar.NewReader(bytes.NewReader(r.read(path)))
	var names []string
	for {
		hdr, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		r.must(err)
		if hdr.Mode != 0o644 || hdr.Uid != 0 || hdr.ModTime.Unix() != 0 || hdr.Uname != "" {
			t.Errorf("%+v", hdr)
		}
		names = append(names, hdr.Name)
	}
	want := []string{layoutName, indexName, manifestName, "kk/sbom.cdx.json", "kk/sbom.spdx.json"}
	if !slices.Equal(names[:5], want) || !slices.IsSorted(names[5:]) || len(names) < 15 {
		t.Errorf("entries %q", names)
	}
}

// The same inputs make the same bytes, in whatever order they come. If this digest changes, files
// that were made before are no longer made again: the number of the format changes too.
func TestGoldenBytes(t *testing.T) {
	const golden = "sha256:2ac45fc407bd1f19876368575c33c8999bf41f92608aa240f842ba84038edc4b"
	for range 2 {
		r := newRig(t)
		path := r.write(r.documented(r.builder("v1.34.4", arm64, amd64)), "out.tar", Options{})
		if got := digestOf(r.read(path)); got != golden {
			t.Errorf("the file has the digest %s", got)
		}
	}
}

func TestBuilderStops(t *testing.T) {
	r := newRig(t)
	b := r.builder("v1.34.4", amd64)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(r.dir, "out.tar")
	if _, err := b.Write(ctx, path, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	left, err := filepath.Glob(path + "*")
	if err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

func TestManifestIsJSON(t *testing.T) {
	r := newRig(t)
	f := r.open(r.write(r.builder("v1.34.4", amd64), "out.tar", Options{}))
	if !json.Valid(f.ManifestBytes()) {
		t.Errorf("%s", f.ManifestBytes())
	}
	m, err := ParseManifest(f.ManifestBytes())
	r.must(err)
	if got, err := m.Digest(); err != nil || got != f.Digest() {
		t.Error(got, err)
	}
}

// Readers such as decompressors read on after the end.
func TestBlobsEndOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "notes.tgz")
	if err := os.WriteFile(path, []byte("\x1f\x8bnotes"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := NewBuilder(dir, Covers{}, nil)
	if err := b.AddFile(t.Context(), Item{Kind: KindExtra, Name: "notes", File: "notes.tgz"}, path); err != nil {
		t.Fatal(err)
	}
	m, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Blob(m.Items[0].Blob)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF { //nolint:errorlint // io.EOF itself
		t.Errorf("a read after the end: %d, %v", n, err)
	}
}

// An archive of images that is interrupted reports that alone.
func TestArchiveIsInterrupted(t *testing.T) {
	r := newRig(t)
	f := r.open(r.write(r.builder("v1.34.4", amd64), "out.tar", Options{}))
	_, item, ok := Set{f}.Image(plainRef)
	if !ok {
		t.Fatal("no image")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := WriteArchive(ctx, io.Discard, []NamedImage{{f, item, []string{plainRef}}}, amd64, nil)
	if err == nil || err.Error() != context.Canceled.Error() {
		t.Error(err)
	}
}

// Whoever reads as many bytes as the manifest says, and no end behind them, notices damage too.
func TestLastByte(t *testing.T) {
	for _, text := range []string{"text", "texT"} {
		for _, from := range []io.Reader{strings.NewReader(text), iotest.DataErrReader(strings.NewReader(text))} {
			got := make([]byte, len(text))
			_, err := io.ReadFull(verified(from, 4, digestOf([]byte("text"))), got)
			if damaged := text != "text"; damaged != (err != nil) || err != nil && !strings.Contains(err.Error(), "is damaged") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// What is stored is verified when it is written, and errors name the file to delete.
func TestDamagedInputsAreNamed(t *testing.T) {
	r := newRig(t)
	text, archive := program("kubeadm"), "\x1f\x8bnot really"
	sum := func(text string) string { return strings.TrimPrefix(digestOf([]byte(text)), "sha256:") }
	add := func(text, sha string) (*Builder, string, error) {
		b, path := NewBuilder(r.dir, Covers{}, nil), r.file("input", text)
		return b, path, b.AddFile(t.Context(), Item{Kind: KindFile, Name: "input", File: "input", SHA256: sha}, path)
	}
	fails := func(what string, err error, path string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "delete "+path) &&
			!strings.Contains(err.Error(), path+" has the sha256") {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
	write := func(b *Builder) error {
		_, err := b.Write(t.Context(), filepath.Join(r.dir, "out.tar"), Options{})
		return err
	}
	_, path, err := add(text, sum("another"))
	fails("a program with another digest", err, path)
	b, path, err := add(archive, sum("\x1f\x8banother"))
	r.must(err)
	fails("an archive with another digest", write(b), path)
	b, path, err = add(text, sum(text))
	r.must(err)
	r.must(write(b))

	// The copy is used again, without a look at the program: that can even be cut off.
	whole := r.read(filepath.Join(r.dir, "out.tar"))
	for _, damaged := range []string{strings.ToUpper(text), text[:len(text)/2]} {
		r.must(os.WriteFile(path, []byte(damaged), 0o644))
		b, again := NewBuilder(r.dir, Covers{}, nil), Item{Kind: KindFile, Name: "input", File: "input", SHA256: sum(text)}
		r.must(b.AddFile(t.Context(), again, path))
		r.must(os.Remove(filepath.Join(r.dir, "out.tar")))
		r.must(write(b))
		if !bytes.Equal(r.read(filepath.Join(r.dir, "out.tar")), whole) {
			t.Error("the copy in the cache makes other bytes")
		}
		r.must(r.open(filepath.Join(r.dir, "out.tar")).Verify(t.Context(), nil, nil))
	}
	copies, err := filepath.Glob(filepath.Join(r.dir, compressed, sum(text)+"-*.zst"))
	if err != nil || len(copies) != 1 {
		t.Fatalf("copies are %v: %v", copies, err)
	}
	packed := r.read(copies[0])
	packed[len(packed)/2] ^= 1
	r.must(os.WriteFile(copies[0], packed, 0o644))
	r.must(os.Remove(filepath.Join(r.dir, "out.tar")))
	fails("a damaged copy", write(b), copies[0])
	r.must(os.Remove(copies[0]))
	b, _, err = add(text, sum(text))
	r.must(err)
	r.must(write(b))
}

// What is read of an image in the cache is verified before it is believed, and errors name the file to delete.
func TestDamagedImagesAreNamed(t *testing.T) {
	r := newRig(t)
	root, err := r.layout.ImageIndex()
	r.must(err)
	list, err := root.IndexManifest()
	r.must(err)
	image, err := r.layout.Image(list.Manifests[1].Digest)
	r.must(err)
	m, err := image.Manifest()
	r.must(err)
	for _, digest := range []v1.Hash{list.Manifests[0].Digest, list.Manifests[1].Digest, m.Config.Digest,
		m.Layers[0].Digest} {
		path := layoutPath(string(r.layout), digest.String())
		whole := r.read(path)
		for _, at := range []int{0, len(whole) / 2} {
			text := slices.Clone(whole)
			text[at] ^= 1
			r.must(os.WriteFile(path, text, 0o644))
			b := NewBuilder(r.dir, Covers{}, nil)
			err := b.AddImage(t.Context(), Item{Name: indexRef}, string(r.layout), []v1.Platform{amd64})
			err = errors.Join(err, b.AddImage(t.Context(), Item{Name: plainRef}, string(r.layout), []v1.Platform{amd64}))
			if err == nil {
				_, err = b.Write(t.Context(), filepath.Join(r.dir, "out.tar"), Options{})
			}
			if err == nil || !strings.Contains(err.Error(), "delete "+path) {
				t.Errorf("byte %d of %s is changed: %v", at, digest, err)
			}
		}
		r.must(os.WriteFile(path, whole, 0o644))
	}
}

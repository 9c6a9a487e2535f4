// Package artifacttest makes offline files for tests.
package artifacttest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/artifact"
)

// Where the parts of a sample come from: URLs without https:/, and repositories.
const (
	Program = "/dl.k8s.io/release/v1.34.4/bin/linux/amd64/kubeadm"
	Chart   = "/github.com/flannel-io/flannel/releases/download/v0.28.4/flannel.tgz"
	Index   = "registry.k8s.io/pause"
	Image   = "docker.io/library/busybox"
)

// Offline is an offline file with something of each kind.
type Offline struct {
	Path     string
	Program  []byte        // stored compressed
	Chart    []byte        // stored as it is
	Index    v1.ImageIndex // with the tag 3.10.1, for amd64 and arm64
	Image    v1.Image      // with the tags 1.37, 1.36 and latest
	Attached v1.Image      // without a tag, in the repository of Image, which is its subject
}

// program compresses well, and has no two equal ranges that a test compares.
func program() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 1_200_000; i++ {
		fmt.Fprintf(&b, "line %d of a program\n", i)
	}
	return b.Bytes()
}

func noise(n int) []byte {
	b := append([]byte("\x1f\x8b"), make([]byte, n)...)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b[2:])
	return b
}

func digestOf(t testing.TB, v interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := v.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// PlatformImage is an image for linux and an architecture, of made-up layers.
func PlatformImage(t testing.TB, arch string) v1.Image {
	t.Helper()
	image, err := random.Image(20_000, 2)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return mutate.MediaType(image, types.OCIManifestSchema1)
}

// PlatformIndex is an index with an image for each architecture, for linux.
func PlatformIndex(t testing.TB, arches ...string) v1.ImageIndex {
	t.Helper()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range arches {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: PlatformImage(t, arch),
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	return index
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Sample writes an offline file with something of each kind. packages are texts by their paths: packages/NAME/ARCH/...
func Sample(t testing.TB, packages map[string]string) *Offline {
	t.Helper()
	dir := t.TempDir()
	o := &Offline{Path: filepath.Join(dir, "out.tar"), Program: program(), Chart: noise(5000)}
	b := artifact.NewBuilder(dir, artifact.Covers{}, nil)
	add := func(i artifact.Item, text []byte) {
		t.Helper()
		p := filepath.Join(dir, hex.EncodeToString([]byte(i.File)))
		check(t, os.WriteFile(p, text, 0o600))
		check(t, b.AddFile(t.Context(), i, p))
	}
	add(artifact.Item{Kind: artifact.KindFile, Name: "kubeadm", File: "kubeadm", Source: "https:/" + Program}, o.Program)
	add(artifact.Item{Kind: artifact.KindChart, Name: "flannel", File: "flannel.tgz", Source: "https:/" + Chart}, o.Chart)
	add(artifact.Item{Kind: artifact.KindExtra, Name: "<i>note</i>", File: "<i>note</i>"}, []byte("a note"))
	add(artifact.Item{Kind: artifact.KindExtra, Name: "query", File: "query", Source: "http://example.org/get?id=1&x=%2F"},
		[]byte("answer of a query"))
	for file, text := range packages {
		add(artifact.Item{Kind: artifact.KindPackage, Name: "debian", File: file}, []byte(text))
	}
	o.images(t, b, filepath.Join(dir, "images"))
	_, err := b.Write(t.Context(), o.Path, artifact.Options{})
	check(t, err)
	return o
}

func (o *Offline) images(t testing.TB, b *artifact.Builder, dir string) {
	t.Helper()
	path, err := layout.Write(dir, empty.Index)
	check(t, err)
	amd, arm := v1.Platform{OS: "linux", Architecture: "amd64"}, v1.Platform{OS: "linux", Architecture: "arm64"}
	o.Index = PlatformIndex(t, "amd64", "arm64")
	o.Image = PlatformImage(t, "amd64")
	named := func(ref string) layout.Option {
		return layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": ref})
	}
	check(t, path.AppendIndex(o.Index, named(Index+":3.10.1")))
	for _, tag := range []string{":1.37", ":1.36", ":latest"} {
		check(t, path.AppendImage(o.Image, named(Image+tag)))
	}
	size, err := o.Image.Size()
	check(t, err)
	digest, err := o.Image.Digest()
	check(t, err)
	annotated := mutate.Annotations(PlatformImage(t, "amd64"), map[string]string{"made": "by a test"})
	o.Attached, _ = mutate.Subject(annotated,
		v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: digest, Size: size}).(v1.Image)
	signature := Image + "@" + digestOf(t, o.Attached)
	check(t, path.AppendImage(o.Attached, named(signature)))
	check(t, b.AddImage(t.Context(), artifact.Item{Name: Index + ":3.10.1"}, dir, []v1.Platform{amd, arm}))
	for _, tag := range []string{":1.37", ":1.36", ":latest"} {
		check(t, b.AddImage(t.Context(), artifact.Item{Name: Image + tag}, dir, []v1.Platform{amd}))
	}
	check(t, b.AddImage(t.Context(), artifact.Item{Name: signature}, dir, nil))
}

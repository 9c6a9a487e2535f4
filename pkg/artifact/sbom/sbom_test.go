package sbom

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"kubekey/pkg/artifact"
)

// goProgram builds a program with modules: one that depends on another, which is replaced.
var goProgram = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "sbom-program-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for file, text := range map[string]string{
		"main/go.mod": "module example.com/Main\n\ngo 1.26\n\nrequire example.com/dep v1.2.3\n\n" +
			"replace example.com/dep v1.2.3 => ../dep\n",
		"main/main.go": "package main\n\nimport \"example.com/dep\"\n\nfunc main() { println(dep.Name) }\n",
		"dep/go.mod":   "module example.com/dep\n\ngo 1.26\n",
		"dep/dep.go":   "package dep\n\nvar Name = \"dep\"\n",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", "../program", ".")
	cmd.Dir = filepath.Join(dir, "main")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return out, err
	}
	return os.ReadFile(filepath.Join(dir, "program"))
})

func built(t testing.TB) []byte {
	t.Helper()
	p, err := goProgram()
	if err != nil {
		t.Fatalf("%s: %s", err, p)
	}
	return p
}

// entry is a file of an archive.
type entry struct {
	name string
	text []byte
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Size: int64(len(e.text)), Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t testing.TB, text []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	return w.EncodeAll(text, nil)
}

func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		f, err := w.Create(e.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// debianPackage makes a package with dpkg-deb, whose control archive is compressed as named.
func debianPackage(t testing.TB, compression string) []byte {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not installed")
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "p/DEBIAN"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "Package: hello-kk\nVersion: 1:2.0+b1\nArchitecture: arm64\nSource: hello (2.0)\n" +
		"Maintainer: Nobody <nobody@example.com>\nDescription: says hello\n Version: 9\n"
	if err := os.WriteFile(filepath.Join(dir, "p/DEBIAN/control"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "p.deb")
	cmd := exec.Command("dpkg-deb", "-Z"+compression, "--uniform-compression", "-b", filepath.Join(dir, "p"), out)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", err, text)
	}
	deb, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return deb
}

// layerOf makes a layer of a tar that has been compressed.
func layerOf(t testing.TB, text []byte, media types.MediaType) v1.Layer {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
		tarball.WithMediaType(media))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// offline makes an offline file of files and images.
type offline struct {
	t   testing.TB
	dir string
	b   *artifact.Builder
}

func newOffline(t testing.TB) *offline {
	dir := t.TempDir()
	return &offline{t, dir, artifact.NewBuilder(dir, artifact.Covers{Kubernetes: []string{"v1.34.4"}}, nil)}
}

func (o *offline) file(item artifact.Item, text []byte) {
	o.t.Helper()
	path := filepath.Join(o.dir, strings.ReplaceAll(item.String(), " ", "-"))
	if err := os.WriteFile(path, text, 0o644); err != nil {
		o.t.Fatal(err)
	}
	if err := o.b.AddFile(o.t.Context(), item, path); err != nil {
		o.t.Fatal(err)
	}
}

func (o *offline) image(ref string, layers ...v1.Layer) {
	o.t.Helper()
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	if err != nil {
		o.t.Fatal(err)
	}
	image, err = mutate.ConfigFile(mutate.ConfigMediaType(image, types.OCIConfigJSON), &v1.ConfigFile{OS: "linux",
		Architecture: "amd64", RootFS: v1.RootFS{Type: "layers", DiffIDs: diffIDs(o.t, layers)}})
	if err != nil {
		o.t.Fatal(err)
	}
	dir := filepath.Join(o.dir, "layout")
	l, err := layout.FromPath(dir)
	if err != nil {
		if l, err = layout.Write(dir, empty.Index); err != nil {
			o.t.Fatal(err)
		}
	}
	if _, err := name.ParseReference(ref); err != nil {
		o.t.Fatal(err)
	}
	annotations := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": ref})
	if err := l.AppendImage(image, annotations); err != nil {
		o.t.Fatal(err)
	}
	platforms := []v1.Platform{{OS: "linux", Architecture: "amd64"}}
	if err := o.b.AddImage(o.t.Context(), artifact.Item{Name: ref}, dir, platforms); err != nil {
		o.t.Fatal(err)
	}
}

func diffIDs(t testing.TB, layers []v1.Layer) []v1.Hash {
	t.Helper()
	var ids []v1.Hash
	for _, l := range layers {
		id, err := l.DiffID()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// open writes the file and opens it.
func (o *offline) open() *artifact.File {
	o.t.Helper()
	path := filepath.Join(o.dir, "offline.tar")
	if _, err := o.b.Write(o.t.Context(), path, artifact.Options{}); err != nil {
		o.t.Fatal(err)
	}
	f, err := artifact.Open(path)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = f.Close() })
	return f
}

const debianRelease = "NAME=\"Debian\"\nID=debian\nVERSION_ID=\"12\"\n"

const debianStatus = `Package: libc6
Status: install ok installed
Architecture: amd64
Source: glibc
Version: 2.36-9+deb12u7
Description: GNU C Library
 Version: not this one

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1.0
`

const alpineInstalled = "C:Q1abc=\nP:musl\nV:1.2.5-r0\nA:x86_64\nL:MIT\no:musl\nF:lib\nR:ld-musl-x86_64.so.1\n\n" +
	"P:odd\nV:1\nA:x86_64\nL:see the file COPYING\n\n"

// all makes a file that has something of everything.
func all(t testing.TB) *artifact.File {
	p := built(t)
	o := newOffline(t)
	o.file(artifact.Item{Kind: artifact.KindFile, Name: "kubeadm", Version: "v1.34.4", Architecture: "amd64",
		File: "amd64/kubeadm", Source: "https://user:secret@dl.example.com/kubeadm", Licence: "Apache-2.0"}, p)
	o.file(artifact.Item{Kind: artifact.KindFile, Name: "runc", Version: "v1.3.0", File: "runc.tgz"},
		gzipped(t, tarOf(t, entry{"bin/runc", p}, entry{"README", []byte("x")})))
	o.file(artifact.Item{Kind: artifact.KindFile, Name: "tool", File: "tool.zip"}, zipOf(t, entry{"tool", p}))
	o.file(artifact.Item{Kind: artifact.KindChart, Name: "flannel", Version: "v0.28.4", File: "flannel.tgz"},
		gzipped(t, tarOf(t, entry{"flannel/Chart.yaml", []byte("name: flannel\n")})))
	o.file(artifact.Item{Kind: artifact.KindExtra, Name: "notes", Licence: "ask us"}, []byte("hello"))
	o.file(artifact.Item{Kind: artifact.KindPackage, Name: "hello-kk", Distribution: "debian-12"}, debianPackage(t, "xz"))
	debian := layerOf(t, gzipped(t, tarOf(t, entry{"etc/os-release", []byte(debianRelease)},
		entry{"var/lib/dpkg/status", []byte(debianStatus)}, entry{"usr/bin/old", p})), types.OCILayer)
	upper := layerOf(t, zstandard(t, tarOf(t, entry{"usr/bin/.wh.old", nil}, entry{"usr/bin/new", p},
		entry{"var/lib/dpkg/status.d/tzdata", []byte("Package: tzdata\nVersion: 2024a\nArchitecture: all\n")},
		entry{"var/lib/dpkg/status.d/tzdata.md5sums", []byte("Package: wrong\nVersion: 1\n")})), types.OCILayerZStd)
	o.image("registry.example.com/group/debian:1", debian, upper)
	o.image("docker.io/library/alpine:3.20", layerOf(t, tarOf(t, entry{"lib/apk/db/installed", []byte(alpineInstalled)},
		entry{"etc/os-release", []byte("ID=alpine\nVERSION_ID=3.20.1\n")}), types.OCIUncompressedLayer))
	return o.open()
}

// document makes a document.
func document(t testing.TB, f *artifact.File, cache string, format Format) []byte {
	t.Helper()
	text, err := Make(t.Context(), f.Manifest, f, cache, format)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

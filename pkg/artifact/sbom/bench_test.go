package sbom

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/artifact"
)

// toolchain makes a file of the programs of Go: as files, and in images.
func toolchain(b *testing.B) *artifact.File {
	b.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	o := newOffline(b)
	var entries []entry
	err = filepath.WalkDir(strings.TrimSpace(string(out)), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "/bin/") && !strings.Contains(path, "/pkg/tool/") {
			return err
		}
		text, err := os.ReadFile(path)
		entries = append(entries, entry{"usr/bin/" + d.Name(), text})
		o.file(artifact.Item{Kind: artifact.KindFile, Name: d.Name(), Version: fmt.Sprint(len(entries))}, text)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	base := entry{"var/lib/dpkg/status", []byte(debianStatus)}
	for i := range 4 {
		// Another order makes another layer.
		entries = append(entries[1:], entries[0])
		o.image(fmt.Sprintf("registry.example.com/tools:%d", i),
			layerOf(b, gzipped(b, tarOf(b, append([]entry{base}, entries...)...)), types.OCILayer))
	}
	return o.open()
}

// BenchmarkMake compares with the floor: reading all blobs on one core.
func BenchmarkMake(b *testing.B) {
	f := toolchain(b)
	var size int64
	for _, blob := range f.Manifest.Blobs {
		size += blob.Size
	}
	run := func(name string, do func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				do(b)
			}
		})
	}
	run("floor-read", func(b *testing.B) {
		for _, blob := range f.Manifest.Blobs {
			r, err := f.Blob(blob.Digest)
			if err == nil {
				_, err = io.Copy(io.Discard, r)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	run("floor-verify", func(b *testing.B) {
		if err := f.Verify(b.Context(), nil, nil); err != nil {
			b.Fatal(err)
		}
	})
	run("first", func(b *testing.B) { document(b, f, "", SPDX) })
	cache := b.TempDir()
	document(b, f, cache, SPDX)
	run("cached", func(b *testing.B) { document(b, f, cache, SPDX) })
	run("cached-cyclonedx", func(b *testing.B) { document(b, f, cache, CycloneDX) })
}

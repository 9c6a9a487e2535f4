package offline

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// releaseDir makes the test binary write a release into this folder, whose name is its version: this process would
// count the memory that it takes as kk's.
const releaseDir = "KK_BENCH_RELEASE"

// images is how many images a release has. Those of Kubernetes, the first ones, change with each patch release.
const (
	images  = 30
	changed = 4
)

// release makes what files and images of a release are like: programs that compress to half, in the folder programs,
// and an OCI layout in the folder images.
func (b *bench) release(version string) string {
	b.Helper()
	dir := filepath.Join(b.dir, version)
	b.run([]string{releaseDir + "=" + dir}, os.Args[0])
	return dir
}

func writeRelease(dir string) error {
	return errors.Join(writePrograms(filepath.Join(dir, "programs"), filepath.Base(dir)),
		writeImages(filepath.Join(dir, "images"), filepath.Base(dir)))
}

// noise returns numbers that are the same for the same words.
func noise(words ...any) io.Reader {
	var seed [32]byte
	copy(seed[:], fmt.Sprint(words...))
	return rand.NewChaCha8(seed)
}

// writePrograms writes three programs that change with each release, and one that stays.
func writePrograms(dir, version string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, size := range map[string]int{"kubeadm": 71 << 20, "kubectl": 58 << 20, "kubelet": 80 << 20, "helm": 60 << 20} {
		if name == "helm" {
			version = ""
		}
		text := make([]byte, size)
		if _, err := io.ReadFull(noise(name, version), text); err != nil {
			return err
		}
		for i := range text {
			text[i] &= 0x0f // compresses to half
		}
		if err := os.WriteFile(filepath.Join(dir, name), slices.Concat([]byte("\x7fELF"), text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// writeImages writes an OCI layout of images: each has one of four bases of 20 MB, and 12 MB of its own in three layers.
// They are gzip already, which skopeo would compress otherwise, and do not compress any further.
func writeImages(dir, version string) error {
	layer := func(size int64, words ...any) v1.Layer {
		var data bytes.Buffer
		z, _ := gzip.NewWriterLevel(&data, gzip.NoCompression) // the level exists, and memory has no errors
		_, _ = io.CopyN(z, noise(words...), size)
		_ = z.Close()
		return static.NewLayer(data.Bytes(), types.OCILayer)
	}
	var bases []v1.Layer
	for i := range 4 {
		bases = append(bases, layer(20<<20, "base", i))
	}
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for i := range images {
		if i == changed {
			version = ""
		}
		image, err := platformImage(bases[i%len(bases)], layer(8<<20, "a", i, version), layer(3<<20, "b", i, version),
			layer(1<<20, "c", i, version))
		if err != nil {
			return err
		}
		name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "registry.example/" + repository(i)})
		if err := at.AppendImage(image, name); err != nil {
			return err
		}
	}
	return nil
}

// repository is the name of an image without its registry.
func repository(i int) string { return fmt.Sprintf("team%d/app%d:v1.%d", i%5, i, i) }

func platformImage(layers ...v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(image, layers...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.OS, config.Architecture = "linux", "amd64"
	return mutate.ConfigFile(image, config)
}

// Package sbom writes what an offline file consists of, as SPDX 2.3 or CycloneDX 1.6.
//
// Each item of the file is a component. Inside of items it finds the modules of Go programs (plain, in
// archives and in the layers of images), and the packages of Debian and Alpine layers. Content is
// expected to be hostile: reading is bounded, and what cannot be read is named in the document, as is
// everything else that is not known.
package sbom

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"kubekey/pkg/artifact"
)

// Source is where the bytes of a file are read. *artifact.File is one.
type Source interface {
	// Blob returns a blob by its digest.
	Blob(digest string) (io.Reader, error)
	// Content returns the content of an item, decoded.
	Content(item artifact.Item) (io.ReadCloser, error)
}

// Format is the form of a document.
type Format string

// The formats, both as JSON.
const (
	SPDX      Format = "spdx"      // SPDX 2.3
	CycloneDX Format = "cyclonedx" // CycloneDX 1.6
)

// Formats lists the formats.
func Formats() []Format { return []Format{SPDX, CycloneDX} }

// Make writes the SBOM of everything in a manifest. What is found in blobs is kept in the directory cache,
// by digest, for the next call; "" means that nothing is kept. The same manifest and blobs make the same
// bytes. A blob that cannot be read is no error: the document says so. Signatures and attestations that are
// attached to images are not in it. Make fails only if the format is unknown, ctx ends or the cache cannot
// be written.
func Make(ctx context.Context, m *artifact.Manifest, from Source, cache string, format Format) ([]byte, error) {
	write := map[Format]func(*inventory) ([]byte, error){SPDX: writeSPDX, CycloneDX: writeCycloneDX}[format]
	if write == nil {
		return nil, fmt.Errorf("unknown SBOM format %q: use %s or %s", format, SPDX, CycloneDX)
	}
	m = runnable(m)
	if cache == "" {
		dir, err := os.MkdirTemp("", "sbom-*")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }() // what is left of it does no harm
		cache = dir
	}
	s := &survey{from: from, cache: cache, workers: runtime.GOMAXPROCS(0), limits: defaultLimits}
	if err := s.run(ctx, m); err != nil {
		return nil, err
	}
	inv, err := take(ctx, m, s)
	if err != nil {
		return nil, err
	}
	return write(inv)
}

// runnable returns a manifest without signatures and attestations of images: they are about components, and none.
func runnable(m *artifact.Manifest) *artifact.Manifest {
	reduced := *m
	reduced.Items = slices.DeleteFunc(slices.Clone(m.Items), artifact.Item.IsAttached)
	return &reduced
}

package sbom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/artifact"
)

// survey reads the blobs of a manifest.
type survey struct {
	from    Source
	cache   string
	workers int
	limits  limits
}

// findings is what is in the items of a manifest.
type findings struct {
	blobs  map[blobKey]*contents
	images map[string][]image // by the digest of an item's blob
	// problems of images whose manifests could not be read, by the same digest
	problems map[string][]string
}

// blobKey is a blob and how it was read.
type blobKey struct {
	digest string // of the content: of an item, or of a layer
	layer  bool
}

// image is one image of an item, for one platform.
type image struct {
	digest string
	layers []blobKey // the lowest first
}

// job is a blob to read.
type job struct {
	key  blobKey
	size int64
	open func() (io.ReadCloser, error)
}

// run reads each blob once, on several cores. Blobs that cannot be read are in the findings.
func (s *survey) run(ctx context.Context, m *artifact.Manifest) (*findings, error) {
	out := &findings{blobs: map[blobKey]*contents{}, images: map[string][]image{}, problems: map[string][]string{}}
	jobs := s.plan(m, out)
	results := make([]*contents, len(jobs))
	failures := make([]error, len(jobs))
	next := make(chan int)
	var group sync.WaitGroup
	for range min(s.workers, max(1, len(jobs))) {
		group.Go(func() {
			for n := range next {
				if ctx.Err() == nil {
					results[n], failures[n] = s.read(ctx, jobs[n])
				}
			}
		})
	}
	for n := range jobs {
		next <- n
	}
	close(next)
	group.Wait()
	if err := errors.Join(append(failures, ctx.Err())...); err != nil {
		return nil, err
	}
	for n, j := range jobs {
		out.blobs[j.key] = results[n]
	}
	return out, nil
}

// plan lists the blobs to read, the largest first, and reads the manifests of images.
func (s *survey) plan(m *artifact.Manifest, out *findings) []job {
	sizes := make(map[string]int64, len(m.Blobs))
	for _, b := range m.Blobs {
		sizes[b.Digest] = b.Size
	}
	var jobs []job
	seen := map[blobKey]bool{}
	add := func(j job) {
		if !seen[j.key] {
			seen[j.key] = true
			jobs = append(jobs, j)
		}
	}
	for _, item := range m.Items {
		if item.Kind != artifact.KindImage {
			add(job{itemKey(item), item.Size, func() (io.ReadCloser, error) { return s.from.Content(item) }})
			continue
		}
		w := walk{from: s.from, sizes: sizes, seen: map[string]bool{}}
		w.manifest(v1.Descriptor{MediaType: item.MediaType, Digest: v1.Hash{Algorithm: "sha256", Hex: item.SHA256}})
		out.images[item.Blob], out.problems[item.Blob] = w.images, w.problems
		for _, i := range w.images {
			for _, layer := range i.layers {
				add(job{layer, sizes[layer.digest], func() (io.ReadCloser, error) {
					r, err := s.from.Blob(layer.digest)
					return io.NopCloser(r), err
				}})
			}
		}
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return int(min(max(b.size-a.size, -1), 1)) })
	return jobs
}

// itemKey is the blob of an item that is no image.
func itemKey(i artifact.Item) blobKey { return blobKey{digest: "sha256:" + i.SHA256} }

// Limits of the manifests of images.
const (
	maxImageManifest = 4 << 20
	maxImages        = 1000 // of an item
)

// walk finds the images of an item.
type walk struct {
	from     Source
	sizes    map[string]int64
	seen     map[string]bool
	images   []image
	problems []string
}

func (w *walk) problem(d v1.Hash, err error) {
	w.problems = append(w.problems, text(fmt.Sprintf("could not be read: %s: %s", d, err)))
}

// manifest reads the manifest of an image, or an index and its images. Images that the file does not have
// are for platforms that it was not made for.
func (w *walk) manifest(d v1.Descriptor) {
	digest := d.Digest.String()
	size, has := w.sizes[digest]
	if !has || w.seen[digest] || len(w.seen) == maxImages {
		return
	}
	w.seen[digest] = true
	if !d.MediaType.IsIndex() && !d.MediaType.IsImage() {
		return
	}
	if size > maxImageManifest {
		w.problem(d.Digest, fmt.Errorf("its manifest has more than %d bytes", maxImageManifest))
		return
	}
	r, err := w.from.Blob(digest)
	if err != nil {
		w.problem(d.Digest, err)
		return
	}
	if d.MediaType.IsIndex() {
		w.index(d.Digest, r)
	} else {
		w.image(d.Digest, r)
	}
}

func (w *walk) index(digest v1.Hash, r io.Reader) {
	index, err := v1.ParseIndexManifest(r)
	if err != nil {
		w.problem(digest, err)
		return
	}
	for _, d := range index.Manifests {
		w.manifest(d)
	}
}

func (w *walk) image(digest v1.Hash, r io.Reader) {
	m, err := v1.ParseManifest(r)
	if err != nil {
		w.problem(digest, err)
		return
	}
	if !m.Config.MediaType.IsConfig() {
		return // a signature or an attestation
	}
	i := image{digest: digest.String()}
	for _, l := range m.Layers {
		if l.MediaType == inToto {
			return
		}
		if _, has := w.sizes[l.Digest.String()]; has && l.MediaType.IsLayer() {
			i.layers = append(i.layers, blobKey{l.Digest.String(), true})
		} else {
			w.problem(l.Digest, fmt.Errorf("the file does not have this layer of type %q", l.MediaType))
		}
	}
	w.images = append(w.images, i)
}

// inToto is the type of what an image has instead of layers when it is an attestation.
const inToto types.MediaType = "application/vnd.in-toto+json"

// read returns what is in a blob, from the cache or by reading it.
func (s *survey) read(ctx context.Context, j job) (*contents, error) {
	if c, ok := s.cached(j.key); ok {
		return c, nil
	}
	unread := func(err error) *contents {
		c := newContents()
		c.Problems = []string{text("could not be read: " + err.Error())}
		return c
	}
	c, err := j.open()
	if err != nil {
		return unread(err), nil
	}
	defer func() { _ = c.Close() }() // only read
	if s.cache != "" {
		if err := os.MkdirAll(s.cache, 0o755); err != nil {
			return nil, err
		}
	}
	scan, err := newScanner(s.cache, s.limits)
	if err != nil {
		return nil, err
	}
	from := &watched{ctx: ctx, from: c}
	found := scan.scan(from, j.size, j.key.layer)
	// The digest of a blob is checked when its last byte is read.
	_, _ = io.Copy(io.Discard, from) // watched has the error
	if err := scan.close(); err != nil {
		return nil, err
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil // run returns the error
	case from.err != nil:
		return unread(from.err), nil // nothing in it can be relied on, and another copy may be whole
	}
	return found, s.keep(j.key, found)
}

// watched remembers the error of a source, and stops when the context ends.
type watched struct {
	ctx  context.Context
	from io.Reader
	err  error
}

func (w *watched) Read(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.err = w.ctx.Err(); w.err != nil {
		return 0, w.err
	}
	n, err := w.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// findingsVersion is in the names of files in the cache. It changes when more or other things are found.
const findingsVersion = "1"

// maxCached is the largest file in bytes that is read from the cache.
const maxCached = 64 << 20

func (s *survey) path(k blobKey) string {
	kind := "content"
	if k.layer {
		kind = "layer"
	}
	return filepath.Join(s.cache, fmt.Sprintf("%s-%s-%s.json", strings.TrimPrefix(k.digest, "sha256:"), kind, findingsVersion))
}

// cached returns what an earlier call has found. A file that cannot be read is replaced.
func (s *survey) cached(k blobKey) (*contents, bool) {
	if s.cache == "" {
		return nil, false
	}
	f, err := os.Open(s.path(k))
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }() // only read
	c := newContents()
	d := json.NewDecoder(io.LimitReader(f, maxCached))
	d.DisallowUnknownFields()
	return c, d.Decode(c) == nil && c.Programs != nil && c.Databases != nil && c.Releases != nil
}

// keep writes what was found to the cache, under a temporary name first.
func (s *survey) keep(k blobKey, c *contents) error {
	if s.cache == "" {
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.cache, ".sbom-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails once it is renamed
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), s.path(k))
}

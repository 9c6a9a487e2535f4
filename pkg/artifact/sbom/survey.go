package sbom

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// survey reads the blobs of a manifest. What it finds in them is in the cache: all of it together may be
// more than fits into memory.
type survey struct {
	from    Source
	cache   string // directory
	workers int
	limits  limits

	jobs   map[blobKey]job
	images map[string][]image // by the digest of an item's blob
	// problems of images whose manifests could not be read, by the same digest
	problems map[string][]string

	mu     sync.Mutex
	failed map[blobKey]string // why blobs could not be read
}

// blobKey is a blob and how it is read.
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

// run reads each blob that is not in the cache once, on several cores.
func (s *survey) run(ctx context.Context, m *artifact.Manifest) error {
	s.jobs, s.failed = map[blobKey]job{}, map[blobKey]string{}
	s.images, s.problems = map[string][]image{}, map[string][]string{}
	if err := os.MkdirAll(s.cache, 0o755); err != nil {
		return err
	}
	jobs := s.plan(m)
	next := make(chan job)
	var group sync.WaitGroup
	var failures []error
	for range min(s.workers, max(1, len(jobs))) {
		group.Go(func() {
			for j := range next {
				if err := s.read(ctx, j); err != nil && ctx.Err() == nil {
					s.mu.Lock()
					failures = append(failures, err)
					s.mu.Unlock()
				}
			}
		})
	}
	for _, j := range jobs {
		next <- j
	}
	close(next)
	group.Wait()
	return errors.Join(append(failures, ctx.Err())...)
}

// plan lists the blobs to read, the largest first, and reads the manifests of images.
func (s *survey) plan(m *artifact.Manifest) []job {
	sizes := make(map[string]int64, len(m.Blobs))
	for _, b := range m.Blobs {
		sizes[b.Digest] = b.Size
	}
	var jobs []job
	add := func(j job) {
		if _, known := s.jobs[j.key]; !known {
			s.jobs[j.key] = j
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
		s.images[item.Blob], s.problems[item.Blob] = w.images, w.problems
		for _, i := range w.images {
			for _, layer := range i.layers {
				add(job{layer, sizes[layer.digest], func() (io.ReadCloser, error) {
					r, err := s.from.Blob(layer.digest)
					return io.NopCloser(r), err
				}})
			}
		}
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(b.size, a.size) })
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
	var text []byte
	if err == nil {
		text, err = io.ReadAll(r) // to the end, where the digest is checked
	}
	if err != nil {
		w.problem(d.Digest, err)
		return
	}
	if d.MediaType.IsIndex() {
		w.index(d.Digest, text)
	} else {
		w.image(d.Digest, text)
	}
}

func (w *walk) index(digest v1.Hash, text []byte) {
	index, err := v1.ParseIndexManifest(bytes.NewReader(text))
	if err != nil {
		w.problem(digest, err)
		return
	}
	for _, d := range index.Manifests {
		w.manifest(d)
	}
}

func (w *walk) image(digest v1.Hash, text []byte) {
	m, err := v1.ParseManifest(bytes.NewReader(text))
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

// read finds what is in a blob, unless the cache has it. The error is one of the cache, or that of ctx.
func (s *survey) read(ctx context.Context, j job) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, err := os.Stat(s.path(j.key)); err == nil {
		return nil
	}
	found, err := s.scan(ctx, j)
	if err == nil && found != nil {
		err = s.keep(j.key, found)
	}
	return err
}

// scan reads a blob. It returns nil, and records why, if the blob cannot be read: nothing in it can be
// relied on then, and another copy may be whole.
func (s *survey) scan(ctx context.Context, j job) (*contents, error) {
	fail := func(err error) {
		s.mu.Lock()
		s.failed[j.key] = text("could not be read: " + err.Error())
		s.mu.Unlock()
	}
	c, err := j.open()
	if err != nil {
		fail(err)
		return nil, nil
	}
	defer func() { _ = c.Close() }() // only read
	scan, err := newScanner(ctx, s.cache, s.limits)
	if err != nil {
		return nil, err
	}
	from := &watched{ctx: ctx, from: c}
	found := scan.scan(from, j.size, j.key.layer)
	// The digest of a blob is checked when its last byte is read.
	_, _ = io.Copy(io.Discard, from) // watched has the error
	if err := errors.Join(ctx.Err(), scan.failed, scan.close()); err != nil {
		return nil, err
	}
	if from.err != nil {
		fail(from.err)
		return nil, nil
	}
	return found, nil
}

// contents returns what is in a blob. The error is one of the cache, or that of ctx.
func (s *survey) contents(ctx context.Context, k blobKey) (*contents, error) {
	if c, ok := s.cached(k); ok {
		return c, nil
	}
	var c *contents
	if s.failed[k] == "" { // the file in the cache is damaged: it is replaced
		var err error
		if c, err = s.scan(ctx, s.jobs[k]); err != nil {
			return nil, err
		}
		if c != nil {
			return c, s.keep(k, c)
		}
	}
	c = newContents()
	c.Problems = []string{s.failed[k]}
	return c, nil
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
const findingsVersion = "2"

// kept is a file in the cache.
type kept struct {
	SHA256   string          `json:"sha256"` // of the contents, so that damage is found
	Contents json.RawMessage `json:"contents"`
}

// maxCached is the largest file in bytes that is read from the cache.
const maxCached = 64 << 20

func (s *survey) path(k blobKey) string {
	kind := "content"
	if k.layer {
		kind = "layer"
	}
	digits := strings.TrimPrefix(k.digest, "sha256:")
	return filepath.Join(s.cache, fmt.Sprintf("%s-%s-%s.json", digits, kind, findingsVersion))
}

// cached returns what the cache has of a blob.
func (s *survey) cached(k blobKey) (*contents, bool) {
	f, err := os.Open(s.path(k))
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxCached))
	var file kept
	if err != nil || json.Unmarshal(text, &file) != nil || file.SHA256 != sumOf(file.Contents) {
		return nil, false
	}
	c := newContents()
	return c, json.Unmarshal(file.Contents, c) == nil
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// keep writes what was found to the cache, under a temporary name first.
func (s *survey) keep(k blobKey, c *contents) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if text, err = json.Marshal(kept{sumOf(text), text}); err != nil {
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

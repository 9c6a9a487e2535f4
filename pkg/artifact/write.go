package artifact

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/klauspost/compress/zstd"
)

// Builder collects items and writes a file. Its methods can be called concurrently.
type Builder struct {
	cache    string // directory for compressed copies
	mu       sync.Mutex
	manifest Manifest
	sources  map[string]string // digest of a blob → the file that has its bytes
}

// NewBuilder returns a builder that keeps compressed copies of programs in the directory cache.
func NewBuilder(cache string, covers Covers, catalog []Document) *Builder {
	return &Builder{cache: cache, manifest: Manifest{Format: Format, Covers: covers, Catalog: catalog, Items: []Item{},
		Blobs: []Blob{}}, sources: map[string]string{}}
}

// AddFile adds a file of the control node as an item of which all but size, digests and encoding are set.
// SHA256, if set, must match. A program is compressed, an archive is stored as it is.
func (b *Builder) AddFile(ctx context.Context, item Item, path string) error {
	size, digest, err := sum(ctx, path)
	if err != nil {
		return fmt.Errorf("%s: %w", item, err)
	}
	if item.SHA256 != "" && item.SHA256 != digest {
		return fmt.Errorf("%s: %s has the sha256 %s instead of %s: delete it, and export again", item, path, digest,
			item.SHA256)
	}
	item.Size, item.SHA256, item.Blob = size, digest, "sha256:"+digest
	blob := Blob{item.Blob, size}
	packed, err := isPacked(path)
	if err != nil {
		return fmt.Errorf("%s: %w", item, err)
	}
	if !packed {
		if path, err = b.compress(ctx, path, digest); err != nil {
			return fmt.Errorf("%s: %w", item, err)
		}
		if blob.Size, digest, err = sum(ctx, path); err != nil {
			return fmt.Errorf("%s: %w", item, err)
		}
		blob.Digest = "sha256:" + digest
		item.Blob, item.Encoding = blob.Digest, Zstd
	}
	b.add(item, map[Blob]string{blob: path})
	return nil
}

func (b *Builder) add(item Item, blobs map[Blob]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.manifest.Items = append(b.manifest.Items, item)
	for blob, path := range blobs {
		if _, known := b.sources[blob.Digest]; !known {
			b.manifest.Blobs = append(b.manifest.Blobs, blob)
		}
		b.sources[blob.Digest] = path
	}
}

// packed are the first bytes of formats that are compressed already: gzip, zstd, xz, bzip2, zip, rpm, deb.
var packed = []string{"\x1f\x8b", "\x28\xb5\x2f\xfd", "\xfd7zXZ\x00", "BZh", "PK\x03\x04", "\xed\xab\xee\xdb",
	"!<arch>\ndebian"}

func isPacked(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // only read
	start := make([]byte, 16)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	return slices.ContainsFunc(packed, func(p string) bool { return bytes.HasPrefix(start[:n], []byte(p)) }), nil
}

// compressed names the copies in the cache: another encoder makes other bytes, so its version is in there.
const compressed = "zstd-1.20-default"

// compress returns the compressed copy of a file with a digest, which it makes if the cache lacks it.
func (b *Builder) compress(ctx context.Context, path, digest string) (string, error) {
	dir := filepath.Join(b.cache, compressed)
	dest := filepath.Join(dir, digest+".zst")
	if decodes(ctx, dest, digest) {
		return dest, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	src, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = src.Close() }() // only read
	return dest, replace(dest, func(w io.Writer) error {
		// One goroutine: with several, the bytes depend on their number.
		z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
		if err != nil {
			return err
		}
		_, err = io.Copy(z, &stoppable{ctx, src})
		return errors.Join(err, z.Close())
	})
}

// decodes reports whether a compressed copy is whole.
func decodes(ctx context.Context, path, digest string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	d, err := zstd.NewReader(f)
	if err != nil {
		return false
	}
	defer d.Close()
	h := sha256.New()
	_, err = io.Copy(h, &stoppable{ctx, d})
	return err == nil && hex.EncodeToString(h.Sum(nil)) == digest
}

// replace writes a file under a temporary name, syncs it, and renames it.
func replace(dest string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(dest), "."+filepath.Base(dest)+".*.part")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails once it is renamed
	w := bufio.NewWriterSize(f, 1<<20)
	err = write(w)
	if err = errors.Join(err, w.Flush(), f.Chmod(0o644)); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), dest)
}

func sum(ctx context.Context, path string) (int64, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = f.Close() }() // only read
	h := sha256.New()
	n, err := io.Copy(h, &stoppable{ctx, f})
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// AddImage adds the image of an OCI layout that has this name there. Of an index, the images for the
// platforms must be complete in the layout; others are not included, and the index keeps its digest.
func (b *Builder) AddImage(ctx context.Context, item Item, dir string, platforms []v1.Platform) error {
	item.Kind = KindImage
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", item, err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("%s: %w", item, err)
	}
	named := match.Name(item.Name)
	i := slices.IndexFunc(list.Manifests, named)
	if i < 0 {
		return fmt.Errorf("%s is not in the layout %s", item, dir)
	}
	c := imageCollector{ctx: ctx, dir: dir, platforms: platforms, blobs: map[Blob]string{}, found: map[string]bool{}}
	if err := c.collect(list.Manifests[i]); err != nil {
		return fmt.Errorf("%s: %w", item, err)
	}
	item.MediaType, item.SHA256 = list.Manifests[i].MediaType, list.Manifests[i].Digest.Hex
	item.Blob = "sha256:" + item.SHA256
	for _, p := range platforms {
		if !c.found[p.String()] {
			return fmt.Errorf("%s has no image for %s", item, p)
		}
		item.Platforms = append(item.Platforms, p.String())
	}
	for blob := range c.blobs {
		item.Blobs = append(item.Blobs, blob.Digest)
		item.Size += blob.Size
	}
	slices.Sort(item.Blobs)
	slices.Sort(item.Platforms)
	b.add(item, c.blobs)
	return nil
}

// imageCollector finds the blobs of an image.
type imageCollector struct {
	ctx       context.Context
	dir       string
	platforms []v1.Platform
	blobs     map[Blob]string
	found     map[string]bool // platforms
}

func (c *imageCollector) path(d v1.Hash) string {
	return filepath.Join(c.dir, "blobs", d.Algorithm, d.Hex)
}

func (c *imageCollector) collect(d v1.Descriptor) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	path := c.path(d.Digest)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() != d.Size {
		return fmt.Errorf("%s has %d bytes instead of %d", d.Digest, info.Size(), d.Size)
	}
	c.blobs[Blob{d.Digest.String(), d.Size}] = path
	switch {
	case d.MediaType.IsIndex():
		return c.index(path)
	case d.MediaType.IsImage():
		return c.image(path)
	}
	return nil
}

// index collects the images for the platforms. The image for another platform than a descriptor says is
// an error.
func (c *imageCollector) index(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	m, err := v1.ParseIndexManifest(io.LimitReader(f, maxManifest))
	if err != nil {
		return err
	}
	for _, d := range m.Manifests {
		if d.Platform == nil || !slices.ContainsFunc(c.platforms, func(p v1.Platform) bool { return d.Platform.Satisfies(p) }) {
			continue
		}
		if err := c.collect(d); err != nil {
			return fmt.Errorf("the image for %s: %w", d.Platform, err)
		}
		if !slices.ContainsFunc(c.platforms, func(p v1.Platform) bool { return c.found[p.String()] && d.Platform.Satisfies(p) }) {
			return fmt.Errorf("the index has an image for %s that is for another platform", d.Platform)
		}
	}
	return nil
}

func (c *imageCollector) image(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	m, err := v1.ParseManifest(io.LimitReader(f, maxManifest))
	if err != nil {
		return err
	}
	if err := c.collect(m.Config); err != nil {
		return err
	}
	for _, l := range m.Layers {
		if !l.MediaType.IsDistributable() {
			continue
		}
		if err := c.collect(l); err != nil {
			return err
		}
	}
	return c.platform(c.path(m.Config.Digest))
}

// platform records the platform of an image.
func (c *imageCollector) platform(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	config, err := v1.ParseConfigFile(io.LimitReader(f, maxManifest))
	if err != nil {
		return err
	}
	is := config.Platform()
	for _, p := range c.platforms {
		if is != nil && is.Satisfies(p) {
			c.found[p.String()] = true
		}
	}
	return nil
}

// Manifest returns the manifest in its final order, for a look at what would be written.
func (b *Builder) Manifest() (*Manifest, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.manifest.sort()
	return &b.manifest, b.manifest.check()
}

// Write writes the file: to path.part, which is synced and renamed. changed is false, and nothing is
// written, if the file exists with these contents; the check reads its head only. progress may be nil.
func (b *Builder) Write(ctx context.Context, path string, progress func(done, total int64)) (changed bool, err error) {
	m, err := b.Manifest()
	if err != nil {
		return false, err
	}
	text, err := m.encode()
	if err != nil {
		return false, err
	}
	if len(text) > maxManifest {
		return false, fmt.Errorf("the manifest has %d bytes: a file can have one of %d", len(text), maxManifest)
	}
	if same(path, text) {
		return false, nil
	}
	index, err := m.index()
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return false, err
	}
	w := &writer{ctx: ctx, w: bufio.NewWriterSize(f, 1<<20), progress: progress}
	for _, blob := range m.Blobs {
		w.total += blob.Size
	}
	for _, e := range []struct{ name, text string }{
		{layoutName, layoutText}, {indexName, string(index)}, {manifestName, string(text)},
	} {
		w.entry(e.name, int64(len(e.text)), bytes.NewReader([]byte(e.text)))
	}
	for _, blob := range m.Blobs {
		w.blob(blob, b.sources[blob.Digest])
	}
	w.write(make([]byte, trailer))
	err = errors.Join(w.err, w.w.Flush())
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(part) // what was fetched is in the cache
		return false, w.explain(path, err)
	}
	return true, os.Rename(part, path)
}

// same reports whether the file at path has this manifest.
func same(path string, manifest []byte) bool {
	f, err := Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	have, err := f.Manifest.encode()
	return err == nil && bytes.Equal(have, manifest) && f.Check() == nil
}

// writer writes entries until one fails.
type writer struct {
	ctx         context.Context
	w           *bufio.Writer
	done, total int64
	progress    func(done, total int64)
	err         error
}

func (w *writer) write(p []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(p)
	}
}

func (w *writer) entry(name string, size int64, from io.Reader) {
	if w.err != nil {
		return
	}
	h, err := header(name, size)
	if err != nil {
		w.err = err
		return
	}
	w.write(h)
	if w.err == nil {
		_, w.err = io.Copy(w.w, &stoppable{w.ctx, from})
	}
	w.write(make([]byte, padded(size)-size))
}

// blob copies a blob, and verifies it.
func (w *writer) blob(b Blob, path string) {
	if w.err != nil {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		w.err = err
		return
	}
	defer func() { _ = f.Close() }() // only read
	w.entry(blobName(b.Digest), b.Size, verified(f, b.Size, b.Digest))
	if w.err != nil {
		w.err = fmt.Errorf("%s: %w", path, w.err)
	}
	w.done += b.Size
	if w.progress != nil {
		w.progress(w.done, w.total)
	}
}

// explain says how to fix a full disk.
func (w *writer) explain(path string, err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	return fmt.Errorf("the disk of %s is full: the file needs %d bytes more; free some space, or choose another "+
		"directory", filepath.Dir(path), cmp.Or(w.total-w.done, 1))
}

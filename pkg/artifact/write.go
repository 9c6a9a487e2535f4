package artifact

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/klauspost/compress/zstd"
)

// Builder collects items and writes a file. Its methods can be called concurrently.
type Builder struct {
	cache      string                // directory for compressed copies
	copies     map[string]packedCopy // in the cache, by the digest of their content; nil until they are listed
	mu         sync.Mutex
	manifest   Manifest
	sources    map[string]opener // of blobs, by digest
	documents  map[string][]byte
	attached   map[string]bool // keys of items that are attached to images
	known      []knownItem     // that are attached to images of an older file
	signatures [][]byte        // of the manifest, if it is that of a signed file
}

// opener opens the blob with a digest. What it returns is closed if it can be.
type opener func(digest string) (io.Reader, error)

func openPath(path string) opener {
	return func(string) (io.Reader, error) { return os.Open(path) }
}

// NewBuilder returns a builder that keeps compressed copies of programs in the directory cache.
func NewBuilder(cache string, covers Covers, catalog []Document) *Builder {
	return &Builder{cache: cache, manifest: Manifest{Format: Format, Covers: covers, Catalog: catalog, Items: []Item{},
		Blobs: []Blob{}}, sources: map[string]opener{}, documents: map[string][]byte{}, attached: map[string]bool{}}
}

// AddDocument adds a text about the file, such as an SBOM, that stands before the blobs. Names are those of
// the entries: kk/sbom.spdx.json. An earlier document of that name is replaced.
func (b *Builder) AddDocument(name string, text []byte) error {
	if !isDocument(name) {
		return fmt.Errorf("%q is not a name of a document: write kk/sbom.spdx.json", name)
	}
	if len(text) > maxDocument {
		return fmt.Errorf("%s has %d bytes: at most %d can be in the file", name, len(text), maxDocument)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	info := DocumentInfo{name, int64(len(text)), strings.TrimPrefix(digestOf(text), "sha256:")}
	b.manifest.Documents = slices.DeleteFunc(b.manifest.Documents, func(d DocumentInfo) bool { return d.Name == name })
	b.manifest.Documents = append(b.manifest.Documents, info)
	b.documents[name] = text
	b.signatures = nil
	return nil
}

// AddKnown adds an item as it is in an older file, with what is attached to it there. The older file must be open until
// the builder is no longer used. If it is a manifest alone, what is written must be a delta for it: Options.Base.
func (b *Builder) AddKnown(item Item, older *File) error {
	blobs, err := older.blobsOf(item)
	if err != nil {
		return err
	}
	b.add(item, blobs)
	if item.Kind != KindImage {
		return nil
	}
	for _, i := range older.Manifest.Attachments().OfImage(item) {
		blobs, err := older.blobsOf(i)
		if err != nil {
			return err
		}
		b.mu.Lock()
		b.known = append(b.known, knownItem{i, blobs})
		b.mu.Unlock()
	}
	return nil
}

// blobsOf returns the blobs of an item. Nothing opens those that the file does not have.
func (f *File) blobsOf(item Item) (map[Blob]opener, error) {
	blobs := map[Blob]opener{}
	for _, digest := range item.all() {
		i, ok := f.Manifest.find(digest)
		if !ok {
			return nil, fmt.Errorf("%s: blob %s %w", item, digest, ErrMissing)
		}
		blobs[f.Manifest.Blobs[i]] = nil
		if f.data == nil {
			continue
		}
		if _, _, err := f.locate(digest); err == nil {
			blobs[f.Manifest.Blobs[i]] = f.Blob
		}
	}
	return blobs, nil
}

// Complete reports whether the blobs of all items are at hand.
func (b *Builder) Complete() bool {
	b.addKnownAttached()
	b.mu.Lock()
	defer b.mu.Unlock()
	return !slices.ContainsFunc(b.manifest.Blobs, func(blob Blob) bool { return b.sources[blob.Digest] == nil })
}

// Blob returns the bytes of a blob, before the file is written. Reading its last byte fails if they do not
// match the digest.
func (b *Builder) Blob(digest string) (io.Reader, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.manifest.Blobs, func(o Blob) bool { return o.Digest == digest })
	if i < 0 {
		return nil, fmt.Errorf("blob %s %w", digest, ErrMissing)
	}
	r, err := b.open(b.manifest.Blobs[i])
	return r, err
}

// open opens a blob. The reader verifies it, and closes what it reads from at the end.
func (b *Builder) open(blob Blob) (*verifier, error) {
	open := b.sources[blob.Digest]
	if open == nil {
		return nil, fmt.Errorf("blob %s is not at hand: only a delta for the file that has it can be written", blob.Digest)
	}
	r, err := open(blob.Digest)
	if err != nil {
		return nil, err
	}
	if v, ok := r.(*verifier); ok {
		return v, nil // of another offline file
	}
	if f, ok := r.(*os.File); ok {
		return verifiedFile(f, blob), nil
	}
	return verified(r, blob.Size, blob.Digest), nil
}

// verifiedFile reads a file that is to be a blob. If it is another one, the error says which file to delete.
func verifiedFile(f *os.File, blob Blob) *verifier {
	v := verified(f, blob.Size, blob.Digest)
	v.fix = fmt.Sprintf(": delete %s, and run this again", f.Name())
	return v
}

// Content returns the content of an item, decoded, before the file is written. Reading its last byte fails
// if the content does not match the item's size or digest.
func (b *Builder) Content(i Item) (io.ReadCloser, error) {
	raw, err := b.Blob(i.Blob)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", i, err)
	}
	return content(raw, i)
}

// AddFile adds a file of the control node as an item of which all but size, digests and encoding are set. A program is
// compressed, an archive is stored as it is. SHA256, if set, must match. What is stored is read and verified once, by
// Write: a file whose SHA256 is set, and which needs no compression any more, is not read before that.
func (b *Builder) AddFile(ctx context.Context, item Item, path string) error {
	blob, path, err := b.prepare(ctx, &item, path)
	if err != nil {
		return fmt.Errorf("%s: %w", item, err)
	}
	b.add(item, map[Blob]opener{blob: openPath(path)})
	return nil
}

// prepare completes an item, and returns the blob that holds it, and where that is.
func (b *Builder) prepare(ctx context.Context, item *Item, path string) (Blob, string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Blob{}, "", err
	}
	item.Size = info.Size()
	if item.SHA256 == "" {
		if item.Size, item.SHA256, err = Sum(ctx, path); err != nil {
			return Blob{}, "", err
		}
	}
	packed, err := isPacked(path)
	if err != nil {
		return Blob{}, "", err
	}
	blob := Blob{"sha256:" + item.SHA256, item.Size}
	if !packed {
		c, err := b.compress(ctx, path, item.SHA256)
		if err != nil {
			return Blob{}, "", err
		}
		blob, path, item.Size, item.Encoding = c.blob, c.path, c.size, Zstd
	}
	item.Blob = blob.Digest
	return blob, path, nil
}

func (b *Builder) add(item Item, blobs map[Blob]opener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signatures = nil
	b.manifest.Items = append(b.manifest.Items, item)
	for blob, open := range blobs {
		have, known := b.sources[blob.Digest]
		if !known {
			b.manifest.Blobs = append(b.manifest.Blobs, blob)
		}
		if have == nil {
			b.sources[blob.Digest] = open
		}
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

// compressed names the copies in the cache: another encoder makes other bytes, so its version is in there. The name of
// a copy is SHA256-SIZE-BLOB.zst: digest and size of its content, and the digest of itself.
const compressed = "zstd-1.20-default"

// packedCopy is a compressed copy in the cache.
type packedCopy struct {
	blob Blob
	path string
	size int64 // of its content
}

// compress returns the compressed copy of a file with a digest, which it makes if the cache lacks it.
func (b *Builder) compress(ctx context.Context, path, digest string) (packedCopy, error) {
	dir := filepath.Join(b.cache, compressed)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return packedCopy{}, err
	}
	c, known, err := b.copyOf(dir, digest)
	if err != nil || known {
		return c, err
	}
	src, err := os.Open(path)
	if err != nil {
		return packedCopy{}, err
	}
	defer func() { _ = src.Close() }() // only read
	err = replace(dir, func() string { return c.path }, func(w io.Writer) (err error) {
		c.blob, c.size, err = pack(w, &stoppable{ctx, src}, digest)
		if wrong := (*wrongSum)(nil); errors.As(err, &wrong) {
			return fmt.Errorf("%s has the sha256 %s instead of %s: delete it, and export again", path, wrong.got, digest)
		}
		c.path = filepath.Join(dir, fmt.Sprintf("%s-%d-%s.zst", digest, c.size, strings.TrimPrefix(c.blob.Digest, "sha256:")))
		return err
	})
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.copies[digest] = c
	}
	return c, err
}

// copyOf returns the compressed copy of content with a digest, if the cache has it. The directory is read once. The
// bytes of a copy are verified when they are written.
func (b *Builder) copyOf(dir, digest string) (c packedCopy, known bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.copies == nil {
		list, err := os.ReadDir(dir)
		if err != nil {
			return c, false, err
		}
		b.copies = make(map[string]packedCopy, len(list))
		for _, file := range list {
			if content, found, ok := parseCopy(dir, file); ok {
				b.copies[content] = found
			}
		}
	}
	if c, known = b.copies[digest]; !known {
		return c, false, nil
	}
	info, err := os.Lstat(c.path)
	if err != nil {
		return packedCopy{}, false, nil // it was removed meanwhile: it is made again
	}
	c.blob.Size = info.Size()
	return c, true, nil
}

// parseCopy returns what a file of a directory is if it is a compressed copy, and the digest of its content.
func parseCopy(dir string, file fs.DirEntry) (content string, c packedCopy, ok bool) {
	name, isCopy := strings.CutSuffix(file.Name(), ".zst")
	parts := strings.Split(name, "-")
	if !isCopy || len(parts) != 3 || !isDigest("sha256:"+parts[0]) || !isDigest("sha256:"+parts[2]) ||
		!file.Type().IsRegular() {
		return "", c, false
	}
	size, err := strconv.ParseInt(parts[1], 10, 64)
	return parts[0], packedCopy{Blob{Digest: "sha256:" + parts[2]}, filepath.Join(dir, file.Name()), size},
		err == nil && size >= 0
}

// wrongSum is content with another digest than expected.
type wrongSum struct{ got string }

func (w *wrongSum) Error() string { return "it has the sha256 " + w.got }

// pack writes what it reads compressed, and returns what it has written and the size of the content. The content must
// have a digest.
func pack(w io.Writer, from io.Reader, digest string) (blob Blob, size int64, err error) {
	out, content := &summed{to: w, sum: sha256.New()}, sha256.New()
	// One goroutine: with several, the bytes depend on their number.
	z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return Blob{}, 0, err
	}
	size, err = io.Copy(z, io.TeeReader(from, content))
	if err = errors.Join(err, z.Close()); err != nil {
		return Blob{}, 0, err
	}
	if got := hex.EncodeToString(content.Sum(nil)); got != digest {
		return Blob{}, 0, &wrongSum{got}
	}
	return Blob{"sha256:" + hex.EncodeToString(out.sum.Sum(nil)), out.size}, size, nil
}

// summed calculates size and digest of what is written.
type summed struct {
	to   io.Writer
	sum  hash.Hash
	size int64
}

func (s *summed) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.sum.Write(p[:n])
	s.size += int64(n)
	return n, err
}

// replace writes a file of a directory under a temporary name, syncs it, and renames it to the path that dest returns
// then.
func replace(dir string, dest func() string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(dir, ".zst.*.part")
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
	return os.Rename(f.Name(), dest())
}

// Sum returns the size of a file, and the sha256 of its bytes in hexadecimal digits.
func Sum(ctx context.Context, path string) (size int64, sha256sum string, err error) {
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
// platforms must be complete in the layout; others are not included, and the index keeps its digest. What the layout
// has that is attached to the image is added as well, under the names that AttachedName makes.
func (b *Builder) AddImage(ctx context.Context, item Item, dir string, platforms []v1.Platform) error {
	item.Kind = KindImage
	if item.IsAttached() {
		return fmt.Errorf("%s is attached to an image, by its tag, and is exported with that: do not name it", item)
	}
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
	c := walkLayout(ctx, dir, platforms)
	if err := c.collect(list.Manifests[i], 0); err != nil {
		return fmt.Errorf("%s: %w", item, err)
	}
	for _, p := range platforms {
		if !c.found[p.String()] {
			return fmt.Errorf("%s has no image for %s", item, p)
		}
		item.Platforms = append(item.Platforms, p.String())
	}
	slices.Sort(item.Platforms)
	item = c.item(item, list.Manifests[i])
	b.add(item, c.sources(dir))
	return b.addAttached(ctx, item, list.Manifests, dir, c.blobs)
}

// walkLayout returns a walk of the images in an OCI layout.
func walkLayout(ctx context.Context, dir string, platforms []v1.Platform) *imageWalk {
	stat := func(digest string) (int64, error) {
		info, err := os.Stat(layoutPath(dir, digest))
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	w := newWalk(ctx, func(digest string) (io.ReadCloser, error) {
		size, err := stat(digest)
		if err != nil {
			return nil, err
		}
		f, err := os.Open(layoutPath(dir, digest))
		if err != nil {
			return nil, err
		}
		v := verifiedFile(f, Blob{digest, size})
		return decoded{v, v.close}, nil
	}, stat)
	w.platforms = platforms
	return w
}

// layoutPath is the path of a blob in an OCI layout.
func layoutPath(dir, digest string) string {
	return filepath.Join(dir, filepath.FromSlash(blobName(digest)))
}

// Manifest returns the manifest in its final order, for a look at what would be written.
func (b *Builder) Manifest() (*Manifest, error) {
	b.addKnownAttached()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.manifest.sort()
	return &b.manifest, b.manifest.check()
}

// Options say how a file is written.
type Options struct {
	Split    int64                   // size of the parts in bytes; 0 writes one file
	Base     *Manifest               // of the file that a delta is for: the blobs that it lists are not written
	Progress func(done, total int64) // bytes that are written; may be nil
}

// Write writes the file: to path.part, which is synced and renamed; or its parts, to path.001.part and so on.
// changed is false, and nothing is written, if the file exists with these contents; the check reads its
// head only. What an earlier file of this name has left is removed: further parts, or the file in one piece.
func (b *Builder) Write(ctx context.Context, path string, o Options) (changed bool, err error) {
	m, err := b.Manifest()
	if err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.plan(m, o.Base)
	if err != nil {
		return false, err
	}
	if p.written(path, o.Split) {
		return false, nil
	}
	out, err := newOutput(path, o.Split, p.size)
	if err != nil {
		return false, err
	}
	w := &writer{ctx: ctx, out: bufio.NewWriterSize(out, copySize), total: p.size, progress: o.Progress}
	for _, e := range p.before {
		w.text(e)
	}
	for _, blob := range p.blobs {
		w.blob(blob, b.open)
	}
	for _, e := range p.behind {
		w.text(e)
	}
	w.write(make([]byte, trailer))
	if err = errors.Join(w.err, w.out.Flush()); err == nil {
		err = out.commit()
	}
	if err != nil {
		_ = out.abort() // what was fetched is in the cache
		return false, w.explain(path, err)
	}
	return true, nil
}

// plan is what a file consists of.
type plan struct {
	manifest       *Manifest
	delta          *deltaInfo
	before, behind []entry // the blobs
	blobs          []Blob  // those that are in the file
	size           int64   // of the file
}

type entry struct {
	name string
	text []byte
}

func (b *Builder) plan(m *Manifest, base *Manifest) (*plan, error) {
	text, err := m.encode()
	if err != nil {
		return nil, err
	}
	if len(text) > MaxManifest {
		return nil, fmt.Errorf("the manifest has %d bytes: a file can have one of %d", len(text), MaxManifest)
	}
	index, err := m.index()
	if err != nil {
		return nil, err
	}
	p := &plan{manifest: m, size: trailer}
	p.before = []entry{{layoutName, []byte(layoutText)}, {indexName, index}, {manifestName, text}}
	if base != nil {
		if p.delta, err = newDelta(m, base); err != nil {
			return nil, err
		}
		text, err := encodeJSON(p.delta)
		if err != nil {
			return nil, err
		}
		p.before = append(p.before, entry{deltaName, text})
	}
	for _, d := range m.Documents {
		p.before = append(p.before, entry{d.Name, b.documents[d.Name]})
	}
	absent := p.delta.absent()
	for _, blob := range m.Blobs {
		if !absent[blob.Digest] {
			p.blobs = append(p.blobs, blob)
			p.size += block + padded(blob.Size)
		}
	}
	for _, s := range b.signatures {
		p.behind = append(p.behind, entry{signatureName(s), s})
	}
	for _, e := range slices.Concat(p.before, p.behind) {
		p.size += block + padded(int64(len(e.text)))
	}
	return p, nil
}

// written reports whether the file at path has these contents, and possibly more signatures.
func (p *plan) written(path string, split int64) bool {
	parts, whole, err := openParts(path, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer func() { _ = parts.Close() }() // only read
	f := &File{Path: whole, Manifest: p.manifest, delta: p.delta, parts: parts, data: parts, size: parts.size()}
	if !p.isHeadOf(f) || f.checkExtent() != nil {
		return false
	}
	if f.Path != path || !f.parts.splitBy(split, f.end+trailer) || f.Check() != nil {
		return false
	}
	signatures, err := f.appended()
	if err != nil {
		return false
	}
	for _, e := range p.behind {
		if !slices.ContainsFunc(signatures, func(s []byte) bool { return bytes.Equal(s, e.text) }) {
			return false
		}
	}
	return f.end == p.size-trailer-p.sizeBehind()
}

// isHeadOf reports whether a file begins like this plan. Then its documents and blobs are where the manifest places
// them, and the manifest need not be read a second time.
func (p *plan) isHeadOf(f *File) bool {
	head := headReader{data: f.data, size: f.size}
	for n, e := range p.before {
		if n == len(p.before)-len(p.manifest.Documents) {
			f.place(head.at)
		}
		if !head.has(e) {
			return false
		}
	}
	if len(p.manifest.Documents) == 0 {
		f.place(head.at)
	}
	return true
}

func (p *plan) sizeBehind() (n int64) {
	for _, e := range p.behind {
		n += block + padded(int64(len(e.text)))
	}
	return n
}

// copySize is the size of the buffers that blobs are read with.
const copySize = 256 << 10

// writer writes entries until one fails.
type writer struct {
	ctx         context.Context
	out         *bufio.Writer
	done, total int64
	progress    func(done, total int64)
	err         error
}

// Write counts what is written.
func (w *writer) Write(p []byte) (int, error) {
	n, err := w.out.Write(p)
	w.done += int64(n)
	if w.progress != nil {
		w.progress(w.done, w.total)
	}
	return n, err
}

func (w *writer) write(p []byte) {
	if w.err == nil {
		_, w.err = w.Write(p)
	}
}

func (w *writer) entry(name string, size int64, copy func() error) {
	h, err := header(name, size)
	if w.err == nil {
		w.err = err
	}
	w.write(h)
	if w.err == nil {
		w.err = copy()
	}
	w.write(make([]byte, padded(size)-size))
}

func (w *writer) text(e entry) {
	w.entry(e.name, int64(len(e.text)), func() error {
		_, err := w.Write(e.text)
		return err
	})
}

// blob copies a blob, and verifies it.
func (w *writer) blob(b Blob, open func(Blob) (*verifier, error)) {
	if w.err != nil {
		return
	}
	r, err := open(b)
	if err != nil {
		w.err = err
		return
	}
	defer r.close()
	w.entry(blobName(b.Digest), b.Size, func() error {
		if err := r.copyTo(w.ctx, w); err != nil {
			return fmt.Errorf("blob %s: %w", b.Digest, err)
		}
		return nil
	})
}

// explain says how to fix a full disk.
func (w *writer) explain(path string, err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	return fmt.Errorf("the disk of %s is full: the file needs %d bytes more; free some space, or choose another "+
		"directory", filepath.Dir(path), max(w.total-w.done+int64(w.out.Buffered()), 1))
}

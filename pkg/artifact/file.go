// Package artifact reads and writes offline files: everything that a cluster is built from, in one
// uncompressed tar whose contents are an OCI image layout.
//
// The entries are oci-layout, index.json, kk/manifest.json and the blobs by digest. The manifest has
// the sizes of all blobs, so opening reads the head alone and a blob is a seek away. The same inputs
// make the same bytes.
package artifact

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"sort"

	"github.com/klauspost/compress/zstd"
)

// File is an open offline file. Its methods can be called concurrently.
type File struct {
	Path     string
	Manifest *Manifest

	data    io.ReaderAt
	size    int64
	close   func() error
	offsets []int64 // of the headers of the manifest's blobs, and the end of the last one
}

// Open reads the head of a file. The error names the file and what is wrong with it.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	file, err := open(path, f)
	if err != nil {
		_ = f.Close() // only read
		return nil, err
	}
	return file, nil
}

func open(path string, f *os.File) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := newFile(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file.Path, file.close = path, f.Close
	return file, nil
}

var errCut = errors.New("the file is cut off: copy it again")

// newFile reads the head of size bytes of data.
func newFile(data io.ReaderAt, size int64) (*File, error) {
	head := &headReader{data: data, size: size}
	layout, err := head.next(layoutName)
	if err != nil {
		return nil, err
	}
	if string(layout) != layoutText {
		return nil, fmt.Errorf("%s is not that of an OCI image layout 1.0.0", layoutName)
	}
	index, err := head.next(indexName)
	if err != nil {
		return nil, err
	}
	text, err := head.next(manifestName)
	if err != nil {
		return nil, err
	}
	m, err := decode(text)
	if err != nil {
		return nil, err
	}
	if want, err := m.index(); err != nil || !bytes.Equal(index, want) {
		return nil, errors.Join(fmt.Errorf("%s lists other images than %s", indexName, manifestName), err)
	}
	file := &File{Manifest: m, data: data, size: size, close: func() error { return nil }}
	at := head.at
	for _, b := range m.Blobs {
		file.offsets = append(file.offsets, at)
		at += block + padded(b.Size)
	}
	file.offsets = append(file.offsets, at)
	if at+trailer > size {
		return nil, fmt.Errorf("%w: it has %d bytes instead of %d", errCut, size, at+trailer)
	}
	return file, nil
}

// Close closes the file.
func (f *File) Close() error { return f.close() }

// headReader reads the entries before the blobs.
type headReader struct {
	data     io.ReaderAt
	at, size int64
}

// next reads the next entry, which must have this name.
func (h *headReader) next(name string) ([]byte, error) {
	got := make([]byte, block)
	if h.at+block > h.size {
		return nil, errCut
	}
	if _, err := h.data.ReadAt(got, h.at); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	hdr, err := tar.NewReader(bytes.NewReader(got)).Next()
	if err != nil || hdr.Name != name {
		return nil, notOurs(name, hdr, err)
	}
	if hdr.Size > maxManifest {
		return nil, fmt.Errorf("%s has %d bytes: at most %d are read", name, hdr.Size, maxManifest)
	}
	want, err := header(name, hdr.Size)
	if err != nil || !bytes.Equal(got, want) {
		return nil, fmt.Errorf("the entry %s is not one that kk writes", name)
	}
	if h.at+block+padded(hdr.Size) > h.size {
		return nil, errCut
	}
	text := make([]byte, padded(hdr.Size))
	if _, err := h.data.ReadAt(text, h.at+block); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(bytes.Trim(text[hdr.Size:], "\x00")) > 0 {
		return nil, fmt.Errorf("data between the entry %s and the next one", name)
	}
	h.at += block + padded(hdr.Size)
	return text[:hdr.Size], nil
}

func notOurs(name string, hdr *tar.Header, err error) error {
	if err != nil || name == layoutName {
		return errors.New("this is not an offline file of kk; `kk artifact import` reads those of other tools")
	}
	return fmt.Errorf("the entry %q is where %s belongs", hdr.Name, name)
}

// find returns the number of a blob.
func (f *File) find(digest string) (int, bool) {
	blobs := f.Manifest.Blobs
	i := sort.Search(len(blobs), func(i int) bool { return blobs[i].Digest >= digest })
	return i, i < len(blobs) && blobs[i].Digest == digest
}

// ErrMissing means that a file does not have something.
var ErrMissing = errors.New("is not in the offline file")

// Blob returns the bytes of a blob. Reading its last byte fails if they do not match the digest.
func (f *File) Blob(digest string) (io.Reader, error) {
	i, ok := f.find(digest)
	if !ok {
		return nil, fmt.Errorf("blob %s %w", digest, ErrMissing)
	}
	if err := f.checkHeader(i); err != nil {
		return nil, err
	}
	b := f.Manifest.Blobs[i]
	return verified(io.NewSectionReader(f.data, f.offsets[i]+block, b.Size), b.Size, digest), nil
}

// checkHeader compares the header of a blob with the one that the manifest implies.
func (f *File) checkHeader(i int) error {
	b := f.Manifest.Blobs[i]
	want, err := header(blobName(b.Digest), b.Size)
	if err != nil {
		return err
	}
	got := make([]byte, block)
	if _, err := f.data.ReadAt(got, f.offsets[i]); err != nil {
		return fmt.Errorf("%s: read the entry of blob %s: %w", f.Path, b.Digest, err)
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s: the entry at byte %d is not blob %s of the manifest: %s", f.Path, f.offsets[i], b.Digest,
			describe(got))
	}
	return nil
}

// describe says what a header block is.
func describe(got []byte) string {
	hdr, err := tar.NewReader(bytes.NewReader(got)).Next()
	if err != nil {
		return "it is damaged"
	}
	return fmt.Sprintf("it is %q of type %q with %d bytes", hdr.Name, hdr.Typeflag, hdr.Size)
}

// Content returns the content of an item, decoded. Reading its last byte fails if the content does not
// match the item's size or digest.
func (f *File) Content(i Item) (io.ReadCloser, error) {
	raw, err := f.Blob(i.Blob)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", i, err)
	}
	if i.Encoding == Plain {
		return io.NopCloser(raw), nil
	}
	d, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", i, err)
	}
	return decoded{verified(d, i.Size, "sha256:"+i.SHA256), d}, nil
}

type decoded struct {
	io.Reader
	d *zstd.Decoder
}

func (d decoded) Close() error {
	d.d.Close()
	return nil
}

// verifier reads exactly size bytes with a digest.
type verifier struct {
	from   io.Reader
	left   int64
	sum    hash.Hash
	digest string
}

func verified(from io.Reader, size int64, digest string) io.Reader {
	return &verifier{from: from, left: size, sum: sha256.New(), digest: digest}
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.from.Read(p)
	if v.left -= int64(n); v.left < 0 {
		return 0, fmt.Errorf("%s has more bytes than the manifest says", v.digest)
	}
	v.sum.Write(p[:n])
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if v.left > 0 {
		return n, fmt.Errorf("%s has %d bytes less than the manifest says", v.digest, v.left)
	}
	if got := "sha256:" + hex.EncodeToString(v.sum.Sum(nil)); got != v.digest {
		return n, fmt.Errorf("%s is damaged: it has the digest %s", v.digest, got)
	}
	return n, io.EOF
}

// Set is an offline file, or several: a base and what was made later.
type Set []*File

// OpenSet opens files. All problems are reported.
func OpenSet(paths []string) (Set, error) {
	var s Set
	var problems []error
	for _, p := range paths {
		f, err := Open(p)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		s = append(s, f)
	}
	if len(problems) > 0 {
		return nil, errors.Join(append(problems, s.Close())...)
	}
	return s, nil
}

// Close closes all files.
func (s Set) Close() error {
	var problems []error
	for _, f := range s {
		problems = append(problems, f.Close())
	}
	return errors.Join(problems...)
}

// Find returns the first item that matches, and the file that has it.
func (s Set) Find(matches func(Item) bool) (*File, Item, bool) {
	for _, f := range s {
		if i := slices.IndexFunc(f.Manifest.Items, matches); i >= 0 {
			return f, f.Manifest.Items[i], true
		}
	}
	return nil, Item{}, false
}

// File returns the item with this name in the catalog's cache.
func (s Set) File(name string) (*File, Item, bool) {
	return s.Find(func(i Item) bool { return i.Kind != KindImage && i.File == name })
}

// Image returns the image with this reference.
func (s Set) Image(ref string) (*File, Item, bool) {
	return s.Find(func(i Item) bool { return i.Kind == KindImage && i.Name == ref })
}

// Catalog returns the catalog of the first file that has one.
func (s Set) Catalog() []Document {
	for _, f := range s {
		if len(f.Manifest.Catalog) > 0 {
			return f.Manifest.Catalog
		}
	}
	return nil
}

// Package artifact reads and writes offline files: everything that a cluster is built from, in one
// uncompressed tar whose contents are an OCI image layout.
//
// The entries are oci-layout, index.json, kk/manifest.json, of a delta kk/delta.json, documents such as
// SBOMs, the blobs by digest, and signatures of the manifest. The manifest has the sizes of all blobs, so
// opening reads the head alone and a blob is a seek away. The same inputs make the same bytes.
package artifact

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"slices"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// File is an open offline file. Its methods can be called concurrently.
type File struct {
	Path     string // without the number of a part
	Manifest *Manifest

	text      []byte // of the manifest
	digest    string // of the text
	delta     *deltaInfo
	base      *File // of a delta in a set
	data      io.ReaderAt
	size      int64
	parts     *parts  // nil in tests
	documents []int64 // offsets of the headers of the manifest's documents
	offsets   []int64 // of the headers of the manifest's blobs; -1 for those that are absent from a delta
	end       int64   // offset behind the last blob
}

// Open reads the head of a file. A file in parts is opened by its name without the number, or by that of
// a part. The error names the file or the part, and what is wrong with it.
func Open(path string) (*File, error) {
	p, whole, err := openParts(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	file, err := openFile(whole, p)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), p.Close())
	}
	return file, nil
}

func openFile(path string, p *parts) (*File, error) {
	file := &File{Path: path, parts: p, data: p, size: p.size()}
	if end, err := file.readHead(); err != nil {
		return nil, cmp.Or(p.uneven(math.MaxInt64), file.inParts(err, 0, end+block))
	}
	return file, file.checkExtent()
}

// checkExtent checks that the parts make one file with everything that the manifest lists.
func (f *File) checkExtent() error {
	if err := f.parts.uneven(f.end + trailer); err != nil {
		return err
	}
	if f.end+trailer > f.size {
		return f.parts.short(f.end + trailer)
	}
	return f.checkParts()
}

var errCut = errors.New("the file is cut off: copy it again")

// readHead reads what is before the blobs. It returns the offset that it has read to.
func (f *File) readHead() (end int64, err error) {
	head := &headReader{data: f.data, size: f.size}
	layout, err := head.next(layoutName)
	if err != nil {
		return head.at, err
	}
	if string(layout) != layoutText {
		return head.at, fmt.Errorf("%s is not that of an OCI image layout 1.0.0", layoutName)
	}
	index, err := head.next(indexName)
	if err != nil {
		return head.at, err
	}
	if f.text, err = head.next(manifestName); err != nil {
		return head.at, err
	}
	if f.Manifest, err = ParseManifest(f.text); err != nil {
		return head.at, err
	}
	f.digest = digestOf(f.text)
	if want, err := f.Manifest.index(); err != nil || !bytes.Equal(index, want) {
		return head.at, errors.Join(fmt.Errorf("%s lists other images than %s", indexName, manifestName), err)
	}
	if head.isNext(deltaName) {
		text, err := head.next(deltaName)
		if err != nil {
			return head.at, err
		}
		if f.delta, err = parseDelta(text, f.Manifest, f.digest); err != nil {
			return head.at, err
		}
	}
	f.place(head.at)
	return head.at, nil
}

// place calculates where documents and blobs are.
func (f *File) place(at int64) {
	for _, d := range f.Manifest.Documents {
		f.documents = append(f.documents, at)
		at += block + padded(d.Size)
	}
	absent := f.delta.absent()
	for _, b := range f.Manifest.Blobs {
		if absent[b.Digest] {
			f.offsets = append(f.offsets, -1)
			continue
		}
		f.offsets = append(f.offsets, at)
		at += block + padded(b.Size)
	}
	f.end = at
}

// checkParts checks that each part continues the one before: the first header that lies in it must be
// that of the blob that belongs there.
func (f *File) checkParts() error {
	var problems []error
	for n := 1; n < len(f.parts.files); n++ {
		start, end := f.parts.bounds(n)
		i := slices.IndexFunc(f.offsets, func(at int64) bool { return at >= start })
		if i < 0 || f.offsets[i]+block > end {
			continue // it is within a blob, whose digest is checked
		}
		if err := f.checkHeader(i); err != nil {
			problems = append(problems, fmt.Errorf("the part %s is in another place than it belongs, or of another file: %w",
				f.parts.files[n].Name(), err))
		}
	}
	return errors.Join(problems...)
}

// Close closes the file.
func (f *File) Close() error {
	if f.parts == nil {
		return nil
	}
	return f.parts.Close()
}

// ManifestBytes returns the bytes of the manifest, which are what is signed.
func (f *File) ManifestBytes() []byte { return bytes.Clone(f.text) }

// Digest returns the digest of the manifest's bytes, sha256:HEX.
func (f *File) Digest() string { return f.digest }

// Size returns the size of the file in bytes, all parts together.
func (f *File) Size() int64 { return f.size }

// Document returns the text of a document, such as an SBOM. Its size and digest are verified.
func (f *File) Document(name string) ([]byte, error) {
	i := slices.IndexFunc(f.Manifest.Documents, func(d DocumentInfo) bool { return d.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s %w", name, ErrMissing)
	}
	d := f.Manifest.Documents[i]
	head := &headReader{data: f.data, at: f.documents[i], size: f.size}
	text, err := head.next(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	if int64(len(text)) != d.Size || digestOf(text) != "sha256:"+d.SHA256 {
		return nil, fmt.Errorf("%s: %s is damaged: it has the digest %s instead of sha256:%s", f.Path, name, digestOf(text),
			d.SHA256)
	}
	return text, nil
}

// headReader reads the entries before the blobs.
type headReader struct {
	data     io.ReaderAt
	at, size int64
}

// isNext reports whether the next entry has this name.
func (h *headReader) isNext(name string) bool {
	got := make([]byte, block)
	if _, err := h.data.ReadAt(got, h.at); err != nil {
		return false
	}
	hdr, err := parseHeader(got)
	return err == nil && hdr.Name == name
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
	hdr, err := parseHeader(got)
	if err != nil || hdr.Name != name {
		return nil, notOurs(name, hdr, err)
	}
	if hdr.Size > MaxManifest {
		return nil, fmt.Errorf("%s has %d bytes: at most %d are read", name, hdr.Size, MaxManifest)
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

// has reports whether the next entry is this one, and moves behind it. The text is not kept in memory.
func (h *headReader) has(e entry) bool {
	size := int64(len(e.text))
	first, err := header(e.name, size)
	if err != nil {
		return false
	}
	from := io.NewSectionReader(h.data, h.at, block+padded(size))
	for _, want := range [][]byte{first, e.text, make([]byte, padded(size)-size)} {
		if _, err := io.CopyN(&comparison{want}, from, int64(len(want))); err != nil {
			return false
		}
	}
	h.at += block + padded(size)
	return true
}

func notOurs(name string, hdr *tar.Header, err error) error {
	if err != nil || name == layoutName {
		return errors.New("this is not an offline file of kk; `kk artifact import` reads those of other tools")
	}
	return fmt.Errorf("the entry %q is where %s belongs", hdr.Name, name)
}

// find returns the number of a blob.
func (m *Manifest) find(digest string) (int, bool) {
	i := sort.Search(len(m.Blobs), func(i int) bool { return m.Blobs[i].Digest >= digest })
	return i, i < len(m.Blobs) && m.Blobs[i].Digest == digest
}

// BlobSize returns the size of a blob. ok is false if the manifest does not list it.
func (m *Manifest) BlobSize(digest string) (size int64, ok bool) {
	i, ok := m.find(digest)
	if !ok {
		return 0, false
	}
	return m.Blobs[i].Size, true
}

// ErrMissing means that a file does not have something.
var ErrMissing = errors.New("is not in the offline file")

// Blob returns the bytes of a blob. Reading its last byte fails if they do not match the digest.
// A blob that is absent from a delta is read from its base.
func (f *File) Blob(digest string) (io.Reader, error) {
	f, i, err := f.locate(digest)
	if err != nil {
		return nil, err
	}
	if err := f.checkHeader(i); err != nil {
		return nil, err
	}
	b := f.Manifest.Blobs[i]
	return verified(io.NewSectionReader(f.data, f.offsets[i]+block, b.Size), b.Size, digest), nil
}

// locate returns the file that has a blob, this one or a base of it, and the number of the blob there.
func (f *File) locate(digest string) (*File, int, error) {
	for {
		i, ok := f.Manifest.find(digest)
		switch {
		case !ok:
			return nil, 0, fmt.Errorf("blob %s %w", digest, ErrMissing)
		case f.offsets[i] >= 0:
			return f, i, nil
		case f.base == nil:
			return nil, 0, f.noBase()
		}
		f = f.base
	}
}

// checkHeader compares the header of a blob with the one that the manifest implies.
func (f *File) checkHeader(i int) error {
	b := f.Manifest.Blobs[i]
	return f.compare(f.offsets[i], blobName(b.Digest), b.Size)
}

// compare compares the header at an offset with the one of an entry.
func (f *File) compare(at int64, name string, size int64) error {
	want, err := header(name, size)
	if err != nil {
		return err
	}
	got := make([]byte, block)
	if _, err := f.data.ReadAt(got, at); err != nil {
		return fmt.Errorf("%s: read the entry %s: %w", f.Path, name, cut(err))
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s: the entry at byte %d is not %s of the manifest: %s", f.Path, at, name, describe(got))
	}
	return nil
}

// cut explains the end of a file.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return errCut
	}
	return err
}

// describe says what a header block is.
func describe(got []byte) string {
	hdr, err := parseHeader(got)
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
	return content(raw, i)
}

// maxWindow is what a decoder may need to remember of a blob, in bytes. What kk compresses needs that.
const maxWindow = 8 << 20

// content decodes the blob of an item.
func content(raw io.Reader, i Item) (io.ReadCloser, error) {
	if i.Encoding == Plain {
		return decoded{raw, func() { closeReader(raw) }}, nil
	}
	d, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", i, err)
	}
	return decoded{verified(unpacked{d}, i.Size, "sha256:"+i.SHA256), func() {
		d.Close()
		closeReader(raw)
	}}, nil
}

// unpacked reads what is compressed.
type unpacked struct{ d *zstd.Decoder }

func (u unpacked) Read(p []byte) (int, error) {
	n, err := u.d.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("it is damaged, and cannot be unpacked: %w", err)
	}
	return n, err
}

type decoded struct {
	io.Reader
	close func()
}

func (d decoded) Close() error {
	d.close()
	return nil
}

// verifier reads exactly size bytes with a digest.
type verifier struct {
	from   io.Reader
	left   int64
	sum    hash.Hash
	digest string
	fix    string // how to fix wrong bytes, for errors
	end    error  // what further reads return; nil before the end
}

func verified(from io.Reader, size int64, digest string) *verifier {
	return &verifier{from: from, left: size, sum: sha256.New(), digest: digest}
}

func (v *verifier) Read(p []byte) (int, error) {
	if v.end != nil {
		return 0, v.end
	}
	n, err := v.from.Read(p)
	if v.left -= int64(n); v.left < 0 {
		return 0, v.tooLong()
	}
	v.sum.Write(p[:n])
	switch {
	case errors.Is(err, io.EOF):
		if v.end = v.finish(); v.end == nil {
			v.end = io.EOF
			return n, io.EOF
		}
	case v.left == 0: // whoever knows the size reads no further
		v.end = v.check()
	}
	if v.end != nil {
		v.close()
		return 0, v.end // without the last bytes: with them, io.ReadFull ignores the error
	}
	return n, err
}

// finish checks size and digest of what was read.
func (v *verifier) finish() error {
	v.close()
	if v.left > 0 {
		return fmt.Errorf("%s has %d bytes less than the manifest says%s", v.digest, v.left, v.fix)
	}
	return v.check()
}

// check checks the digest of what was read.
func (v *verifier) check() error {
	if got := "sha256:" + hex.EncodeToString(v.sum.Sum(nil)); got != v.digest {
		return fmt.Errorf("%s is damaged: it has the digest %s%s", v.digest, got, v.fix)
	}
	return nil
}

// copyTo copies everything. Meanwhile the digest is calculated on another core.
func (v *verifier) copyTo(ctx context.Context, w io.Writer) error {
	buffers := int(min(8, v.left/copySize+1))
	free, full := make(chan []byte, buffers), make(chan []byte, buffers)
	for range buffers {
		free <- make([]byte, copySize)
	}
	var summed sync.WaitGroup
	summed.Go(func() {
		for b := range full {
			v.sum.Write(b)
			free <- b[:cap(b)]
		}
	})
	err := v.pump(ctx, w, free, full)
	close(full)
	summed.Wait()
	if err != nil {
		return err
	}
	return v.finish()
}

// pump reads into free buffers, passes them on, and writes them: a buffer is used again when both are done.
func (v *verifier) pump(ctx context.Context, w io.Writer, free <-chan []byte, full chan<- []byte) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := <-free
		n, err := v.from.Read(b)
		if v.left -= int64(n); v.left < 0 {
			return v.tooLong()
		}
		full <- b[:n]
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (v *verifier) tooLong() error {
	return fmt.Errorf("%s has more bytes than the manifest says%s", v.digest, v.fix)
}

// close closes what is read from. That it was read is all that matters, so no error is lost.
func (v *verifier) close() { closeReader(v.from) }

func closeReader(r io.Reader) {
	switch r := r.(type) {
	case *verifier:
		r.close()
	case io.Closer:
		_ = r.Close() // only read
	}
}

package sbom

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// scanner finds programs and packages in blobs, one after the other.
type scanner struct {
	ctx    context.Context
	limits limits
	// scratch is a file for what must be read at offsets. It has no name.
	scratch *os.File
	out     *contents
	found   int // modules, packages and removed paths
	texts   int // bytes of their texts
	layer   bool
	failed  error // of the scratch file: what was found is not complete
}

// newScanner returns a scanner whose scratch file is in dir, "" for the system's directory of temporary files.
func newScanner(ctx context.Context, dir string, l limits) (*scanner, error) {
	f, err := os.CreateTemp(dir, ".sbom-*")
	if err != nil {
		return nil, err
	}
	// Without a name, nothing is left behind when kk is killed.
	return &scanner{ctx: ctx, limits: l, scratch: f}, os.Remove(f.Name())
}

func (s *scanner) close() error { return s.scratch.Close() }

// Starts of formats.
const (
	gzipStart = "\x1f\x8b"
	zstdStart = "\x28\xb5\x2f\xfd"
	zipStart  = "PK\x03\x04"
	tarMagic  = "ustar" // at tarAt
	tarAt     = 257
	tarBlock  = 512
)

// scan reads a blob of size bytes. A layer is a tar, compressed or not; other blobs are what they begin with.
func (s *scanner) scan(from io.Reader, size int64, layer bool) *contents {
	s.out, s.found, s.texts, s.layer = newContents(), 0, 0, layer
	r := bufio.NewReaderSize(from, 64<<10)
	start, _ := r.Peek(tarBlock)
	is := func(magic string) bool { return strings.HasPrefix(string(start), magic) }
	var err error
	switch {
	case is(gzipStart):
		err = s.gzip(r, size, layer)
	case is(zstdStart):
		err = s.zstd(r, size, layer)
	case layer:
		err = s.tar(r, s.limits.archive(size))
	case is(zipStart):
		err = s.zip(r, size)
	case is(arStart):
		err = s.deb(controlFile, r)
	default:
		err = s.plain(r, s.limits.archive(size))
	}
	s.problem("", err)
	return s.out.sorted()
}

// problem records what could not be read.
func (s *scanner) problem(name string, err error) {
	if err == nil || len(s.out.Problems) == s.limits.problems {
		return
	}
	if name = text(name); name != "" {
		name += ": "
	}
	if in := (*fs.PathError)(nil); errors.As(err, &in) {
		err = in.Err // the path is one of this machine
	}
	s.out.Problems = append(s.out.Problems, text("could not be read: "+name+err.Error()))
}

// unread records that a file of an archive could not be read. It returns the error if no other is read either.
func (s *scanner) unread(name string, err error) error {
	if errors.Is(err, errTooMany) {
		return err
	}
	s.problem(name, err)
	return nil
}

func (s *scanner) gzip(from io.Reader, size int64, layer bool) error {
	z, err := gzip.NewReader(from)
	if err != nil {
		return err
	}
	return s.unpacked(z, size, layer)
}

func (s *scanner) zstd(from io.Reader, size int64, layer bool) error {
	z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(32<<20),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer z.Close()
	return s.unpacked(z, size, layer)
}

// unpacked reads what was compressed to size bytes.
func (s *scanner) unpacked(from io.Reader, size int64, layer bool) error {
	b := s.limits.archive(size)
	if layer {
		return s.tar(&bounded{from, b}, b)
	}
	return s.plain(bufio.NewReaderSize(&bounded{from, b}, 64<<10), b)
}

// plain reads a program or a tar. Of anything else nothing is known.
func (s *scanner) plain(r *bufio.Reader, b *budget) error {
	start, err := r.Peek(tarBlock)
	switch {
	case isExecutable(start):
		s.out.Read = true
		return s.program("", r)
	case len(start) == tarBlock && strings.HasPrefix(string(start[tarAt:]), tarMagic):
		return s.tar(r, b)
	case err != nil && !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// tar reads the entries of a tar. What it spools is bounded too: sparse files are larger than what is read.
func (s *scanner) tar(r io.Reader, b *budget) error {
	s.out.Read = true
	spool := &budget{left: b.left, err: b.err}
	t := tar.NewReader(r)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == s.limits.entries {
			return fmt.Errorf("it has more than %d entries: the rest is not read", n)
		}
		if err := s.entry(h, &bounded{t, spool}); err != nil {
			return err
		}
	}
}

// entry reads an entry of a tar. It fails if nothing more can be read.
func (s *scanner) entry(h *tar.Header, r io.Reader) error {
	name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
	if len(name) > longest {
		s.problem(name, errLongName)
		return nil
	}
	if removed, ok := removes(name); ok {
		s.out.Removed = append(s.out.Removed, removed)
		return s.count(len(removed))
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	return s.file(name, h.Size, r)
}

// file reads a file of an archive, if it is a program or a database.
func (s *scanner) file(name string, size int64, r io.Reader) error {
	switch {
	case name == dpkgStatus || isDpkgPart(name):
		return s.database(name, r, readDpkg)
	case slices.Contains(apkInstalled, name):
		return s.database(name, r, readApk)
	case slices.Contains(rpmDatabases, name):
		s.problem(name, errRPM)
		return nil
	case slices.Contains(releaseFiles, name):
		release, err := readRelease(io.LimitReader(r, s.limits.database))
		if err == nil && release.ID != "" {
			s.out.Releases[name] = release
		}
		return err
	case !s.layer && strings.HasSuffix(name, ".deb"):
		return s.unread(name, s.deb(name, r))
	case size < shortest:
		return nil
	}
	buffered := bufio.NewReaderSize(r, tarBlock)
	start, err := buffered.Peek(tarBlock)
	if err != nil {
		return err
	}
	if !isExecutable(start) {
		return nil
	}
	if size > s.limits.program {
		s.problem(name, errNoProgram)
		return nil
	}
	return s.program(name, buffered)
}

// count counts something that was found, with the size of its texts.
func (s *scanner) count(size int) error {
	s.found++
	s.texts += size
	if s.found > s.limits.found || s.texts > s.limits.texts {
		return errTooMany
	}
	return nil
}

// database reads a database of packages, and counts it: an empty one has a name too. It fails if nothing
// more can be read.
func (s *scanner) database(name string, r io.Reader, read func(io.Reader, func(pack) error) error) error {
	if err := s.count(len(name)); err != nil {
		return err
	}
	b := newBudget(s.limits.database, "it has more than %d bytes")
	var all []pack
	err := read(&bounded{r, b}, func(p pack) error {
		all = append(all, p)
		return s.count(p.size())
	})
	s.out.Databases[name] = all
	if b.over {
		s.problem(name, err)
		return nil
	}
	return err
}

// program reads an executable. It fails if its bytes cannot be read.
func (s *scanner) program(name string, r io.Reader) error {
	size, err := s.spool(r)
	if err != nil {
		return err
	}
	p, ok, err := readProgram(io.NewSectionReader(s.scratch, 0, size), s.limits)
	s.problem(name, err)
	if !ok {
		return nil
	}
	all := p.Modules
	for i, m := range all {
		if err := s.count(m.size()); err != nil {
			p.Modules, s.out.Programs[name] = all[:i], p
			return err
		}
	}
	s.out.Programs[name] = p
	return s.count(len(name) + len(p.Path) + p.Main.size())
}

// spool copies what is read at offsets to the scratch file. What that had before is overwritten: cutting it off would
// make the kernel give all its memory back, and find it again.
func (s *scanner) spool(r io.Reader) (int64, error) {
	to := &scratchWriter{to: io.NewOffsetWriter(s.scratch, 0)}
	n, err := io.Copy(to, &bounded{r, &budget{left: s.limits.program, err: errNoProgram}})
	s.failed = cmp.Or(s.failed, to.err)
	return n, err
}

// scratchWriter remembers its error: unlike those of reading, it is not one of the content.
type scratchWriter struct {
	to  io.Writer
	err error
}

func (w *scratchWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	var n int
	n, w.err = w.to.Write(p)
	return n, w.err
}

// zip reads the files of a zip.
func (s *scanner) zip(r io.Reader, size int64) error {
	s.out.Read = true
	// Programs need the scratch file while the zip is read.
	archive, err := newScanner(s.ctx, s.scratchDir(), s.limits)
	if err != nil {
		s.failed = cmp.Or(s.failed, err)
		return err
	}
	defer func() { _ = archive.close() }() // was only read since
	length, err := archive.spool(r)
	if err != nil {
		s.failed = cmp.Or(s.failed, archive.failed)
		return err
	}
	directory := newBudget(s.limits.peeked, "its directory has more than %d bytes")
	at := &boundedAt{io.NewSectionReader(archive.scratch, 0, length), directory}
	z, err := zip.NewReader(at, length)
	if err != nil {
		return err
	}
	b := s.limits.archive(size)
	for _, f := range z.File {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if f.UncompressedSize64 < shortest || f.Mode().IsDir() {
			continue
		}
		directory.left = max(directory.left, 1<<20) + int64(min(f.CompressedSize64, 1<<40))
		if err := s.unread(f.Name, s.zipped(f, b)); err != nil {
			return err
		}
		if b.left <= 0 {
			return b.err
		}
	}
	return nil
}

// zipped reads a file of a zip.
func (s *scanner) zipped(f *zip.File, b *budget) error {
	name := strings.TrimPrefix(path.Clean("/"+f.Name), "/")
	if len(name) > longest {
		return errLongName
	}
	c, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // only read
	return s.file(name, int64(min(f.UncompressedSize64, 1<<62)), &bounded{c, b})
}

func (s *scanner) scratchDir() string { return filepath.Dir(s.scratch.Name()) }

// controlFile is the name of what a Debian package says about itself. Where a blob is a package, it stands
// for its path.
const controlFile = "control"

// deb reads the control file of a Debian package, as the database with this key.
func (s *scanner) deb(key string, r io.Reader) error {
	s.out.Read = true
	name, from, err := control(r)
	if err != nil {
		return err
	}
	b := newBudget(s.limits.database, "its control archive has more than %d bytes")
	from = &bounded{from, b}
	switch strings.TrimPrefix(name, controlArchive) {
	case ".gz":
		from, err = gzip.NewReader(from)
	case ".xz":
		from, err = xzBlock(from)
	case ".zst":
		var z *zstd.Decoder
		z, err = zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(32<<20))
		if err == nil {
			defer z.Close()
			from = z
		}
	case "":
	default:
		err = fmt.Errorf("%s is compressed in a way that is not read", text(name))
	}
	if err != nil {
		return err
	}
	unpacked := &budget{left: s.limits.database, err: b.err}
	t := tar.NewReader(&bounded{from, unpacked})
	for {
		h, err := t.Next()
		if err != nil {
			return fmt.Errorf("no control file: %w", err)
		}
		if strings.TrimPrefix(h.Name, "./") == controlFile {
			return s.database(key, t, readDpkg)
		}
	}
}

package foreign

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Limits of what an archive of some size may unpack to. What these archives hold is compressed already; a
// layer of a docker archive shrinks to a tenth at most.
const (
	maxGrowth = 100
	freely    = 64 << 20 // bytes that any archive may unpack to
	maxFile   = 1<<33 - 1
)

// readFile reads an archive, or a single file.
func (i *Import) readFile(ctx context.Context, source string, info fs.FileInfo) (*tree, error) {
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is neither a file nor a folder")
	}
	f, err := os.Open(source)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	sum := sha256.New()
	raw := io.TeeReader(stoppable{ctx, f}, sum)
	content, isTar, err := openTar(raw)
	if err != nil {
		return nil, err
	}
	if _, named := i.Catalog.Named(filepath.Base(source)); !isTar || named {
		return single(ctx, source)
	}
	free, err := freeSpace(i.dir)
	if err != nil {
		return nil, err
	}
	t, err := i.unpack(ctx, content, newTree(maxEntries), min(free, info.Size()*maxGrowth+freely))
	if ctx.Err() == nil {
		// The archive can be a component itself, which its digest shows.
		if _, copying := io.Copy(io.Discard, raw); copying != nil {
			return nil, errors.Join(err, copying)
		}
		if _, ok := i.Catalog.Known(hex.EncodeToString(sum.Sum(nil))); ok {
			return single(ctx, source)
		}
	}
	return t, err
}

// single is the tree of one file.
func single(ctx context.Context, source string) (*tree, error) {
	t := newTree(1)
	name, err := t.admit(filepath.Base(source), true)
	if err != nil {
		return nil, err
	}
	if source, err = filepath.Abs(source); err != nil {
		return nil, err
	}
	f, err := os.Open(source)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	read := file{dir: filepath.Dir(source), name: filepath.Base(source)}
	err = read.digest(ctx, f)
	t.files[name] = read
	return t, err
}

// openTar returns the content of an archive, without its compression, and whether it is a tar.
func openTar(r io.Reader) (*bufio.Reader, bool, error) {
	b := bufio.NewReaderSize(r, 1<<20)
	if start, _ := b.Peek(2); string(start) == "\x1f\x8b" {
		z, err := gzip.NewReader(b)
		if err != nil {
			return b, false, cut(err)
		}
		b = bufio.NewReaderSize(z, 1<<20)
	}
	header, _ := b.Peek(512)
	return b, len(header) == 512 && bytes.HasPrefix(header[257:], []byte("ustar")), nil
}

// cut names what an archive that ends too early is.
func cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("the archive is cut off: copy it again")
	}
	return err
}

// freeSpace returns the bytes that can be written to a folder.
func freeSpace(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// unpack reads a tar, which may unpack to left bytes, into an empty tree. Its files get numbers as names.
func (i *Import) unpack(ctx context.Context, content *bufio.Reader, t *tree, left int64) (*tree, error) {
	end := &ending{Reader: content}
	r := tar.NewReader(end)
	last := "the start"
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return t, end.check(last)
		}
		if err != nil {
			return nil, fmt.Errorf("after %s: %w", last, cut(err))
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		last = fmt.Sprintf("the entry %q", clip(h.Name))
		name, err := t.admit(h.Name, h.Typeflag != tar.TypeDir)
		if err != nil {
			return nil, err
		}
		switch h.Typeflag {
		case tar.TypeDir:
		case tar.TypeReg:
			if h.Size > left || h.Size > maxFile {
				return nil, fmt.Errorf("%q has %d bytes: %s", name, h.Size, tooLarge(left))
			}
			left -= h.Size
			if t.files[name], err = i.save(ctx, r, h.Size); err != nil {
				return nil, fmt.Errorf("%q: %w", name, cut(err))
			}
		case tar.TypeSymlink:
			if t.links[name], err = layerLink(name, h.Linkname); err != nil {
				return nil, err
			}
		case tar.TypeLink:
			return nil, linkError(name, clip(h.Linkname))
		default:
			return nil, fmt.Errorf("%q is neither a file nor a folder", name)
		}
	}
}

func tooLarge(left int64) string {
	if left >= maxFile {
		return fmt.Sprintf("a file can have %d", int64(maxFile))
	}
	return fmt.Sprintf("%d more can be unpacked, by the size of the archive and the free space of the work folder", left)
}

// clip shortens a name for a message.
func clip(name string) string {
	if len(name) > 200 {
		return name[:200] + "..."
	}
	return name
}

// layerLink returns what a link of a docker archive leads to: ID/layer.tar to a file of the archive.
func layerLink(name, to string) (string, error) {
	rest, ok := strings.CutPrefix(to, "../")
	dir, base := path.Split(name)
	if !ok || base != "layer.tar" || strings.Count(dir, "/") != 1 || checkName(rest) != nil || len(to) > maxName {
		return "", linkError(name, clip(to))
	}
	return path.Clean(rest), nil
}

// save writes the content of an entry to a new file.
func (i *Import) save(ctx context.Context, r io.Reader, size int64) (file, error) {
	i.unpacked++
	saved := file{dir: i.dir, name: strconv.Itoa(i.unpacked)}
	f, err := os.OpenFile(saved.path(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return file{}, err
	}
	err = saved.digest(ctx, io.TeeReader(r, f))
	if err == nil && saved.size != size {
		err = io.ErrUnexpectedEOF
	}
	return saved, errors.Join(err, f.Close())
}

// ending notes whether the data ended before a tar did.
type ending struct {
	io.Reader
	ended bool
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	e.ended = e.ended || n == 0 && err != nil
	return n, err
}

// check reads what follows the end of a tar: only padding may, so that the checksum of a gzip is read too.
func (e *ending) check(last string) error {
	if e.ended {
		return fmt.Errorf("after %s: %w", last, cut(io.ErrUnexpectedEOF))
	}
	p := make([]byte, 4096)
	for read := 0; ; {
		n, err := e.Reader.Read(p)
		if read += n; read > freely || len(bytes.Trim(p[:n], "\x00")) > 0 {
			return fmt.Errorf("after %s: data follows the end of the archive", last)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("after %s: %w", last, cut(err))
		}
	}
}

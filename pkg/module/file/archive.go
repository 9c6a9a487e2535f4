package file

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip" // packs twice as fast as the standard library
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"kubekey/pkg/source"
)

// packing is the compression format of an archive, detected by its first bytes.
type packing struct {
	handler string   // name in results
	unpack  []string // host program for decompression; nil if none is needed
	magic   string
}

// packings returns the known formats. Anything else is uncompressed tar.
func packings() []packing {
	return []packing{
		{"TgzArchive", []string{"gzip", "-dc"}, "\x1f\x8b"},
		{"TarBzipArchive", []string{"bzip2", "-dc"}, "BZh"},
		{"TarXzArchive", []string{"xz", "-dc"}, "\xfd7zXZ\x00"},
		{"TarZstdArchive", []string{"zstd", "-dc"}, "\x28\xb5\x2f\xfd"},
		{"ZipArchive", []string{"unzip"}, "PK"},
	}
}

func packingOf(head []byte) packing {
	for _, p := range packings() {
		if bytes.HasPrefix(head, []byte(p.magic)) {
			return p
		}
	}
	return packing{handler: "TarArchive"}
}

func (p packing) isZip() bool { return p.handler == "ZipArchive" }

// archive is an archive on the control node.
type archive struct {
	packing
	tree source.Tree
	path string
}

func openArchive(tree source.Tree, name string) (*archive, error) {
	f, err := tree.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, pathCause(err))
	}
	defer f.Close()
	head := make([]byte, 6)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", name, pathCause(err))
	}
	return &archive{packingOf(head[:n]), tree, name}, nil
}

// walk calls each for every member, with a tar header and its content.
func (a *archive) walk(each func(h *tar.Header, r io.Reader) error) error {
	f, err := a.tree.Open(a.path)
	if err != nil {
		return fmt.Errorf("open %s: %w", a.path, pathCause(err))
	}
	defer f.Close()
	if a.isZip() {
		err = walkZip(f, each)
	} else {
		err = a.walkTar(f, each)
	}
	if err != nil {
		return fmt.Errorf("read archive %s: %w", a.path, err)
	}
	return nil
}

func (a *archive) walkTar(f io.Reader, each func(h *tar.Header, r io.Reader) error) error {
	plain, closer, err := a.decompress(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return err
	}
	defer closer()
	r := tar.NewReader(plain)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(h, r); err != nil {
			return err
		}
	}
}

func (a *archive) decompress(r io.Reader) (io.Reader, func(), error) {
	nothing := func() {}
	switch a.handler {
	case "TgzArchive":
		z, err := gzip.NewReader(r)
		return z, nothing, err
	case "TarBzipArchive":
		return bzip2.NewReader(r), nothing, nil
	case "TarXzArchive":
		z, err := xz.NewReader(r)
		return z, nothing, err
	case "TarZstdArchive":
		z, err := zstd.NewReader(r)
		if err != nil {
			return nil, nothing, err
		}
		return z, z.Close, nil
	}
	return r, nothing, nil
}

func walkZip(f fs.File, each func(h *tar.Header, r io.Reader) error) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	at, ok := f.(io.ReaderAt)
	if !ok {
		text, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		at = bytes.NewReader(text)
	}
	z, err := zip.NewReader(at, info.Size())
	if err != nil {
		return err
	}
	for _, m := range z.File {
		if err := zipMember(m, each); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// zipMember converts the header of a zip member to a tar header.
func zipMember(m *zip.File, each func(h *tar.Header, r io.Reader) error) error {
	r, err := m.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	info := m.FileInfo()
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		text, err := io.ReadAll(io.LimitReader(r, 4096))
		if err != nil {
			return err
		}
		link = string(text)
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname, h.Uid, h.Gid = m.Name, "", "", 0, 0
	h.ModTime = m.Modified
	if h.Mode&0o777 == 0 { // created on a system without modes
		h.Mode = 0o644
		if info.IsDir() {
			h.Mode = 0o755
		}
	}
	return each(h, r)
}

// member is one member of an archive, in its desired state on the host.
type member struct {
	name  string // relative to dest
	from  string // its name in the archive
	kind  uint32
	hard  bool // a hard link: only its name is known
	mode  uint32
	size  int64
	mtime int64
	link  string
}

// members returns the members of the archive.
func (a *archive) members() ([]member, error) {
	var all []member
	err := a.walk(func(h *tar.Header, _ io.Reader) error {
		if m, ok := memberOf(h); ok {
			all = append(all, m)
		}
		return nil
	})
	return all, err
}

func memberOf(h *tar.Header) (member, bool) {
	m := member{from: h.Name, mode: uint32(h.Mode & 0o7777), size: h.Size, mtime: h.ModTime.Unix(), link: h.Linkname}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		m.kind = typeFile
	case tar.TypeDir:
		m.kind = typeDir
	case tar.TypeSymlink:
		m.kind = typeLink
	case tar.TypeLink:
		m.kind, m.hard = typeFile, true
	default:
		return m, false
	}
	return m, true
}

// memberName returns the target path of a member: cleaned, without its first strip components. It is "" if nothing
// remains. A name outside of dest is an error.
func memberName(name string, strip int) (string, error) {
	name = strings.TrimLeft(name, "/")
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("the member %q leads out of the destination", name)
		}
	}
	clean := path.Clean("/" + name)[1:]
	for ; strip > 0 && clean != ""; strip-- {
		_, clean, _ = strings.Cut(clean, "/")
	}
	return clean, nil
}

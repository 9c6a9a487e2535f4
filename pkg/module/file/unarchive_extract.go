package file

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/klauspost/compress/gzip"

	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// extract extracts the members on the host.
func (u *unpacking) extract(ctx context.Context, results *value.Dict) error {
	if u.local == nil {
		return u.extractRemote(ctx, results)
	}
	tool, stream, err := u.source()
	if err != nil {
		return err
	}
	defer stream.Close()
	cmd := append([]string{"tar", "-x"}, append(u.options, "-f", "-", "-C", u.dest.path)...)
	results.Set("cmd", value.Of(cmd))
	var s script
	line := "kk_do " + shell.Quote("unpack into "+u.dest.path) + " " + shell.Join(cmd...)
	if len(tool) > 0 {
		line = shell.Join(tool...) + " | " + line
	}
	s.line("( " + line + " ) || exit")
	out, err := s.stream(ctx, u.c, stream)
	if err == nil {
		results.Set("out", string(out))
	}
	return err
}

// source returns the archive to send, and the host command that converts it to tar. A tar file, with gzip or
// without, is sent unchanged if the host lacks all members and none is renamed or filtered out. Everything else is
// repacked with only the members that the host lacks.
func (u *unpacking) source() (tool []string, stream io.ReadCloser, err error) {
	whole := u.strip == 0 && len(u.changed) == len(u.members) && len(u.Include)+len(u.Exclude) == 0
	if whole && (u.packing.handler == "TgzArchive" || u.packing.handler == "TarArchive") {
		f, err := u.local.tree.Open(u.src)
		if err != nil {
			return nil, nil, err
		}
		return u.packing.unpack, u.counted(f, f), nil
	}
	f, err := u.packed()
	if err != nil {
		return nil, nil, err
	}
	return []string{"gzip", "-dc"}, io.NopCloser(io.NewSectionReader(f, 0, math.MaxInt64)), nil
}

// packed returns the output of repack, which is created once for all hosts that lack the same members. The file is
// already unlinked: it is deleted when its last reader closes it, or when kk exits.
func (u *unpacking) packed() (*os.File, error) {
	stamp, err := u.stamp()
	if err != nil {
		return nil, err
	}
	lacking := sha256.New()
	for _, m := range u.changed {
		fmt.Fprintf(lacking, "%q as %q\n", m.from, m.name)
	}
	v, err := u.c.Share.Do(fmt.Sprintf("%x of %s", lacking.Sum(nil), stamp), func() (any, error) {
		f, err := os.CreateTemp("", "kk-*")
		if err != nil {
			return nil, err
		}
		if err := errors.Join(os.Remove(f.Name()), u.repack(f)); err != nil {
			return nil, errors.Join(fmt.Errorf("pack the missing members of %s: %w", u.src, err), f.Close())
		}
		return f, nil
	})
	f, _ := v.(*os.File)
	return f, err
}

// counted reports the progress of sending the archive.
func (u *unpacking) counted(r io.Reader, c io.Closer) io.ReadCloser {
	if u.c.Progress == nil {
		return struct {
			io.Reader
			io.Closer
		}{r, c}
	}
	total := int64(-1)
	if info, err := u.c.Files.Stat(u.src); err == nil {
		total = info.Size()
	}
	return &progressReader{r: r, Closer: c, tell: func(n int64) { u.c.Progress(u.src, n, total) }}
}

type progressReader struct {
	io.Closer
	r    io.Reader
	n    int64
	tell func(int64)
}

func (p *progressReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.n += int64(n)
	p.tell(p.n)
	return n, err
}

// repack writes the members to extract as tar with gzip.
func (u *unpacking) repack(w io.Writer) error {
	desired := map[string]member{}
	for _, m := range u.changed {
		desired[m.from] = m
	}
	b := bufio.NewWriterSize(w, 1<<16) // gzip writes small pieces
	z, err := gzip.NewWriterLevel(b, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	err = u.local.walk(func(h *tar.Header, r io.Reader) error {
		m, ok := desired[h.Name]
		if !ok {
			return nil
		}
		h.Name = m.name
		if m.kind == typeDir {
			h.Name += "/"
		}
		if m.hard {
			if h.Linkname, err = memberName(h.Linkname, u.strip); err != nil {
				return err
			}
		}
		h.Format = tar.FormatUnknown
		h.PAXRecords = nil
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.Copy(t, r)
		return err
	})
	return errors.Join(err, t.Close(), z.Close(), b.Flush())
}

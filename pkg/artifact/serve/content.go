package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// content is read from any position. It is opened with the first read, and read from its start up to that position,
// since that is how its digest is computed: what is sent up to its end was verified as a whole.
type content struct {
	ctx    context.Context
	open   func(context.Context) (io.ReadCloser, error)
	size   int64
	digest string
	from   string // path of the offline file

	r    io.ReadCloser
	at   int64 // position of r
	next int64 // position of the next read
	err  error // why it cannot be read
}

// blob is the content of a blob of the item's file.
func (s stored) blob(digest string, size int64) *content {
	return &content{from: s.file.Path, size: size, digest: digest, open: func(context.Context) (io.ReadCloser, error) {
		r, err := s.file.Blob(digest)
		if err != nil {
			return nil, err
		}
		return io.NopCloser(r), nil
	}}
}

// decoded is the content of the item, whose blob is compressed. It waits for its turn among the decoders.
func (s stored) decoded(turns chan struct{}) *content {
	open := func(ctx context.Context) (io.ReadCloser, error) {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		r, err := s.file.Content(s.Item)
		if err != nil {
			<-turns
			return nil, err
		}
		return turn{r, turns}, nil
	}
	return &content{from: s.file.Path, size: s.Size, digest: "sha256:" + s.SHA256, open: open}
}

// turn is an open decoder.
type turn struct {
	io.ReadCloser
	turns chan struct{}
}

func (t turn) Close() error {
	err := t.ReadCloser.Close()
	<-t.turns
	return err
}

// Seek implements io.Seeker.
func (c *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.next
	case io.SeekEnd:
		offset += c.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d", offset)
	}
	c.next = offset
	return offset, nil
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.next >= c.size {
		return 0, io.EOF
	}
	n, err := c.read(p)
	if err != nil {
		c.err = err
		return 0, err
	}
	return n, nil
}

func (c *content) read(p []byte) (int, error) {
	if err := c.move(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.size-c.at)])
	c.at += int64(n)
	c.next = c.at
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return 0, err
	case c.at == c.size:
		// The digest is compared at the end: until then the last piece is kept back.
		return n, c.end()
	case err != nil:
		return 0, io.ErrUnexpectedEOF
	}
	return n, nil
}

// move opens the content, and skips what precedes the next read.
func (c *content) move() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.r == nil || c.next < c.at {
		c.close()
		r, err := c.open(c.ctx)
		if err != nil {
			return err
		}
		c.r, c.at = r, 0
	}
	for c.at < c.next {
		n, err := io.CopyN(io.Discard, c.r, min(1<<20, c.next-c.at))
		c.at += n
		if err = errors.Join(err, c.ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// end reads the end, which is where damage is found.
func (c *content) end() error {
	switch n, err := io.CopyN(io.Discard, c.r, 1); {
	case n > 0:
		return fmt.Errorf("%s has more than %d bytes", c.digest, c.size)
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

func (c *content) close() {
	if c.r != nil {
		_ = c.r.Close() // only read
		c.r = nil
	}
}

package offline

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/relay"
)

// plainNode is a host without the program: files go to it over kk's connection.
type plainNode struct {
	conn  connector.Connector
	dir   string
	stock *stock
	rate  *relay.Limiter
	zstd  bool // the host has the command
}

// maxAsked is how many blobs a host is asked for at a time: the answer is bounded.
const maxAsked = 50

// Has implements relay.Node.
func (n *plainNode) Has(ctx context.Context, blobs []relay.Blob) ([]bool, error) {
	has := make([]bool, len(blobs))
	for begin := 0; begin < len(blobs); begin += maxAsked {
		part := blobs[begin:min(begin+maxAsked, len(blobs))]
		args := []string{n.dir, "has"}
		for _, b := range part {
			args = append(args, b.Hex())
		}
		out, err := script(ctx, n.conn, args...)
		if err != nil {
			return nil, err
		}
		answered := map[string]bool{}
		for _, name := range strings.Fields(out) {
			answered[name] = true
		}
		for i, b := range part {
			has[begin+i] = answered[b.Hex()]
		}
	}
	return has, nil
}

// Fetch implements relay.Node. It is never called, since there is no source.
func (n *plainNode) Fetch(context.Context, relay.Blob, relay.Source) error {
	return errors.New("the host fetches from no other one")
}

// Source implements relay.Node.
func (n *plainNode) Source() relay.Source { return relay.Source{} }

// Send implements relay.Node. What the host cannot unpack is sent unpacked.
func (n *plainNode) Send(ctx context.Context, b relay.Blob) error {
	open := n.stock.open
	if i, packed := n.stock.items[b.Digest]; packed && !n.zstd {
		open = func(relay.Blob) (io.ReadCloser, error) { return n.stock.content(b) }
		return n.put(ctx, relay.Blob{Digest: "sha256:" + i.SHA256, Size: i.Size}, open)
	}
	return n.put(ctx, b, open)
}

func (n *plainNode) put(ctx context.Context, b relay.Blob, open func(relay.Blob) (io.ReadCloser, error)) error {
	from, err := open(b)
	if err != nil {
		return err
	}
	_, err = connector.Put(ctx, n.conn, connector.File{Path: path.Join(n.dir, b.Hex()), Mode: 0o600, Size: b.Size,
		SHA256: b.Hex()}, &slowed{from, ctx, n.rate})
	return errors.Join(err, from.Close())
}

// slowed is read no faster than a rate.
type slowed struct {
	io.Reader
	ctx  context.Context
	rate *relay.Limiter
}

func (s *slowed) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if waited := s.rate.Wait(s.ctx, n); waited != nil {
		return 0, waited
	}
	return n, err
}

// Unpack unpacks a blob.
func (n *plainNode) Unpack(ctx context.Context, packed, content relay.Blob) error {
	_, err := script(ctx, n.conn, n.dir, "unpack", packed.Hex(), content.Hex())
	return err
}

// Remove removes a blob.
func (n *plainNode) Remove(ctx context.Context, b relay.Blob) error {
	_, err := script(ctx, n.conn, n.dir, "forget", b.Hex())
	return err
}

// Close does nothing: the connection belongs to the run.
func (n *plainNode) Close() error { return nil }

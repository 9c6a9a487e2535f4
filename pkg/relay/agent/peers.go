package agent

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"kubekey/pkg/relay"
)

// Hosts talk over TLS 1.3, each with a certificate of the run. The one that fetches sends the line "get DIGEST"; the
// answer is the line "ok SIZE" with the bytes behind it, or "no REASON".

const (
	protocol  = "kk-relay/1" // for ALPN
	maxPeers  = 8            // connections that are served at a time
	maxText   = 256          // bytes of a line
	handshake = 10 * time.Second
	dialing   = 5 * time.Second
)

// peers is how a host reaches others, and is reached.
type peers struct {
	tls     *tls.Config // without ServerName
	rate    *relay.Limiter
	stall   time.Duration
	silence time.Duration
}

func newPeers(s *relay.Start) (*peers, error) {
	cert, err := tls.X509KeyPair(s.Cert, s.Key)
	if err != nil {
		return nil, fmt.Errorf("the certificate of this host: %w", err)
	}
	cas := x509.NewCertPool()
	if !cas.AppendCertsFromPEM(s.CA) {
		return nil, errors.New("the CA is not a certificate")
	}
	// The control node's clock is right enough for the certificates of both ends; that of a new host may not be.
	ahead := time.Until(s.Now)
	return &peers{
		tls: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: cas, ClientCAs: cas,
			ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{protocol}, SessionTicketsDisabled: true,
			Time: func() time.Time { return time.Now().Add(ahead) },
		},
		rate: relay.NewLimiter(s.Rate), stall: cmp.Or(max(0, s.Stall), 20*time.Second),
		silence: s.Quiet(),
	}, nil
}

// serve answers other hosts until ctx ends.
func (p *peers) serve(ctx context.Context, l net.Listener, s *store) {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	slots := make(chan struct{}, maxPeers)
	var wait sync.WaitGroup
	defer wait.Wait()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = c.Close()
			}
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // out of descriptors; others will be closed
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		wait.Go(func() {
			defer func() { <-slots }()
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			defer stop()
			p.answer(ctx, tls.Server(c, p.tls), s)
		})
	}
}

// answer answers one host.
func (p *peers) answer(ctx context.Context, c *tls.Conn, s *store) {
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(handshake)) // a closed connection fails below
	line, err := readText(bufio.NewReaderSize(c, maxText))
	if err != nil {
		return // not one of us
	}
	to := &moving{conn: c, stall: p.stall}
	name, err := parseGet(line)
	if err != nil {
		_, _ = fmt.Fprintf(to, "no %s\n", err) // the other end finds out itself
		return
	}
	f, size, err := s.open(name)
	if err != nil {
		_, _ = fmt.Fprintf(to, "no %s\n", err)
		return
	}
	defer func() { _ = f.Close() }() // only read
	if _, err := fmt.Fprintf(to, "ok %d\n", size); err != nil {
		return
	}
	_, _ = io.CopyBuffer(&limited{to, ctx, p.rate}, struct{ io.Reader }{io.LimitReader(f, size)}, make([]byte, 64<<10))
}

// fetch gets a blob from another host.
func (p *peers) fetch(ctx context.Context, b relay.Blob, from relay.Source, s *store) error {
	config := p.tls.Clone()
	config.ServerName = from.Name
	dialer := net.Dialer{Timeout: dialing}
	raw, err := dialer.DialContext(ctx, "tcp", from.Address)
	if err != nil {
		return &relay.TransferError{Fault: relay.Unreachable, Text: err.Error()}
	}
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
	c := tls.Client(raw, config)
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(handshake)) // a closed connection fails below
	if err := c.HandshakeContext(ctx); err != nil {
		return &relay.TransferError{Fault: relay.Unreachable, Text: "TLS with " + from.Address + ": " + err.Error()}
	}
	_, err = fmt.Fprintf(c, "get %s\n", b.Digest)
	r := bufio.NewReaderSize(&moving{conn: c, stall: p.stall}, 64<<10)
	var line string
	if err == nil {
		line, err = readText(r)
	}
	if err != nil {
		return &relay.TransferError{Fault: relay.Unreachable, Text: from.Address + ": " + err.Error()}
	}
	size, err := parseOffer(line)
	if err != nil {
		return &relay.TransferError{Fault: relay.Refused, Text: from.Address + ": " + err.Error()}
	}
	if size != b.Size {
		return &relay.TransferError{Fault: relay.Wrong, Text: fmt.Sprintf("%s has %d bytes of %s instead of %d",
			from.Address, size, b.Digest, b.Size)}
	}
	watched := &watchedReader{from: io.LimitReader(r, size)}
	err = s.add(b, watched)
	switch {
	case watched.err != nil && isTimeout(watched.err):
		return &relay.TransferError{Fault: relay.Slow, Text: fmt.Sprintf("%s sent nothing for %s", from.Address, p.stall)}
	case watched.err != nil:
		return &relay.TransferError{Fault: relay.Unreachable, Text: from.Address + ": " + watched.err.Error()}
	case err != nil && watched.n < size && isWrong(err):
		return &relay.TransferError{Fault: relay.Unreachable, Text: fmt.Sprintf("%s sent %d of %d bytes", from.Address,
			watched.n, size)}
	case err != nil && isWrong(err):
		return &relay.TransferError{Fault: relay.Wrong, Text: from.Address + ": " + err.Error()}
	}
	return err
}

func isWrong(err error) bool {
	var t *relay.TransferError
	return errors.As(err, &t) && t.Fault == relay.Wrong
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// watchedReader distinguishes errors of the source from those of the disk.
type watchedReader struct {
	from io.Reader
	n    int64
	err  error
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	w.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// moving is a connection that fails when nothing moves for a while.
type moving struct {
	conn  net.Conn
	stall time.Duration
}

func (m *moving) Read(p []byte) (int, error) {
	_ = m.conn.SetDeadline(time.Now().Add(m.stall)) // a closed connection fails in Read
	return m.conn.Read(p)
}

func (m *moving) Write(p []byte) (int, error) {
	_ = m.conn.SetDeadline(time.Now().Add(m.stall)) // a closed connection fails in Write
	return m.conn.Write(p)
}

// limited writes no faster than a rate.
type limited struct {
	io.Writer
	ctx  context.Context
	rate *relay.Limiter
}

func (l *limited) Write(p []byte) (int, error) {
	if err := l.rate.Wait(l.ctx, len(p)); err != nil {
		return 0, err
	}
	return l.Writer.Write(p)
}

// readText reads a short line without its end.
func readText(r *bufio.Reader) (string, error) {
	var line []byte
	for len(line) < maxText {
		c, err := r.ReadByte()
		switch {
		case err != nil:
			return "", err
		case c == '\n':
			return string(line), nil
		}
		line = append(line, c)
	}
	return "", fmt.Errorf("a line has more than %d bytes", maxText)
}

// parseGet returns the name of the file that a line asks for.
func parseGet(line string) (string, error) {
	digest, ok := strings.CutPrefix(line, "get ")
	if !ok {
		return "", errors.New("only get is answered")
	}
	b := relay.Blob{Digest: digest}
	if b.Check() != nil {
		return "", errors.New("that is no digest")
	}
	return b.Hex(), nil
}

// parseOffer returns the size in the answer to get.
func parseOffer(line string) (int64, error) {
	text, ok := strings.CutPrefix(line, "ok ")
	if !ok {
		return 0, fmt.Errorf("the answer is %.200q", line)
	}
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil || size < 0 {
		return 0, fmt.Errorf("the answer is %.200q", line)
	}
	return size, nil
}

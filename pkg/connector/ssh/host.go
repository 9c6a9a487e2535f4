package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"kubekey/pkg/connector"
)

// Host is one host reached over SSH. It connects on first use, and reconnects with up to
// five attempts if the connection was lost between commands.
type Host struct {
	target *target
	shared *Shared
	turn   chan struct{} // held by the one goroutine that connects

	mu       sync.Mutex
	link     *link
	wasThere bool
	closed   bool

	ctx  context.Context // cancelled by Close
	stop context.CancelFunc
}

var _ connector.Connector = (*Host)(nil)

// errClosed is what a Host returns after Close.
var errClosed = errors.New("ssh: the connection was closed by kk")

// Close closes the connection and kills every command that runs on it.
func (h *Host) Close() error {
	h.mu.Lock()
	l := h.link
	h.closed, h.link = true, nil
	h.mu.Unlock()
	h.stop()
	if l != nil {
		l.close()
	}
	return nil
}

// Run implements connector.Connector. A command is sent once: one that may have started is
// never run again.
func (h *Host) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	line, stdin, err := connector.WithEnv(c)
	if err != nil {
		return connector.Exit{}, err
	}
	for {
		l, err := h.connected(ctx)
		if err != nil {
			return connector.Exit{}, err
		}
		s, err := l.acquire(ctx, needOf(c, stdin))
		switch {
		case err == nil:
			return h.run(ctx, s, line, stdin, c)
		case errors.Is(err, errFull):
			return h.runApart(ctx, line, stdin, c)
		case ctx.Err() != nil:
			return connector.Exit{}, ctx.Err()
		case !l.dead():
			return connector.Exit{}, unreachable(h.target, err)
		}
		// Lost before the command was sent: reconnect.
	}
}

// apart opens a second connection next to the shared one. The caller closes it.
func (h *Host) apart(ctx context.Context) (*link, error) {
	client, closers, err := h.shared.dialPatiently(ctx, h.target, true)
	if err != nil {
		return nil, err
	}
	return newLink(client, closers, h.target), nil
}

// runApart runs a command on a connection of its own.
func (h *Host) runApart(
	ctx context.Context, line string, stdin io.Reader, c connector.Command,
) (connector.Exit, error) {
	// Close ends it too.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	l, err := h.apart(ctx)
	if err != nil {
		return connector.Exit{}, err
	}
	defer l.close()
	s, err := l.acquire(ctx, needNothing)
	if err != nil {
		return connector.Exit{}, unreachable(h.target, err)
	}
	return h.run(ctx, s, line, stdin, c)
}

func (h *Host) run(
	ctx context.Context, s *session, line string, stdin io.Reader, c connector.Command,
) (connector.Exit, error) {
	mark := connector.NewMark()
	wire, find := s.prepareLine(line, mark, c.TTY)
	c.Stdin = stdin
	s.link.occupy(s, c.Yield)
	exit, err := s.run(ctx, wire, c, find)
	var cut *cutError
	switch {
	case err == nil:
		s.release()
		return exit, nil
	case ctx.Err() != nil:
		h.kill(s, mark)
		return exit, ctx.Err()
	case h.ctx.Err() != nil:
		return exit, errClosed
	case errors.As(err, &cut):
		s.release()
		return exit, h.lost(cut)
	}
	s.release()
	return exit, err
}

func (h *Host) lost(cut *cutError) error {
	return &connector.UnreachableError{
		Host: h.target.addr(),
		Reason: fmt.Sprintf("lost the connection to %s while a command ran; the command may have finished or still run: %s",
			h.target.name(), whyLost(cut)),
		Err: cut,
	}
}

// connected returns the link, connecting if there is none that is alive.
func (h *Host) connected(ctx context.Context) (*link, error) {
	if l, err := h.current(); l != nil || err != nil {
		return l, err
	}
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l, err := h.current(); l != nil || err != nil {
		return l, err
	}
	// Close also stops a connection attempt.
	dialing, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	client, closers, err := h.shared.dialPatiently(dialing, h.target, h.wasThere)
	if h.ctx.Err() != nil {
		err = errClosed
		if client != nil {
			client.Close()
			closeAll(closers)
		}
	}
	if err != nil {
		return nil, err
	}
	return h.adopt(newLink(client, closers, h.target))
}

func (h *Host) current() (*link, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	if h.link != nil && h.link.dead() {
		h.link.close()
		h.link = nil
	}
	return h.link, nil
}

func (h *Host) adopt(l *link) (*link, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		l.close()
		return nil, errClosed
	}
	h.link, h.wasThere = l, true
	return l, nil
}

// killTime bounds killing a cancelled command: two seconds for it to exit, the rest for a
// slow link.
const killTime = 8 * time.Second

// kill kills a cancelled command on the host, over another channel, or over another
// connection if the server allows no second channel.
func (h *Host) kill(s *session, mark string) {
	ctx, cancel := context.WithTimeout(h.ctx, killTime)
	defer cancel()
	defer s.release()
	c := connector.Command{Line: connector.KillMarked(mark)}
	if s.link.dead() {
		return
	}
	if killOver(ctx, s.link, needNow, c) == nil {
		s.awaitClose()
		return
	}
	l, err := h.apart(ctx)
	if err != nil {
		s.signal("TERM")
		return
	}
	defer l.close()
	if killOver(ctx, l, needNothing, c) != nil {
		s.signal("TERM")
	}
	s.awaitClose()
}

func killOver(ctx context.Context, l *link, n need, c connector.Command) error {
	s, err := l.acquire(ctx, n)
	if err != nil {
		return err
	}
	defer s.release()
	line := c.Line
	if !s.waits {
		line = wrap(line)
	}
	_, err = s.run(ctx, line, c, nil)
	return err
}

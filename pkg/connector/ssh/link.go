package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// link is one connection and its session channels. One channel is opened ahead of need, so
// that a command costs one round trip. After the first command with input, another is opened
// with a shell that waits for a command.
type link struct {
	client   *ssh.Client
	closers  []io.Closer // jump hosts
	target   *target
	gone     chan struct{} // closed when the connection has ended
	buffers  sync.Pool
	throttle *throttle
	shell    loginShell
	silent   atomic.Int64 // how long the host had not answered, if that ended the connection

	mu       sync.Mutex
	cause    error               // why the connection ended; set before gone is closed
	spares   []*session          // open, unused; at most one unless a caller gave up
	ready    []*session          // with a waiting shell, unused
	opening  int                 // sessions being opened
	starting int                 // waiting shells being started
	waiting  int                 // callers that wait for a session
	feeders  int                 // those of them that have input
	feeds    bool                // a command with input was seen
	died     int                 // waiting shells that ended unused
	used     int                 // sessions open, being opened, or spare
	limit    int                 // sessions that the server allows, as far as is known
	yields   map[*session]func() // ask commands that run for later use to end
	refused  int                 // refusals in a row while no session was open
	refusal  error               // the last of them
	changed  chan struct{}       // closed and replaced whenever the above changes
}

// manySessions is the limit until the server refuses a session. OpenSSH allows ten.
const manySessions = 64

func newLink(client *ssh.Client, closers []io.Closer, t *target) *link {
	l := &link{client: client, closers: closers, target: t, limit: manySessions, yields: map[*session]func(){},
		gone: make(chan struct{}), changed: make(chan struct{}), throttle: throttleOf(client)}
	l.throttle.release()
	l.buffers.New = func() any { b := make([]byte, 32<<10); return &b }
	go func() {
		l.cause = client.Wait()
		if d := l.silent.Load(); d > 0 {
			l.cause = silentError{time.Duration(d)}
		}
		close(l.gone)
	}()
	if t.KeepAlive > 0 {
		go l.keepAlive(t.KeepAlive)
	}
	return l
}

func (l *link) dead() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

func (l *link) close() {
	l.client.Close()
	closeAll(l.closers)
}

// keepAlive closes the connection when the host has not answered for two intervals: a host
// that lost power closes nothing.
func (l *link) keepAlive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-l.gone:
			return
		case <-tick.C:
		}
		answered := make(chan struct{})
		go func() {
			// A rejection is an answer; an error means that the connection has ended.
			_, _, _ = l.client.SendRequest("keepalive@openssh.com", true, nil)
			close(answered)
		}()
		select {
		case <-answered:
		case <-l.gone:
			return
		case <-time.After(2 * every):
			l.silent.Store(int64(2 * every))
			l.close()
			return
		}
	}
}

// signalLocked wakes the callers that wait for a session. l.mu is held.
func (l *link) signalLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// maxRefused is how often in a row a server may refuse the only session: it can take a
// moment to release one that was just closed.
const maxRefused = 6

// errFull reports that a command would have to wait for another to exit.
var errFull = errors.New("the server allows no more sessions than are open")

// acquire returns an open session, waiting for one if the server's limit is reached, and has
// the next ones prepared meanwhile. With needNow it returns errFull instead of waiting.
func (l *link) acquire(ctx context.Context, n need) (*session, error) {
	l.mu.Lock()
	l.waiting++
	if n == needInput {
		l.feeds = true
		l.feeders++
	}
	defer func() {
		l.waiting--
		if n == needInput {
			l.feeders--
		}
		l.mu.Unlock()
	}()
	for {
		if s := l.takeLocked(n); s != nil {
			l.aheadLocked(l.waiting - 1)
			return s, nil
		}
		switch {
		case l.refused > maxRefused:
			// Not wrapped: callers take a wrapped one for that of a jump host.
			return nil, fmt.Errorf("the server refuses to open a session: %v: does it allow any (MaxSessions of sshd)?",
				l.refusal)
		case l.opening < l.waiting && !l.soonLocked(n):
			l.openLocked()
		}
		if l.used >= l.limit && l.opening == 0 {
			if n == needNow {
				return nil, errFull
			}
			l.yieldLocked()
		}
		if err := l.waitLocked(ctx); err != nil {
			return nil, err
		}
	}
}

// takeLocked returns the session that serves n soonest, nil if there is none. l.mu is held.
func (l *link) takeLocked(n need) (s *session) {
	full := l.used >= l.limit
	switch {
	case len(l.ready) > 0 && (n == needInput || n != needFresh && full && len(l.spares) == 0):
		s, l.ready = l.ready[0], l.ready[1:]
	case len(l.spares) > 0 && !l.soonLocked(n):
		s, l.spares = l.spares[0], l.spares[1:]
	case len(l.ready) > 0 && n == needFresh && full:
		// It occupies the session that is needed.
		go l.ready[0].release()
		l.ready = l.ready[1:]
	}
	return s
}

// soonLocked reports whether n should wait for a shell that is being started: it is ready
// within a round trip. l.mu is held.
func (l *link) soonLocked(n need) bool { return n == needInput && l.starting >= l.feeders }

// aheadLocked prepares sessions for the command after those of the waiting callers.
// l.mu is held.
func (l *link) aheadLocked(callers int) {
	if l.feeds && l.died < maxDied && len(l.ready)+l.starting == 0 && len(l.spares) > callers {
		l.prepareLocked()
	}
	if len(l.spares) == 0 && l.opening <= callers {
		l.openLocked()
	}
}

// waitLocked waits for a change. l.mu is held, but released while it waits.
func (l *link) waitLocked(ctx context.Context) error {
	changed := l.changed
	l.mu.Unlock()
	defer l.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-l.gone:
		return errors.New("the connection has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// openLocked opens a session in the background, if the limit allows. That ends with the
// connection at the latest. l.mu is held.
func (l *link) openLocked() {
	if l.used >= l.limit {
		return
	}
	l.used++
	l.opening++
	pause := time.Duration(l.refused*l.refused) * 10 * time.Millisecond
	go func() {
		time.Sleep(pause)
		channel, requests, err := l.client.OpenChannel("session", nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.opening--
		if err != nil {
			l.missedLocked(err)
		} else {
			l.refused = 0
			l.spares = append(l.spares, newSession(l, channel, requests))
			if l.feeds {
				l.aheadLocked(l.waiting)
			}
		}
		l.signalLocked()
	}()
}

// missedLocked records that a session was not opened. l.mu is held.
func (l *link) missedLocked(err error) {
	l.used--
	if !isRefusal(err) {
		return // the connection has ended, which is reported elsewhere
	}
	if l.used == 0 {
		l.refused++
		l.refusal = err
	}
	l.limit = max(1, min(l.limit, l.used))
}

// occupy records how to ask the command of a session to yield, if it can.
func (l *link) occupy(s *session, yield func()) {
	if yield == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.yields[s] = yield
	// A caller may already wait.
	l.signalLocked()
}

// yieldLocked asks commands to release their sessions. l.mu is held.
func (l *link) yieldLocked() {
	for s, yield := range l.yields {
		delete(l.yields, s)
		go yield()
	}
}

// release makes room for the session after s, and opens it ahead of need.
func (l *link) release(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used--
	delete(l.yields, s)
	if l.opening == 0 && !l.dead() {
		l.aheadLocked(l.waiting)
	}
	l.signalLocked()
}

func isRefusal(err error) bool {
	var refused *ssh.OpenChannelError
	return errors.As(err, &refused)
}

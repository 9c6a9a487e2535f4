package connector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// PersistentShell returns c such that scripts (Command.Script) run in forks of one shell
// that keeps running: a script then costs the host neither a session nor a new shell, and
// one round trip including its input. The shell is started once several scripts in a row
// were seen.
//
// All other commands are passed to c unchanged, and so are scripts while the shell is busy
// or unavailable. A playbook's own command lines never run in it, so nothing that they do to
// their shell, or leave running, affects another command. Become of the result has a
// persistent shell too.
func PersistentShell(c Connector) Connector {
	return &persistent{Connector: c, logins: new(atomic.Int64), deferred: new(deferrals)}
}

type persistent struct {
	Connector
	// logins counts changes to what applies to new logins. All users of the connection share it.
	logins   *atomic.Int64
	deferred *deferrals // shared too

	mu       sync.Mutex
	idle     *persistentShell // nil if there is none, or it is starting or busy
	exists   bool             // a shell runs or is starting
	scripts  int              // scripts in a row that went without one
	failures int              // shells that exited by themselves or had to yield
	closed   bool
	shell    *persistentShell // the last that was started
}

// maxFailures is how many shells may fail before none is started any more.
const maxFailures = 3

// maxInput is the largest input, in bytes, that is sent to the shell with the script.
const maxInput = 64 << 10

// Run implements Connector.
func (s *persistent) Run(ctx context.Context, c Command) (Exit, error) {
	switch {
	case c.Deferral != NotDeferred:
		s.deferred.note(s.Connector, c)
		return Exit{}, nil
	case c.IgnoresDeferred:
		s.deferred.prepare(&c)
	default:
		if err := s.deferred.flush(ctx); err != nil {
			return Exit{}, err
		}
		s.deferred.invalidate()
		defer s.deferred.invalidate()
	}
	return s.run(ctx, c)
}

func (s *persistent) run(ctx context.Context, c Command) (Exit, error) {
	if c.Script == nil {
		exit, err := s.plain(ctx, c)
		if !c.Probe && c.Yield == nil {
			s.logins.Add(1)
			s.between()
		}
		return exit, err
	}
	if c.Script.Renews {
		defer s.logins.Add(1)
	}
	if sh := s.take(c); sh != nil {
		exit, started, err := s.runIn(ctx, sh, &c)
		if started || err != nil {
			return exit, err
		}
		// The shell exited before it read the script.
	}
	exit, err := s.plain(ctx, c)
	if err == nil {
		s.begin(ctx)
	}
	return exit, err
}

// plain runs a command without the shell. A lost connection takes the shell with it, which
// the shell's own reader may detect a moment later.
func (s *persistent) plain(ctx context.Context, c Command) (Exit, error) {
	exit, err := s.Connector.Run(ctx, c)
	if lost := (*UnreachableError)(nil); errors.As(err, &lost) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.shell != nil {
			s.shell.markBroken()
		}
	}
	return exit, err
}

// runIn runs a script in the shell. If started is false, c can be run again.
func (s *persistent) runIn(ctx context.Context, sh *persistentShell, c *Command) (exit Exit, started bool, err error) {
	defer s.giveBack(sh)
	var input []byte
	if c.Stdin != nil {
		if input, err = io.ReadAll(c.Stdin); err != nil {
			return exit, false, fmt.Errorf("read the input of a script: %w", err)
		}
		c.Stdin = bytes.NewReader(input)
	}
	return sh.run(ctx, *c, input)
}

// between records that something other than a script was run.
func (s *persistent) between() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts = 0
}

// take returns the shell if it is idle and can run c.
func (s *persistent) take(c Command) *persistentShell {
	if c.TTY || !c.Script.forkable() || !inMemory(c.Stdin) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.idle
	switch {
	case sh == nil:
		return nil
	case sh.unusable(), !sh.root && sh.login != s.logins.Load():
		// It has exited, or its login is out of date.
		s.dropLocked(sh)
		return nil
	}
	s.idle = nil
	return sh
}

func inMemory(r io.Reader) bool {
	if r == nil {
		return true
	}
	sized, ok := r.(interface{ Len() int })
	return ok && sized.Len() <= maxInput
}

// giveBack marks a shell that has run a script as idle again, if it is still usable.
func (s *persistent) giveBack(sh *persistentShell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || sh.unusable() {
		s.dropLocked(sh)
		return
	}
	s.idle = sh
}

// dropLocked discards a shell. s.mu is held.
func (s *persistent) dropLocked(sh *persistentShell) {
	if sh.unusable() && !sh.killed {
		s.failures++
	}
	sh.end()
	s.idle, s.exists, s.scripts = nil, false, 0
}

// begin counts a script that ran without a shell, and starts a shell in the background
// after the second one in a row.
func (s *persistent) begin(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scripts++; s.scripts < 2 || s.exists || s.closed || s.failures >= maxFailures {
		return
	}
	s.exists = true
	// The shell must outlive the task that starts it.
	sh := startShell(context.WithoutCancel(ctx), s.Connector, s.logins.Load(), s.yield)
	s.shell = sh
	go func() {
		sh.greet()
		s.giveBack(sh)
	}()
}

// yield ends a shell because the connection needs its session: at once, or after the
// script that it is running.
func (s *persistent) yield(sh *persistentShell) {
	sh.markBroken()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle == sh {
		s.dropLocked(sh)
	}
}

// Close implements Connector.
func (s *persistent) Close() error {
	ctx, done := context.WithTimeout(context.Background(), closeTime)
	defer done()
	unsettled := s.deferred.flush(ctx)
	s.mu.Lock()
	s.closed = true
	sh := s.shell
	s.mu.Unlock()
	if sh != nil {
		sh.end()
	}
	err := s.Connector.Close()
	if sh != nil {
		sh.cancel()
		<-sh.ended
	}
	return errors.Join(unsettled, err)
}

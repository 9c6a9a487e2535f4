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

// Stay returns c such that scripts (Command.Script) run in forks of one shell that
// stays: each then costs the host neither a session nor a new shell, and one round
// trip with its input. The shell is started when scripts are seen to come one after the other.
//
// All else goes to c as it is, and so do scripts while the shell is busy, or where
// none can be had. The command lines of playbooks are never run in it: nothing that
// they do to their shell, and nothing that they leave running, meets another command.
// Become of what Stay returns stays, too.
func PersistentShell(c Connector) Connector {
	return &persistent{Connector: c, logins: new(atomic.Int64), deferred: new(deferrals)}
}

type persistent struct {
	Connector
	// logins counts what may have changed what a login begins with. It is shared
	// with the other users of the connection.
	logins   *atomic.Int64
	deferred *deferrals // shared likewise

	mu       sync.Mutex
	idle     *persistentShell // nil while there is none, it starts, or it is busy
	exists   bool             // a shell is there, or on its way
	scripts  int              // scripts in a row that went without one
	failures int              // shells that ended by themselves or were in the way
	closed   bool
	shell    *persistentShell // the last that was started
}

// maxFailures is how many shells may fail before the connection goes without.
const maxFailures = 3

// maxInput is the most input that a script is given together with its text.
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
		// The shell had ended before it read the script.
	}
	exit, err := s.plain(ctx, c)
	if err == nil {
		s.begin(ctx)
	}
	return exit, err
}

// plain runs a command without the shell. The shell is lost with the connection,
// which it may notice a moment later.
func (s *persistent) plain(ctx context.Context, c Command) (Exit, error) {
	exit, err := s.Connector.Run(ctx, c)
	if lost := (*UnreachableError)(nil); errors.As(err, &lost) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.shell != nil {
			s.shell.spoil()
		}
	}
	return exit, err
}

// runIn runs a script in the shell. It leaves c able to be run again if it was not started.
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

// between notes that something else than a script was run.
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
	case sh.useless(), !sh.root && sh.login != s.logins.Load():
		// It has ended, or what it was given when it began is of yesterday.
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

// giveBack makes a shell that has run a script idle again, if it can still be used.
func (s *persistent) giveBack(sh *persistentShell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || sh.useless() {
		s.dropLocked(sh)
		return
	}
	s.idle = sh
}

// dropLocked lets go of a shell. s.mu is held.
func (s *persistent) dropLocked(sh *persistentShell) {
	if sh.useless() && !sh.killed {
		s.failures++
	}
	sh.end()
	s.idle, s.exists, s.scripts = nil, false, 0
}

// begin notes that a script was run without a shell, and starts one in the background
// for those after the second.
func (s *persistent) begin(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scripts++; s.scripts < 2 || s.exists || s.closed || s.failures >= maxFailures {
		return
	}
	s.exists = true
	// It is no part of the task that happens to be the second.
	sh := startShell(context.WithoutCancel(ctx), s.Connector, s.logins.Load(), s.yield)
	s.shell = sh
	go func() {
		sh.greet()
		s.giveBack(sh)
	}()
}

// yield ends a shell because the connection needs the room: at once, or when it has
// run its script.
func (s *persistent) yield(sh *persistentShell) {
	sh.spoil()
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

package connector

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// Deferral marks work that several commands of a connection can share, such as making a
// daemon reload what they changed. PersistentShell tracks it; a transport ignores it and
// runs the line.
type Deferral int

// What a command may say of its line.
const (
	NotDeferred  Deferral = iota
	Deferred              // run once, before the next command without IgnoresDeferred, at Flush or at Close
	DeferredDone          // the previous IgnoresDeferred command did the work; the line itself does nothing
)

// DeferVariable is set for an IgnoresDeferred command when the work was done and only such
// commands have run since. The command may then skip the work and mark it as deferred.
const DeferVariable = "KK_DEFER"

// closeTime bounds deferred work that runs before a connection is closed.
const closeTime = 10 * time.Second

// deferrals is the deferred work of one connection.
type deferrals struct {
	mu  sync.Mutex
	due []deferredLine
	// clean: only IgnoresDeferred commands since the work was done; quiet: since the last of them began.
	clean, quiet bool
}

type deferredLine struct {
	by   Connector
	line string
}

// note records the deferral of a command.
func (l *deferrals) note(by Connector, c Command) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Deferral == DeferredDone {
		l.clean = l.quiet
		return
	}
	for _, d := range l.due {
		if d == (deferredLine{by, c.Line}) {
			return
		}
	}
	l.due = append(l.due, deferredLine{by, c.Line})
}

// prepare sets DeferVariable for an IgnoresDeferred command.
func (l *deferrals) prepare(c *Command) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quiet = true
	if l.clean {
		env := maps.Clone(c.Env)
		if env == nil {
			env = map[string]string{}
		}
		env[DeferVariable] = "1"
		c.Env = env
	}
}

// invalidate is called when a command without IgnoresDeferred begins or ends.
func (l *deferrals) invalidate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clean, l.quiet = false, false
}

// flush runs the deferred work. Other commands wait meanwhile.
func (l *deferrals) flush(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.due) > 0 {
		d, said := l.due[0], &tail{max: 1000}
		exit, err := d.by.Run(ctx, Command{Line: d.line, Stderr: said})
		if ctx.Err() != nil {
			return ctx.Err() // still deferred
		}
		l.due = l.due[1:]
		switch {
		case err != nil:
			return err
		case exit.Code != 0:
			return fmt.Errorf("%s, which an earlier task deferred, exited with status %d: %s",
				d.line, exit.Code, strings.TrimSpace(string(said.text)))
		}
	}
	return nil
}

// Flush runs the work that commands of a connection have deferred.
func Flush(ctx context.Context, c Connector) (err error) {
	defer Recover(&err)
	if s, ok := c.(*persistent); ok {
		return s.deferred.flush(ctx)
	}
	return nil
}

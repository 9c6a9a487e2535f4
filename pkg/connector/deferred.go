package connector

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// Late says of a command that it is work which several commands of a connection may
// share, as making a daemon read all that they changed. Stay keeps account of it; a
// transport knows nothing of it and runs the line.
type Deferral int

// What a command may say of its line.
const (
	NotDeferred  Deferral = iota
	Deferred              // it may wait while commands are patient, at most until Flush or Close, and is run once for all
	DeferredDone          // the last patient command did such work; the line itself does nothing
)

// DeferVariable is set for a patient command when such work was done and all commands
// since were patient: it may leave it undone, and then says that it is due.
const DeferVariable = "KK_DEFER"

// closeTime bounds what is done before a connection is closed.
const closeTime = 10 * time.Second

// late is the account.
type deferrals struct {
	mu  sync.Mutex
	due []deferredLine
	// clean: nothing but patient commands since the work was done; quiet: since the last of them began.
	clean, quiet bool
}

type deferredLine struct {
	by   Connector
	line string
}

// note takes down what a command says.
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

// patient prepares a patient command.
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

// disturb notes that a command begins or ends that is not patient.
func (l *deferrals) invalidate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clean, l.quiet = false, false
}

// settle does what is due. Others wait meanwhile.
func (l *deferrals) flush(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.due) > 0 {
		d, said := l.due[0], &tail{max: 1000}
		exit, err := d.by.Run(ctx, Command{Line: d.line, Stderr: said})
		if ctx.Err() != nil {
			return ctx.Err() // it is still due
		}
		l.due = l.due[1:]
		switch {
		case err != nil:
			return err
		case exit.Code != 0:
			return fmt.Errorf("%s, which a task before left to be done, ended with status %d: %s", d.line, exit.Code, strings.TrimSpace(string(said.text)))
		}
	}
	return nil
}

// Flush does what commands of a connection left to be done later.
func Flush(ctx context.Context, c Connector) (err error) {
	defer Recover(&err)
	if s, ok := c.(*persistent); ok {
		return s.deferred.flush(ctx)
	}
	return nil
}

// Package connectortest has helpers for tests of code that uses a connector: a scripted fake,
// a connector that does nothing, a real sshd, a proxy that delays, and the contract that
// every connector must fulfill.
package connectortest

import (
	"context"
	"io"
	"sync"

	"kubekey/pkg/connector"
)

// Call is one command that was run on a Fake.
type Call struct {
	Host    string
	Command connector.Command
	Stdin   string // all of it
}

// Answer is what a Fake's command prints and how it ends.
type Answer struct {
	Stdout, Stderr string
	Exit           connector.Exit
	Err            error
}

// Fake is a connector whose answers come from a function. It is safe for concurrent use; the
// function must be too.
type Fake struct {
	Host   string
	Answer func(ctx context.Context, c Call) Answer // nil answers success and nothing else

	mu     sync.Mutex
	calls  []Call
	closed bool
}

var _ connector.Connector = (*Fake)(nil)

// Run records the command and returns the scripted answer.
func (f *Fake) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	if err := ctx.Err(); err != nil {
		return connector.Exit{}, err
	}
	call := Call{Host: f.Host, Command: c}
	if c.Stdin != nil {
		in, err := io.ReadAll(c.Stdin)
		if err != nil {
			return connector.Exit{}, err
		}
		call.Stdin = string(in)
	}
	f.mu.Lock()
	f.calls = append(f.calls, call)
	f.mu.Unlock()
	if f.Answer == nil {
		return connector.Exit{}, nil
	}
	return say(f.Answer(ctx, call), c)
}

func say(a Answer, c connector.Command) (connector.Exit, error) {
	if c.Stdout != nil && a.Stdout != "" {
		if _, err := io.WriteString(c.Stdout, a.Stdout); err != nil {
			return connector.Exit{}, err
		}
	}
	if c.Stderr != nil && a.Stderr != "" {
		if _, err := io.WriteString(c.Stderr, a.Stderr); err != nil {
			return connector.Exit{}, err
		}
	}
	return a.Exit, a.Err
}

// Calls returns the commands that have run so far.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Call(nil), f.calls...)
}

// Lines returns the command lines that have run so far.
func (f *Fake) Lines() []string {
	var lines []string
	for _, c := range f.Calls() {
		lines = append(lines, c.Command.Line)
	}
	return lines
}

// Close records that it was called.
func (f *Fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

// Closed reports whether Close was called.
func (f *Fake) Closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// Noop returns a connector on which every command succeeds at once and prints nothing: the
// time that a run then takes is kk's own.
func Noop() connector.Connector { return noop{} }

type noop struct{}

func (noop) Run(ctx context.Context, _ connector.Command) (connector.Exit, error) {
	return connector.Exit{}, ctx.Err()
}

func (noop) Close() error { return nil }

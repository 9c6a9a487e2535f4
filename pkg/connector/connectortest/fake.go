// Package connectortest has what tests of code that uses a connector need: a
// scripted fake, a connector that does nothing, a real sshd, a proxy that
// delays, and the contract that every connector keeps.
package connectortest

import (
	"context"
	"io"
	"sync"

	"kubekey/pkg/connector"
)

// Call is one command that a Fake was given.
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

// Fake is a connector whose answers a function makes up. It may be used by many
// goroutines at once; so must be the function.
type Fake struct {
	Host   string
	Answer func(ctx context.Context, c Call) Answer // nil answers success and nothing else

	mu     sync.Mutex
	calls  []Call
	closed bool
}

var _ connector.Connector = (*Fake)(nil)

// Run records the command and gives the scripted answer.
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

// Calls returns what was run so far.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Call(nil), f.calls...)
}

// Lines returns the command lines that were run so far.
func (f *Fake) Lines() []string {
	var lines []string
	for _, c := range f.Calls() {
		lines = append(lines, c.Command.Line)
	}
	return lines
}

// Close takes note of itself.
func (f *Fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

// Closed says whether Close was called.
func (f *Fake) Closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// Noop returns a connector on which every command succeeds at once and prints
// nothing: what remains of a run's time is kk's own.
func Noop() connector.Connector { return noop{} }

type noop struct{}

func (noop) Run(ctx context.Context, _ connector.Command) (connector.Exit, error) {
	return connector.Exit{}, ctx.Err()
}

func (noop) Close() error { return nil }

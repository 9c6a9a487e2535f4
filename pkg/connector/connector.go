// Package connector runs commands on one host and moves files to and from it.
//
// A transport (connector/ssh, connector/local) implements two verbs, Run and
// Close. Everything else is built on Run and therefore works over every
// transport and under every decorator: Put and Get (files), Become (another
// user), Env (environment variables), ReadOnly (check mode).
package connector

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Connector runs commands on one host. It may be used by many goroutines at once.
type Connector interface {
	// Run executes one command line and waits for its end. A command that
	// ran and failed is an Exit, not an error. Cancelling ctx ends the
	// command's whole process group on the host, and Run returns ctx's error.
	// An *UnreachableError says that the host, not the command, failed.
	Run(ctx context.Context, c Command) (Exit, error)
	// Close ends the connection. The connector cannot be used afterwards.
	Close() error
}

// Command is one POSIX shell command line with its streams.
type Command struct {
	// Line is run by a POSIX shell on the host, whatever the login shell of
	// the user is. Data goes in quoted by package shell, or over Stdin.
	// Line never holds a secret: the process list shows it.
	Line string
	// Env is set for the command. It travels over standard input, not in
	// the command line, so values may be secret.
	Env map[string]string
	// Stdin is sent to the command; nil is an empty input.
	Stdin io.Reader
	// Stdout and Stderr receive the outputs as they come; nil discards.
	// They are written from one goroutine each.
	Stdout, Stderr io.Writer
	// TTY asks for a pseudo terminal; Stderr is then part of Stdout.
	TTY bool
	// Probe marks a command that changes nothing on the host: ReadOnly lets
	// only these through.
	Probe bool
	// Script says that Line is kk's own, and what it is made of; nil for all else.
	Script *Script
	// Late says that Line may wait, or was done by the command before.
	Deferral Deferral
	// IgnoresDeferred says that the command neither notices whether late work was done, nor makes any necessary.
	IgnoresDeferred bool
	// Yield is called, perhaps more than once, when the transport needs the room of a
	// command that runs for later use: it should end then. nil for all else.
	Yield func()
	// Urgent says that the command must not wait until other commands of the connection
	// have ended, since it may be what ends them.
	Urgent bool
}

// Exit is how a command ended.
type Exit struct {
	Code   int    // exit status; 128+n when signal n ended it
	Signal string // name of the signal that ended it, without SIG; else ""
}

// UnreachableError says that a host could not be reached or was lost.
type UnreachableError struct {
	Host   string // the address that was tried
	Reason string // for people: what failed and what to do
	Err    error  // the cause, may be nil
}

func (e *UnreachableError) Error() string { return e.Reason }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// BecomeError says that another user's identity could not be taken:
// a wrong or missing password, or no right to. The host is reachable.
type BecomeError struct {
	Method, User string
	Reason       string
}

func (e *BecomeError) Error() string {
	return fmt.Sprintf("become user %s with %s: %s", e.User, e.Method, e.Reason)
}

// ErrReadOnly is what a ReadOnly connector returns for a command that is not
// marked Probe. Seeing it is a defect of the module that ran the command.
var ErrReadOnly = errors.New("refused in check mode: the command may change the host")

// ReadOnly returns c for check mode: it refuses every command not marked Probe.
func ReadOnly(c Connector) Connector { return readOnly{c} }

type readOnly struct{ Connector }

func (r readOnly) Run(ctx context.Context, c Command) (Exit, error) {
	if !c.Probe {
		return Exit{}, fmt.Errorf("run %.60q: %w", c.Line, ErrReadOnly)
	}
	return r.Connector.Run(ctx, c)
}

// Env returns c with env set for every command; a command's own Env wins.
func Env(c Connector, env map[string]string) Connector {
	if len(env) == 0 {
		return c
	}
	return withEnv{c, env}
}

type withEnv struct {
	Connector
	env map[string]string
}

func (e withEnv) Run(ctx context.Context, c Command) (Exit, error) {
	merged := make(map[string]string, len(e.env)+len(c.Env))
	for k, v := range e.env {
		merged[k] = v
	}
	for k, v := range c.Env {
		merged[k] = v
	}
	c.Env = merged
	return e.Connector.Run(ctx, c)
}

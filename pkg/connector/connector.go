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
	// Run executes one command line and waits until it exits. A command that
	// ran and failed is an Exit, not an error. Cancelling ctx kills the
	// command's whole process group on the host, and Run returns ctx's error.
	// An *UnreachableError means that the host, not the command, failed.
	Run(ctx context.Context, c Command) (Exit, error)
	// Close closes the connection. The connector cannot be used afterwards.
	Close() error
}

// Command is one POSIX shell command line with its streams.
type Command struct {
	// Line is run by a POSIX shell on the host, whatever the user's login shell is.
	// Data must be quoted with package shell, or passed over Stdin.
	// Line must not contain a secret: it is visible in the process list.
	Line string
	// Env is set for the command. It travels over standard input, not in
	// the command line, so values may be secret.
	Env map[string]string
	// Stdin is sent to the command; nil is an empty input.
	Stdin io.Reader
	// Stdout and Stderr receive the output as it arrives; nil discards it.
	// They are written from one goroutine each.
	Stdout, Stderr io.Writer
	// TTY asks for a pseudo terminal; Stderr is then part of Stdout.
	TTY bool
	// Probe marks a command that changes nothing on the host. ReadOnly runs only these.
	Probe bool
	// Script describes a Line that kk itself wrote; nil for all other commands.
	Script *Script
	// Deferral marks Line as work that can be deferred, or that was just done.
	Deferral Deferral
	// IgnoresDeferred marks a command that works the same whether or not deferred work has run, and creates none.
	IgnoresDeferred bool
	// Yield is called, possibly more than once, when the transport needs the session of a
	// command that is only kept for later use. The command should then exit. Else nil.
	Yield func()
	// Urgent marks a command that must not wait for others on the connection, because it
	// may be the one that kills them.
	Urgent bool
}

// Exit is how a command ended.
type Exit struct {
	Code   int    // exit status; 128+n when killed by signal n
	Signal string // name of the signal that killed it, without SIG; else ""
}

// UnreachableError reports that a host could not be reached, or that its connection was lost.
type UnreachableError struct {
	Host   string // the address that was tried
	Reason string // for people: what failed and what to do
	Err    error  // the cause, may be nil
}

func (e *UnreachableError) Error() string { return e.Reason }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// BecomeError reports that a command could not run as another user: the password is
// wrong or missing, or permission is denied. The host is reachable.
type BecomeError struct {
	Method, User string
	Reason       string
}

func (e *BecomeError) Error() string {
	return fmt.Sprintf("become user %s with %s: %s", e.User, e.Method, e.Reason)
}

// ErrReadOnly is returned by a ReadOnly connector for a command that is not marked
// Probe. It is a bug in the module that ran the command.
var ErrReadOnly = errors.New("not run in check mode: the command can change the host")

// ReadOnly returns c for check mode: it rejects every command that is not marked Probe.
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

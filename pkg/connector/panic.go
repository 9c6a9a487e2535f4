package connector

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"unicode/utf8"
)

// PanicError is a panic as an error: a defect of kk, which is to fail one task on one host.
type PanicError struct {
	Value any    // what panic was called with
	Stack string // of the goroutine that panicked
}

const (
	maxPanicValue = 300
	maxStack      = 16 << 10 // of a deep recursion the ends say all
)

// NewPanicError makes an error of what recover returned, in a deferred function. What was
// a PanicError on another goroutine keeps its stack.
func NewPanicError(recovered any) *PanicError {
	if p, ok := recovered.(*PanicError); ok {
		return p
	}
	stack := string(debug.Stack())
	if over := len(stack) - maxStack; over > 0 {
		stack = stack[:maxStack/2] + "\n...\n" + stack[maxStack/2+over:]
	}
	return &PanicError{recovered, stack}
}

func (e *PanicError) Error() string {
	text := strings.ToValidUTF8(fmt.Sprint(e.Value), "\uFFFD")
	if len(text) > maxPanicValue {
		end := maxPanicValue
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "..."
	}
	return "panicked: " + text + ": this is a bug in kk, please report it"
}

// Recover makes the error of a function of a panic. It is deferred:
//
//	defer connector.Recover(&err)
func Recover(err *error) {
	if p := recover(); p != nil {
		*err = NewPanicError(p)
	}
}

// Guarded returns c such that a panic is an error of Run: of the transport itself, and of
// what the outputs of a command are written to or its input is read from, which
// transports do on goroutines of their own. The command is ended then.
func Guarded(c Connector) Connector { return guarded{c} }

type guarded struct{ Connector }

// Run implements Connector.
func (g guarded) Run(ctx context.Context, c Command) (exit Exit, err error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	first := &firstPanic{cancel: cancel}
	if c.Stdout != nil {
		c.Stdout = guardedWriter{c.Stdout, first}
	}
	if c.Stderr != nil {
		c.Stderr = guardedWriter{c.Stderr, first}
	}
	if c.Stdin != nil && !inMemory(c.Stdin) { // the size of what is in memory shows
		c.Stdin = guardedReader{c.Stdin, first}
	}
	defer func() {
		if p := first.get(); p != nil {
			err = p
		}
	}()
	defer Recover(&err)
	return g.Connector.Run(inner, c)
}

// firstPanic is what ends a command.
type firstPanic struct {
	cancel func()
	mu     sync.Mutex
	err    *PanicError
}

func (f *firstPanic) get() *PanicError {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// note is deferred.
func (f *firstPanic) note(err *error) {
	p := recover()
	if p == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = NewPanicError(p)
	}
	*err = f.err
	f.cancel()
}

type guardedWriter struct {
	to    io.Writer
	first *firstPanic
}

func (w guardedWriter) Write(p []byte) (n int, err error) {
	defer w.first.note(&err)
	return w.to.Write(p)
}

type guardedReader struct {
	from  io.Reader
	first *firstPanic
}

func (r guardedReader) Read(p []byte) (n int, err error) {
	defer r.first.note(&err)
	return r.from.Read(p)
}

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

// PanicError is a panic as an error: a bug in kk, which must only fail one task on one host.
type PanicError struct {
	Value any    // what panic was called with
	Stack string // of the goroutine that panicked
}

const (
	maxPanicValue = 300
	maxStack      = 16 << 10 // the two ends of a deep recursion are enough
)

// NewPanicError turns what recover returned, in a deferred function, into an error. A
// PanicError from another goroutine keeps its stack.
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

// Recover turns a panic of a function into its error. It is deferred:
//
//	defer connector.Recover(&err)
func Recover(err *error) {
	if p := recover(); p != nil {
		*err = NewPanicError(p)
	}
}

// Guarded returns c with panics turned into errors of Run: those of the transport, and
// those of the command's readers and writers, which transports call on goroutines of their
// own. The command is killed then.
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
	if c.Stdin != nil && !inMemory(c.Stdin) { // a transport may ask for the size of an in-memory input
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

// firstPanic records the first panic of a command.
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

// note must be deferred.
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

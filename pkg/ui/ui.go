// Package ui shows a run to people and programs: plain text in the shape that
// Ansible users know, with a live status line on a terminal, JSON lines, or one
// JSON document.
package ui

import (
	"fmt"
	"io"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/redact"
)

// Format is a shape of the output.
type Format string

// The formats. JSON and JSONL are the same: one event a line, as package
// event writes it.
const (
	Text    Format = "text"    // failures laid out for people
	Ansible Format = "ansible" // Ansible's shape, byte for byte
	JSON    Format = "json"
	JSONL   Format = "jsonl"

	// AnsibleJSON is the whole run as one document, in the shape of Ansible's json callback.
	AnsibleJSON Format = "ansible-json"
)

// Formats returns the names of the formats.
func Formats() []string {
	return []string{string(Text), string(Ansible), string(JSON), string(JSONL), string(AnsibleJSON)}
}

// Options say how and where to show a run.
type Options struct {
	Out, Err  io.Writer
	TTY       bool             // Out is a terminal: show the live status line
	Width     func() int       // columns of the terminal; nil or 0 when there is none
	Color     bool             // see UseColor
	Verbosity int              // how many -v were given
	Timing    bool             // show how long tasks took
	NoSkipped bool             // leave out hosts that a task was skipped on, and tasks that all skipped
	Slowest   int              // how many of the slowest tasks to list below the recap; 0 is none
	GoOn      string           // command line that goes on with a run that failed; "" is none
	Format    Format           // "" is Text
	Redact    *redact.Set      // secrets to hide; may be nil
	Now       func() time.Time // nil is time.Now
}

// Sink shows events until it is closed. Close ends the status line and leaves
// no goroutine behind. Hold takes the status line off the screen, so that a
// person can be asked something, until release is called.
type Sink interface {
	event.Sink
	Hold() (release func())
	Close() error
}

// New returns a sink of the format asked for; an unknown one is an error. What
// cannot be written ends the output, not the run: the hosts are worth more than
// the screen, and the journal has it all. The streams should be a Screen of the
// caller, who asks it at the end whether all was written.
func New(o Options) (Sink, error) {
	if o.Redact == nil {
		o.Redact = &redact.Set{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	switch o.Format {
	case JSON, JSONL:
		return &lines{o, NewScreen(o.Out).JSON()}, nil
	case AnsibleJSON:
		return newDocument(o), nil
	case Text, Ansible, "":
		return newPrinter(o), nil
	}
	return nil, fmt.Errorf("output format %q is unknown: use one of %v", o.Format, Formats())
}

// UseColor decides about colours: NO_COLOR turns them off, FORCE_COLOR on,
// else a terminal has them.
func UseColor(tty bool, getenv func(string) string) bool {
	switch {
	case getenv("NO_COLOR") != "":
		return false
	case getenv("FORCE_COLOR") != "":
		return true
	}
	return tty && getenv("TERM") != "dumb"
}

// lines writes every event as one line of JSON.
type lines struct {
	o   Options
	out io.Writer
}

func (l *lines) Emit(e event.Event) {
	_, _ = l.out.Write(append(event.Encode(e, l.o.Now(), l.o.Redact.Text), '\n')) // the screen keeps the error
}

func (l *lines) Close() error { return nil }

func (l *lines) Hold() (release func()) { return func() {} }

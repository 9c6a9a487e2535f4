// Package ui shows a run to users and programs: plain text in the format that Ansible users know,
// with a live status line on a terminal, JSON lines, or one JSON document.
package ui

import (
	"fmt"
	"io"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/redact"
)

// Format is an output format.
type Format string

// The formats. JSON and JSONL are the same: one event per line, as encoded by package event.
const (
	Text    Format = "text"    // failures formatted for reading
	Ansible Format = "ansible" // Ansible's format, byte for byte
	JSON    Format = "json"
	JSONL   Format = "jsonl"

	// AnsibleJSON is the whole run as one document, in the format of Ansible's json callback.
	AnsibleJSON Format = "ansible-json"
)

// Formats returns the names of the formats.
func Formats() []string {
	return []string{string(Text), string(Ansible), string(JSON), string(JSONL), string(AnsibleJSON)}
}

// Options select how and where to show a run.
type Options struct {
	Out, Err  io.Writer
	TTY       bool             // Out is a terminal: show the live status line
	Width     func() int       // columns of the terminal; nil or 0 if there is none
	Color     bool             // see UseColor
	Verbosity int              // how many -v were given
	Timing    bool             // show how long tasks took
	NoSkipped bool             // hide hosts that skipped a task, and tasks that all hosts skipped
	Slowest   int              // how many of the slowest tasks to list below the recap; 0 is none
	Continue  string           // command line that continues a failed run; "" is none
	Format    Format           // "" is Text
	Redact    *redact.Set      // secrets to hide; may be nil
	Now       func() time.Time // nil is time.Now
}

// Sink shows events until it is closed. Close removes the status line and stops all goroutines.
// Hold hides the status line until release is called, so that the user can be asked something.
type Sink interface {
	event.Sink
	Hold() (release func())
	Close() error
}

// New returns a sink for a format; an unknown one is an error. A write error ends the output,
// not the run: the hosts matter more than the screen, and the journal is complete. The streams
// should be Screens of the caller, who checks at the end whether everything was written.
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
	return nil, fmt.Errorf("unknown output format %q: use one of %v", o.Format, Formats())
}

// UseColor reports whether to use colours: NO_COLOR disables them, FORCE_COLOR enables them,
// else they depend on tty.
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

// Package event is the facts of a run, as they happen. The engine emits them
// and never prints; sinks (screen, JSON lines, journal) make of them what they like.
package event

import (
	"time"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Event is one fact. The set of events is closed.
type Event interface{ event() }

// Sink takes events. Emit is called in order from one goroutine: a sink needs no lock.
type Sink interface{ Emit(Event) }

// RunStarted is the first event.
type RunStarted struct {
	ID        string // identifies the run in the journal
	Time      time.Time
	Playbooks []string
	Check     bool
	Diff      bool
	Version   string // of kk
	User      string // who ran it: user@machine
	Command   string // the command line
	Dir       string // working folder: names of files are relative to it
}

// PlaybookStarted begins one playbook of the command line.
type PlaybookStarted struct {
	Path  string
	Plays int
}

// PlayStarted begins a play (its first batch only).
type PlayStarted struct {
	Name  string // the play's name, or its hosts pattern when it has none
	Hosts []string
	At    source.Pos
}

// BatchStarted begins the second or a later batch of a play with serial.
type BatchStarted struct {
	Name   string // of the play
	Number int    // from 1
	Hosts  []string
	At     source.Pos
}

// PlayEnded ends a play.
type PlayEnded struct{ Name string }

// PlayEmpty says that a play's pattern matched no host.
type PlayEmpty struct{ Name string }

// NoMoreHosts says that every host of the play has failed, or was ended.
type NoMoreHosts struct {
	Aborted bool // by any_errors_fatal or max_fail_percentage
}

// Task identifies a task to a reader.
type Task struct {
	ID      int    // unique in the run; the same for all hosts and items
	Name    string // templated name, or the action when it has none
	Role    string // role it comes from, or ""
	Action  string // module name
	Handler bool
	At      source.Pos
	Trace   []source.Frame // how it was reached, nearest include first
	Digest  string         // of its file, up to its end
	Header  bool           // it stands for a play's first line: gathering facts
	// Recalled says that no host does it: an earlier run is gone on with, in which it was done.
	Recalled bool
}

// TaskStarted is emitted once for a task, before its first host.
type TaskStarted struct {
	Task *Task
	Time time.Time
}

// HostStarted says that a host began a task (or an item of it).
type HostStarted struct {
	Task *Task
	Host string
	Item string // label, "" outside loops
	Time time.Time
}

// Output is one line that a command printed while it runs.
type Output struct {
	Task   *Task
	Host   string
	Line   string
	Stderr bool
}

// Progress is how far a transfer is.
type Progress struct {
	Task        *Task
	Host        string
	What        string // file name
	Done, Total int64  // bytes; Total < 0 when unknown
}

// Retry says that a try failed and another follows.
type Retry struct {
	Task     *Task
	Host     string
	Attempts int // done so far
	Left     int
	Result   *value.Dict
}

// Async is a look at a task in the background that is waited for: it still
// runs, or how it ended.
type Async struct {
	Task  *Task
	Host  string
	Job   string
	State AsyncState
}

// AsyncState is what a look at a task in the background found.
type AsyncState string

// The states of a task in the background.
const (
	AsyncRuns   AsyncState = "runs"
	AsyncOK     AsyncState = "ok"
	AsyncFailed AsyncState = "failed"
)

// Status is how a task ended on a host.
type Status int

// The ends of a task on a host.
const (
	OK Status = iota
	Changed
	Skipped
	Failed
	Unreachable
)

func (s Status) String() string {
	return [...]string{"ok", "changed", "skipped", "failed", "unreachable"}[s]
}

// Diff is what a module changes, or would.
type Diff struct {
	BeforeHeader, AfterHeader string // usually paths
	Before, After             any    // text, or *value.Dict that is shown as JSON
	Prepared                  string // a ready diff, shown as it is
	Note                      string // why there is none: binary, too large
}

// Value is d as the result of a task has it.
func (d Diff) Value() *value.Dict {
	out := value.NewDict()
	if d.Prepared != "" {
		out.Set("prepared", d.Prepared)
		return out
	}
	out.Set("before", d.Before)
	out.Set("after", d.After)
	if d.BeforeHeader != "" {
		out.Set("before_header", d.BeforeHeader)
	}
	if d.AfterHeader != "" {
		out.Set("after_header", d.AfterHeader)
	}
	if d.Note != "" {
		out.Set("note", d.Note)
	}
	return out
}

// Item is one item of a loop.
type Item struct {
	Label string // what loop_control.label says, else the item itself, as text
	Index int
}

// HostResult is how a task, or one item of it, ended on a host.
type HostResult struct {
	Task      *Task
	Host      string
	Delegate  string // host it was delegated to, or ""
	Item      *Item  // nil outside loops and for the loop as a whole
	Loop      bool   // the summary of a loop whose items were reported before
	Status    Status
	Ignored   bool        // failed or unreachable, and the play goes on
	Rescued   bool        // failed, and a rescue section takes over
	Include   bool        // an include task: shown by Included
	Result    *value.Dict // as registered; censored for no_log
	Diff      []Diff
	Recalled  bool // taken from an earlier run, which is gone on with
	Partial   bool // the result is not whole: a secret is hidden in it, or it was cut
	Verbose   bool // show the result without -v too (debug, assert)
	Message   string
	Warnings  []string
	StartedAt time.Time
	Duration  time.Duration
}

// Included says what an include brought in, for which hosts.
type Included struct {
	Task  *Task
	Path  string // of the file; for a role its name
	Hosts []string
	Item  *Item
}

// Notified says that a task notified a handler.
type Notified struct {
	Handler, Host string
}

// MetaRan says what a meta task did on a host, or for all with that host's
// variables.
type MetaRan struct {
	Task         *Task // nil in journals of old
	Action, Host string
	Message      string
	Skipped      string // why nothing was done, or ""
}

// Warning is shown and changes nothing.
type Warning struct {
	Diagnostic *source.Diagnostic
}

// Stats counts a host's tasks, as the recap shows them.
type Stats struct {
	OK, Changed, Unreachable, Failed, Skipped, Rescued, Ignored int
}

// Exit codes of a run.
const (
	ExitOK          = 0
	ExitError       = 1
	ExitFailed      = 2
	ExitUnreachable = 4
	ExitUsage       = 5
	ExitInterrupted = 99
)

// RunEnded is the last event.
type RunEnded struct {
	ID       string
	Time     time.Time
	Duration time.Duration
	Stats    map[string]*Stats
	ExitCode int
	Err      string      // why the run ended early, or ""
	Results  *value.Dict // what the module result collected, nil without any
	Retry    string      // file with the hosts that failed, for --limit @FILE, or ""
}

func (RunStarted) event()      {}
func (PlaybookStarted) event() {}
func (PlayStarted) event()     {}
func (BatchStarted) event()    {}
func (PlayEnded) event()       {}
func (PlayEmpty) event()       {}
func (NoMoreHosts) event()     {}
func (TaskStarted) event()     {}
func (HostStarted) event()     {}
func (Output) event()          {}
func (Progress) event()        {}
func (Retry) event()           {}
func (Async) event()           {}
func (HostResult) event()      {}
func (Included) event()        {}
func (Notified) event()        {}
func (MetaRan) event()         {}
func (Warning) event()         {}
func (RunEnded) event()        {}

// Recalled reports whether an event tells what was done in an earlier run,
// which this one goes on with.
func Recalled(e Event) bool {
	switch e := e.(type) {
	case TaskStarted:
		return e.Task.Recalled
	case HostStarted:
		return e.Task.Recalled
	case Included:
		return e.Task.Recalled
	case MetaRan:
		return e.Task != nil && e.Task.Recalled
	case HostResult:
		return e.Recalled
	}
	return false
}

// Fanout gives every event to each sink in turn.
type Fanout []Sink

// Emit passes e on.
func (f Fanout) Emit(e Event) {
	for _, s := range f {
		s.Emit(e)
	}
}

// Recorder keeps every event, for tests.
type Recorder struct{ Events []Event }

// Emit keeps e.
func (r *Recorder) Emit(e Event) { r.Events = append(r.Events, e) }

// Discard drops every event.
type Discard struct{}

// Emit drops e.
func (Discard) Emit(Event) {}

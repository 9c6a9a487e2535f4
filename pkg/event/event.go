// Package event is the events of a run. The engine emits them and never prints; sinks (screen,
// JSON lines, journal) process them.
package event

import (
	"time"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Event is something that happened in a run. The set of events is closed.
type Event interface{ event() }

// Sink receives events. Emit is called in order from one goroutine: a sink needs no lock.
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
	Dir       string // working folder: file names are relative to it
}

// PlaybookStarted begins one playbook of the command line.
type PlaybookStarted struct {
	Path  string
	Plays int
}

// PlayStarted begins a play (its first batch only).
type PlayStarted struct {
	Name  string // the play's name, or its hosts pattern if it has none
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

// PlayEmpty reports that a play's pattern matched no host.
type PlayEmpty struct{ Name string }

// NoMoreHosts reports that every host of the play has failed, or was stopped.
type NoMoreHosts struct {
	Aborted bool // by any_errors_fatal or max_fail_percentage
}

// Task identifies a task to a reader.
type Task struct {
	ID      int    // unique in the run; the same for all hosts and items
	Name    string // templated name, or the action if it has none
	Role    string // role it comes from, or ""
	Action  string // module name
	Handler bool
	At      source.Pos
	Trace   []source.Frame // includes that led to it, nearest first
	Digest  string         // of its file, up to its end
	Header  bool           // it is the implicit task of a play: gathering facts
	// Recalled means that no host runs it: it was done in the previous run, which this one resumes.
	Recalled bool
}

// TaskStarted is emitted once for a task, before its first host.
type TaskStarted struct {
	Task *Task
	Time time.Time
}

// HostStarted reports that a host began a task (or an item of it).
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

// Progress is the progress of a transfer.
type Progress struct {
	Task        *Task
	Host        string
	What        string // file name
	Done, Total int64  // bytes; Total < 0 when unknown
}

// Retry reports that an attempt failed and another follows.
type Retry struct {
	Task     *Task
	Host     string
	Attempts int // done so far
	Left     int
	Result   *value.Dict
}

// Async is a status check of a task in the background that the run waits for: it is still
// running, or has finished.
type Async struct {
	Task  *Task
	Host  string
	Job   string
	State AsyncState
}

// AsyncState is the result of a status check of a task in the background.
type AsyncState string

// The states of a task in the background.
const (
	AsyncRuns   AsyncState = "runs"
	AsyncOK     AsyncState = "ok"
	AsyncFailed AsyncState = "failed"
)

// Status is the result of a task on a host.
type Status int

// The results of a task on a host.
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

// Diff is what a module changed, or would change.
type Diff struct {
	BeforeHeader, AfterHeader string // usually paths
	Before, After             any    // text, or *value.Dict that is shown as JSON
	Prepared                  string // a complete diff, shown unchanged
	Note                      string // why there is no diff: binary, too large
}

// Value is d in the form that results of tasks have.
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
	Label string // value of loop_control.label, else the item itself, as text
	Index int
}

// HostResult is the result of a task, or of one item of it, on a host.
type HostResult struct {
	Task      *Task
	Host      string
	Delegate  string // host it was delegated to, or ""
	Item      *Item  // nil outside loops and for the loop as a whole
	Loop      bool   // the summary of a loop whose items were reported before
	Status    Status
	Ignored   bool        // failed or unreachable, and the play continues
	Rescued   bool        // failed, and a rescue section follows
	Include   bool        // an include task: shown by Included
	Result    *value.Dict // as registered; censored for no_log
	Diff      []Diff
	Recalled  bool // from the previous run, which this one resumes
	Partial   bool // the result is incomplete: a secret is hidden in it, or it was truncated
	Verbose   bool // show the result without -v too (debug, assert)
	Message   string
	Warnings  []string
	StartedAt time.Time
	Duration  time.Duration
}

// Included reports what an include included, and for which hosts.
type Included struct {
	Task  *Task
	Path  string // of the file; for a role its name
	Hosts []string
	Item  *Item
}

// Notified reports that a task notified a handler.
type Notified struct {
	Handler, Host string
}

// MetaRan reports what a meta task did on a host, or for all hosts with that host's variables.
type MetaRan struct {
	Task         *Task // nil in old journals
	Action, Host string
	Message      string
	Skipped      string // why nothing was done, or ""
}

// Warning is shown and has no other effect.
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
	ExitInput       = 4 // invalid input, found before or during the run
	ExitUnreachable = 4 // the same code, as in Ansible
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

// Recalled reports whether an event is about a task that was done in the previous run, which
// this one resumes.
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

// Fanout passes every event to each sink in turn.
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

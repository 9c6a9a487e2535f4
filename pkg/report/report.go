// Package report writes a run of the journal as one HTML page: a timeline of hosts and tasks,
// failures, changes, slow tasks. The page is self-contained: it makes no network requests, and its
// policy forbids them.
package report

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/journal"
	"kubekey/pkg/source"
)

// Write writes the page of a run to a file that only its owner can read, atomically, replacing any
// existing file. The page shows the content of the journal, in which secrets are already hidden.
// The problems of the journal are on the page, and are returned.
func Write(path, workdir, id string) (source.Diagnostics, error) {
	run, err := journal.Find(workdir, id)
	if err != nil {
		return nil, err
	}
	b := newBuilder(run)
	_, wrong, err := journal.Read(workdir, run.ID, b, b.moment)
	if err != nil {
		return nil, err
	}
	for _, d := range wrong {
		b.doc.Warnings = append(b.doc.Warnings, d.Error())
	}
	page, err := b.page()
	if err != nil {
		return nil, fmt.Errorf("create the page of run %s: %w", run.ID, err)
	}
	if err := replace(path, page); err != nil {
		return nil, fmt.Errorf("write the page of run %s: %w", run.ID, err)
	}
	return wrong, nil
}

// replace writes a file of mode 0600 next to path and renames it.
func replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".kk-*.html")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // already renamed on success
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// builder collects the events of a run, in order.
type builder struct {
	doc     document
	start   time.Time
	now     time.Time // of the latest event
	task    map[int]int
	host    map[string]int
	open    map[place]*pending
	details details
	jobs    jobs
}

// place is one task on one host.
type place struct{ task, host int }

// pending is a task that began on a host.
type pending struct {
	start  time.Time
	end    time.Time // of its latest item
	items  []item
	output []string
}

func newBuilder(run journal.Run) *builder {
	b := &builder{start: run.Started, task: map[int]int{}, host: map[string]int{}, open: map[place]*pending{},
		jobs: jobs{started: map[string]int{}, pending: map[place]waits{}, waits: map[int]string{}}}
	b.doc.States = stateNames[:]
	b.doc.Run = runInfo{
		ID: run.ID, Started: run.Started, Finished: run.Finished(), Exit: run.ExitCode, Error: run.Err,
		Playbooks: run.Playbooks, Check: run.Check, Version: run.Version,
	}
	if run.Finished() {
		b.doc.Run.Took = run.Ended.Sub(run.Started).Microseconds()
	}
	return b
}

// moment receives the time of each event.
func (b *builder) moment(at time.Time) {
	if at.After(b.now) {
		b.now = at
	}
}

// Emit implements event.Sink.
func (b *builder) Emit(e event.Event) {
	if event.Recalled(e) {
		return // the page of the previous run has it
	}
	switch e := e.(type) {
	case event.RunStarted:
		b.doc.Run.User, b.doc.Run.Command, b.doc.Run.Diff = e.User, e.Command, e.Diff
	case event.PlayStarted:
		b.doc.Plays = append(b.doc.Plays, play{Name: e.Name, At: e.At.String(), Start: notYet})
		for _, h := range e.Hosts {
			b.hostOf(h)
		}
	case event.TaskStarted:
		b.started(e)
	case event.HostStarted:
		b.begin(e.Task, e.Host).start = e.Time
	case event.Output:
		p := b.begin(e.Task, e.Host)
		p.output = append(p.output, e.Line)
	case event.HostResult:
		b.result(e)
	case event.Warning:
		b.doc.Warnings = append(b.doc.Warnings, e.Diagnostic.Summary)
	case event.RunEnded:
		for name, s := range e.Stats {
			b.doc.Hosts[b.hostOf(name)].Recap = []int{s.OK, s.Changed, s.Unreachable, s.Failed, s.Skipped, s.Rescued, s.Ignored}
		}
	}
}

// since is microseconds after the run's start.
func (b *builder) since(at time.Time) int64 { return max(0, at.Sub(b.start).Microseconds()) }

func (b *builder) hostOf(name string) int {
	i, ok := b.host[name]
	if !ok {
		i = len(b.doc.Hosts)
		b.host[name] = i
		b.doc.Hosts = append(b.doc.Hosts, host{Name: name})
	}
	return i
}

func (b *builder) taskOf(t *event.Task) int {
	i, ok := b.task[t.ID]
	if !ok {
		i = len(b.doc.Tasks)
		b.task[t.ID] = i
		b.doc.Tasks = append(b.doc.Tasks, task{
			Name: t.Name, Role: t.Role, Action: t.Action, Handler: t.Handler, At: t.At.String(),
			Play: max(0, len(b.doc.Plays)-1), Start: b.since(b.now),
		})
	}
	return i
}

// started records when a task began, and its play with the first one.
func (b *builder) started(e event.TaskStarted) {
	at := b.since(e.Time)
	b.doc.Tasks[b.taskOf(e.Task)].Start = at
	if n := len(b.doc.Plays); n > 0 && b.doc.Plays[n-1].Start == notYet {
		b.doc.Plays[n-1].Start = at
	}
}

// begin returns the pending task of a host.
func (b *builder) begin(t *event.Task, hostName string) *pending {
	at := place{b.taskOf(t), b.hostOf(hostName)}
	p := b.open[at]
	if p == nil {
		p = &pending{start: b.now}
		b.open[at] = p
	}
	return p
}

func (b *builder) result(e event.HostResult) {
	p := b.begin(e.Task, e.Host)
	at := place{b.taskOf(e.Task), b.hostOf(e.Host)}
	b.jobs.note(at, e)
	if e.Item != nil {
		if len(p.items) == 0 && !e.StartedAt.IsZero() {
			p.start = e.StartedAt
		}
		p.end = e.StartedAt.Add(e.Duration)
		p.items = append(p.items, item{
			Label: e.Item.Label, State: stateOf(e), Took: e.Duration.Microseconds(), detail: detailOf(e),
		})
		return
	}
	start, took := e.StartedAt, e.Duration
	if start.IsZero() { // a loop as a whole has no times of its own
		start, took = p.start, max(0, p.end.Sub(p.start))
	}
	d := detailOf(e)
	d.Items = p.items
	b.jobs.cell(at, len(b.doc.Cells.Host), e)
	b.cell(e.Task, e.Host, stateOf(e), start, took, d)
}

func (b *builder) cell(t *event.Task, hostName string, s state, start time.Time, took time.Duration, d detail) {
	at := place{b.taskOf(t), b.hostOf(hostName)}
	delete(b.open, at)
	b.doc.Cells.add(at, s, b.since(start), max(0, took.Microseconds()), b.details.add(d))
}

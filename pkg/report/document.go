package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"kubekey/pkg/event"
)

// document is the data of the page, as its script reads it. Times are microseconds after the
// start of the run.
type document struct {
	Run      runInfo  `json:"run"`
	Plays    []play   `json:"plays"`
	Tasks    []task   `json:"tasks"`
	Hosts    []host   `json:"hosts"`
	States   []string `json:"states"`
	Cells    columns  `json:"cells"`
	Path     []step   `json:"path"`  // the critical path
	Chunk    int      `json:"chunk"` // how many details are in one part
	Warnings []string `json:"warnings,omitempty"`
}

type runInfo struct {
	ID        string    `json:"id"`
	Started   time.Time `json:"started"`
	Took      int64     `json:"took"`
	Finished  bool      `json:"finished"`
	Exit      int       `json:"exit"`
	Error     string    `json:"error,omitempty"`
	Playbooks []string  `json:"playbooks"`
	Check     bool      `json:"check,omitempty"`
	Diff      bool      `json:"diff,omitempty"`
	Version   string    `json:"version,omitempty"`
	User      string    `json:"user,omitempty"`
	Command   string    `json:"command,omitempty"`
}

type play struct {
	Name  string `json:"name"`
	At    string `json:"at"`
	Start int64  `json:"start"` // of its first task
}

// notYet is the start of a play in which no task has begun.
const notYet = -1

type task struct {
	Name    string `json:"name"`
	Role    string `json:"role,omitempty"`
	Action  string `json:"action"`
	Handler bool   `json:"handler,omitempty"`
	At      string `json:"at"`
	Play    int    `json:"play"`
	Start   int64  `json:"start"`
}

type host struct {
	Name  string `json:"name"`
	Recap []int  `json:"recap,omitempty"` // ok, changed, unreachable, failed, skipped, rescued, ignored
}

// columns are the cells of the timeline, one array for each property: a quarter of the size of an
// object for each cell.
type columns struct {
	Host   []int   `json:"host"`
	Task   []int   `json:"task"`
	State  []state `json:"state"`
	Start  []int64 `json:"start"` // each less the one before it
	Took   []int64 `json:"took"`
	Detail []int   `json:"detail"` // -1 is none
	last   int64
}

func (c *columns) add(at place, s state, start, took int64, detail int) {
	c.Host = append(c.Host, at.host)
	c.Task = append(c.Task, at.task)
	c.State = append(c.State, s)
	c.Start = append(c.Start, start-c.last)
	c.Took = append(c.Took, took)
	c.Detail = append(c.Detail, detail)
	c.last = start
}

// state is the result of a task on a host, as an index of stateNames.
type state int

const (
	stateOK state = iota
	stateChanged
	stateFailed
	stateSkipped
	stateUnreachable
	stateRescued
	stateIgnored
	stateUnfinished
)

var stateNames = [...]string{"ok", "changed", "failed", "skipped", "unreachable", "rescued", "ignored", "unfinished"}

func stateOf(e event.HostResult) state {
	switch {
	case e.Ignored:
		return stateIgnored
	case e.Rescued:
		return stateRescued
	}
	switch e.Status {
	case event.Changed:
		return stateChanged
	case event.Failed:
		return stateFailed
	case event.Skipped:
		return stateSkipped
	case event.Unreachable:
		return stateUnreachable
	}
	return stateOK
}

// close adds tasks that were still running when the run ended, and the length of a run that was
// killed.
func (b *builder) close() {
	byPlace := func(x, y place) int { return cmp.Or(x.task-y.task, x.host-y.host) }
	for _, at := range slices.SortedFunc(maps.Keys(b.open), byPlace) {
		p := b.open[at]
		d := detail{Stdout: strings.Join(p.output, "\n"), Items: p.items}
		b.doc.Cells.add(at, stateUnfinished, b.since(p.start), b.now.Sub(p.start).Microseconds(), b.details.add(d))
	}
	clear(b.open)
	if !b.doc.Run.Finished {
		b.doc.Run.Took = b.since(b.now)
	}
	for i := range b.doc.Plays {
		if p := &b.doc.Plays[i]; p.Start == notYet {
			p.Start = b.doc.Run.Took
		}
	}
	b.doc.Path = b.critical()
	b.doc.Chunk = chunkSize
}

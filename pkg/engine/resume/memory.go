// Package resume reads back what hosts did in an earlier run, for a run that continues it.
package resume

import (
	"fmt"

	"kubekey/pkg/event"
)

// Memory is what hosts did in an earlier run that is resumed. It is a sink of
// that run's events. The engine walks the playbooks from their start; where the
// memory has the result of a task on a host, that replaces a call of the module,
// so that registered results, facts, notified handlers, batches and includes are
// as they were. A host that has done again all that it did is live.
type Memory struct {
	hosts   map[string]*past
	aborted bool // all hosts of a play were ended: none is known to have finished
}

// past is what one host did, in order.
type past struct {
	done    []*Action
	live    bool
	through bool // it reached the end of that run
}

// Action is one task on one host. A nil one has no results.
type Action struct {
	task  *event.Task
	whole *event.HostResult // nil when the run ended meanwhile
	items map[int]*event.HostResult
}

// Emit implements event.Sink.
func (m *Memory) Emit(e event.Event) {
	switch e := e.(type) {
	case event.HostResult:
		d := m.action(e.Host, e.Task)
		if e.Item != nil {
			d.items[e.Item.Index] = &e
		} else {
			d.whole = &e
		}
	case event.NoMoreHosts:
		m.aborted = true
	case event.RunEnded:
		m.aborted = m.aborted || e.ExitCode == event.ExitInterrupted || e.ExitCode == event.ExitError
		for _, p := range m.hosts {
			p.through = !m.aborted && p.stop() < 0
		}
	}
}

func (m *Memory) action(host string, t *event.Task) *Action {
	if m.hosts == nil {
		m.hosts = map[string]*past{}
	}
	p := m.hosts[host]
	if p == nil {
		p = &past{}
		m.hosts[host] = p
	}
	for i := len(p.done) - 1; i >= 0; i-- {
		if p.done[i].task.ID == t.ID {
			return p.done[i]
		}
	}
	d := &Action{task: t, items: map[int]*event.HostResult{}}
	p.done = append(p.done, d)
	return d
}

// stop is the index of the action that failed or was cut off, -1 without one.
func (p *past) stop() int {
	for i, d := range p.done {
		if !d.Succeeded() {
			return i
		}
	}
	return -1
}

// Succeeded reports whether the host went on after the action.
func (a *Action) Succeeded() bool {
	return a.whole != nil && (a.whole.Status < event.Failed || a.whole.Ignored || a.whole.Rescued)
}

// Open reports whether there is anything to resume.
func (m *Memory) Open() bool {
	for _, p := range m.hosts {
		if !p.through {
			return true
		}
	}
	return false
}

// Done lists the tasks that hosts did which are not through, each once, with the
// name of such a host.
func (m *Memory) Done() map[*event.Task]string {
	out, seen := map[*event.Task]string{}, map[string]bool{}
	for host, p := range m.hosts {
		for _, d := range p.done {
			if p.through || !d.Succeeded() {
				break
			}
			if place := d.task.At.String() + d.task.Digest; !seen[place] {
				seen[place] = true
				out[d.task] = host
			}
		}
	}
	return out
}

// Recall returns what a host that stands at a task did there, nil when it is
// to do it now. passes is set for a host that was through, and never did it.
func (m *Memory) Recall(host string, t *event.Task) (d *Action, passes bool, err error) {
	p := m.past(host)
	switch {
	case p == nil || p.live:
		return nil, false, nil
	case p.through:
		for i, d := range p.done {
			if sameTask(d.task, t) {
				p.done = p.done[i+1:]
				return d, false, nil
			}
		}
		return nil, true, nil
	case len(p.done) == 0:
		p.live = true
		return nil, false, nil
	}
	if d = p.done[0]; !isAt(d.task, t) {
		return nil, false, fmt.Errorf("%s did %q (%s) next in the run that is gone on with, and stands at %q (%s) now: inventory, variables or tags are not what they were",
			host, d.task.Name, d.task.At, t.Name, t.At)
	}
	p.done = p.done[1:]
	if !d.Succeeded() {
		p.live = true
		p.done = nil
	}
	return d, false, nil
}

func (m *Memory) past(host string) *past {
	if m == nil {
		return nil
	}
	return m.hosts[host]
}

// Has reports whether a host did the task next.
func (m *Memory) Has(host string, t *event.Task) bool {
	p := m.past(host)
	if p == nil || p.live {
		return false
	}
	for i, d := range p.done {
		if p.through && sameTask(d.task, t) || i == 0 && isAt(d.task, t) {
			return true
		}
	}
	return false
}

// CanRun reports whether a host may do what nobody did.
func (m *Memory) CanRun(host string) bool {
	p := m.past(host)
	return p == nil || p.live || !p.through && len(p.done) == 0
}

func isAt(a, b *event.Task) bool { return a.At.String() == b.At.String() && a.Action == b.Action }

// sameTask tells a task by what it is called: lines may have been added above it.
func sameTask(a, b *event.Task) bool {
	return a.Name == b.Name && a.Role == b.Role && a.Action == b.Action && a.Handler == b.Handler
}

// Result is the one for an item, or of the whole task; nil for what is to be done again.
func (a *Action) Result(item *event.Item) *event.HostResult {
	switch {
	case a == nil:
		return nil
	case item == nil:
		if !a.Succeeded() {
			return nil
		}
		return a.whole
	}
	r := a.items[item.Index]
	if r == nil || r.Status >= event.Failed && !a.Succeeded() {
		return nil
	}
	return r
}

// Behind reports whether a host still is where the earlier run was.
func (m *Memory) Behind(host string) bool {
	p := m.past(host)
	return p != nil && !p.live && (p.through || len(p.done) > 0)
}

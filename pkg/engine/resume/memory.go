// Package resume reads back the actions of hosts in a previous run, for a run that continues it.
package resume

import (
	"fmt"

	"kubekey/pkg/event"
)

// Memory contains the actions of hosts in a previous run that is resumed. It is a sink for the events of that run.
// The engine walks the playbooks from their start. If the memory has the result of a task on a host, the result
// replaces the call of the module, so that registered results, facts, notified handlers, batches and includes are
// restored. A host that has repeated all of its recorded actions is live.
type Memory struct {
	hosts   map[string]*past
	aborted bool // all hosts of a play were ended: no host is known to have finished
}

// past is the list of actions of one host, in order.
type past struct {
	done    []*Action
	live    bool
	through bool // it reached the end of that run
}

// Action is one task on one host. A nil Action has no results.
type Action struct {
	task  *event.Task
	whole *event.HostResult // nil if the run ended during the task
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

// stop returns the index of the action that failed or was interrupted, or -1.
func (p *past) stop() int {
	for i, d := range p.done {
		if !d.Succeeded() {
			return i
		}
	}
	return -1
}

// Succeeded reports whether the host continued after the action.
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

// Done returns the tasks that unfinished hosts have completed, each once, with the name of one such host.
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

// Recall returns the action of a host at its current task; nil if the host must run the task now. passes is set for a
// host that finished the previous run without running the task.
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
		return nil, false, fmt.Errorf("%s did %q (%s) next in the run that is gone on with, and stands at %q (%s) now: "+
			"inventory, variables or tags are not what they were",
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

// Has reports whether the task is the host's next recorded action.
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

// CanRun reports whether a host can run a task that no host has run.
func (m *Memory) CanRun(host string) bool {
	p := m.past(host)
	return p == nil || p.live || !p.through && len(p.done) == 0
}

func isAt(a, b *event.Task) bool { return a.At.String() == b.At.String() && a.Action == b.Action }

// sameTask compares tasks by name, not by position: lines can have been added above a task.
func sameTask(a, b *event.Task) bool {
	return a.Name == b.Name && a.Role == b.Role && a.Action == b.Action && a.Handler == b.Handler
}

// Result returns the result for an item, or of the whole task if item is nil. It returns nil if the work must be done
// again.
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

// Behind reports whether a host is still in the part that the previous run has done.
func (m *Memory) Behind(host string) bool {
	p := m.past(host)
	return p != nil && !p.live && (p.through || len(p.done) > 0)
}

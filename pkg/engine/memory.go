package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// Memory is what hosts did in an earlier run that is gone on with. It is a
// sink of that run's events. The engine walks the playbooks from their start;
// where the memory has what a task came to on a host, that is taken in its
// place, so that registered results, facts, notified handlers, batches and
// includes are as they were. A host that is past what it did is live.
type Memory struct {
	hosts   map[string]*past
	aborted bool // all hosts of a play were ended: none is known to be through
}

// past is what one host did, in order.
type past struct {
	done    []*deed
	live    bool
	through bool // it came to the end of that run
}

// deed is one task on one host.
type deed struct {
	task  *event.Task
	whole *event.HostResult // nil when the run ended meanwhile
	items map[int]*event.HostResult
}

// Emit implements event.Sink.
func (m *Memory) Emit(e event.Event) {
	switch e := e.(type) {
	case event.HostResult:
		d := m.deed(e.Host, e.Task)
		if e.Item != nil {
			d.items[e.Item.Index] = &e
		} else {
			d.whole = &e
		}
	case event.NoMoreHosts:
		m.aborted = true
	case event.RunEnded:
		m.aborted = m.aborted || e.ExitCode == ExitInterrupted || e.ExitCode == ExitError
		for _, p := range m.hosts {
			p.through = !m.aborted && p.stop() < 0
		}
	}
}

func (m *Memory) deed(host string, t *event.Task) *deed {
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
	d := &deed{task: t, items: map[int]*event.HostResult{}}
	p.done = append(p.done, d)
	return d
}

// stop is the index of the deed that failed or was cut off, -1 without one.
func (p *past) stop() int {
	for i, d := range p.done {
		if !d.well() {
			return i
		}
	}
	return -1
}

// well reports whether the host went on after the deed.
func (d *deed) well() bool {
	return d.whole != nil && (d.whole.Status < event.Failed || d.whole.Ignored || d.whole.Rescued)
}

// Open reports whether there is anything to go on with.
func (m *Memory) Open() bool {
	for _, p := range m.hosts {
		if !p.through {
			return true
		}
	}
	return false
}

// Done lists the tasks that hosts did which are to go on, each once, with the
// name of such a host.
func (m *Memory) Done() map[*event.Task]string {
	out, seen := map[*event.Task]string{}, map[string]bool{}
	for host, p := range m.hosts {
		for _, d := range p.done {
			if p.through || !d.well() {
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

// recall returns what a host that stands at a task did there, nil when it is
// to do it now. passes is set for a host that was through, and never did it.
func (m *Memory) recall(host string, t *event.Task) (d *deed, passes bool, err error) {
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
	if !d.well() {
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

// has reports whether a host did the task next.
func (m *Memory) has(host string, t *event.Task) bool {
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

// canRun reports whether a host may do what nobody did.
func (m *Memory) canRun(host string) bool {
	p := m.past(host)
	return p == nil || p.live || !p.through && len(p.done) == 0
}

func isAt(a, b *event.Task) bool { return a.At.String() == b.At.String() && a.Action == b.Action }

// sameTask tells a task by what it is called: lines may have been added above it.
func sameTask(a, b *event.Task) bool {
	return a.Name == b.Name && a.Role == b.Role && a.Action == b.Action && a.Handler == b.Handler
}

// remember finds what each host did at a task, and leaves out those that pass it.
// Of a task that one host does for all, the host that did it is the first.
func (e *Engine) remember(t *project.Task, ev *event.Task, group []*walker, shared bool) ([]*walker, error) {
	for _, w := range group {
		w.past = nil
	}
	if e.Memory == nil {
		return group, nil
	}
	if shared {
		first := 0
		for i, w := range group {
			if e.Memory.has(w.name, ev) {
				first = i
				break
			}
			if !e.Memory.canRun(group[first].name) && e.Memory.canRun(w.name) {
				first = i
			}
		}
		group = append([]*walker{group[first]}, append(group[:first:first], group[first+1:]...)...)
	}
	out := make([]*walker, 0, len(group))
	for i, w := range group {
		if shared && i > 0 {
			out = append(out, w)
			continue
		}
		d, passes, err := e.Memory.recall(w.name, ev)
		if err != nil {
			return nil, err
		}
		if passes && !shared {
			w.done(t, false)
			continue
		}
		w.past = d
		out = append(out, w)
	}
	return out, nil
}

// recalledByAll reports whether no host is to do anything.
func recalledByAll(hosts []*walker) bool {
	for _, w := range hosts {
		if w.past == nil || !w.past.well() {
			return false
		}
	}
	return true
}

// recall takes what the task, or an item of it, came to in the earlier run. It
// returns false for what is to be done again: what failed, what was not done,
// and what left something behind that the journal does not have.
func (x *execution) recall(v *vars.View, o *itemOutcome) bool {
	r := x.w.past.result(o.item)
	if r == nil || !x.restorable(r) {
		return false
	}
	o.ran, o.recalled = true, true
	o.status, o.result, o.delegate = r.Status, r.Result.Copy(), r.Delegate
	o.startedAt, o.took = r.StartedAt, r.Duration
	if facts, ok := o.result.Get("ansible_facts"); ok {
		o.facts, _ = facts.(*value.Dict)
	}
	if x.t.Action == "set_fact" {
		o.factKind = module.SetFact
	}
	if on, err := x.flag(v, project.DelegateFacts); on && err == nil {
		o.factsTo = o.delegate
	}
	if o.status == event.Changed {
		x.notifications(v, o)
	}
	x.ignore(v, o)
	return true
}

func (d *deed) result(item *event.Item) *event.HostResult {
	switch {
	case d == nil:
		return nil
	case item == nil:
		if !d.well() {
			return nil
		}
		return d.whole
	}
	r := d.items[item.Index]
	if r == nil || r.Status >= event.Failed && !d.well() {
		return nil
	}
	return r
}

// restorable reports whether the journal has all that the task left behind.
func (x *execution) restorable(r *event.HostResult) bool {
	if r.Result == nil || r.Status == event.Skipped {
		return r.Result != nil
	}
	if x.retells() {
		return false
	}
	whole := !r.Partial && !r.Result.Has("censored")
	return whole || x.t.Register == "" && !x.makesFacts()
}

// retells tells tasks that touch nothing but kk's own state, which the journal
// has no word for: they are done again, and not shown.
func (x *execution) retells() bool {
	switch x.t.Action {
	case "add_host", "group_by", "add_hostvars", "include_vars", "result":
		return true
	}
	return x.t.Include != nil
}

func (x *execution) makesFacts() bool {
	return x.t.Action == "set_fact" || x.t.Action == "setup" || strings.HasSuffix(x.t.Action, "_facts")
}

// Digest stands for what a file says up to the end of a task, of a handler for
// its own lines: handlers run out of the order in which they are written. The
// task is all lines that are indented as its first key, or deeper.
func Digest(at source.Pos, handler, header bool) string {
	if !at.IsValid() {
		return ""
	}
	lines := strings.SplitAfter(string(at.File.Text), "\n")
	start := min(at.Line-1, len(lines))
	end := min(start+1, len(lines))
	for ; !header && end < len(lines); end++ {
		line := strings.TrimRight(lines[end], " \r\n")
		if indent := len(line) - len(strings.TrimLeft(line, " ")); line != "" && indent < at.Col-1 {
			break
		}
	}
	if !handler {
		start = 0
	}
	sum := sha256.Sum256([]byte(strings.TrimRight(strings.Join(lines[start:end], ""), " \r\n")))
	return hex.EncodeToString(sum[:8])
}

// recallsAll reports whether all hosts still stand where the earlier run was.
func (m *Memory) recallsAll(group []*walker) bool {
	for _, w := range group {
		if p := m.past(w.name); p == nil || p.live || !p.through && len(p.done) == 0 {
			return false
		}
	}
	return true
}

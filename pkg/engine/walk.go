package engine

import (
	"maps"

	"kubekey/pkg/engine/resume"
	"kubekey/pkg/event"
	"kubekey/pkg/project"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// walker is where one host stands in a play: a stack of frames, outermost first.
type walker struct {
	name     string
	host     *vars.Host
	stack    []*frame
	run      *standing
	notified map[*project.Task]bool
	once     map[string]bool // roles that ran
	ended    bool            // failed, unreachable, or told to end
	failed   bool
	lost     bool           // unreachable
	fatal    bool           // a failure of any_errors_fatal struck it, and no rescue helped yet
	past     *resume.Action // what it did at the task that it stands at, in the run that is gone on with
}

// section is the part of a block that runs.
type section int

const (
	body section = iota
	rescue
	always
)

// frame is one list of steps that is being run.
type frame struct {
	block   *project.Block // identifies the list; never nil
	section section
	steps   []project.Step
	i       int
	pending bool                    // the block failed and its always section runs
	only    map[*project.Block]bool // of an include: what this host takes part in
	extra   []*vars.Layer           // variables of dynamic includes
	order   int
	flush   bool // handlers: only those that were notified
	ran     bool // a task ran, and was not skipped
	depth   int  // of dynamic includes
}

func (w *walker) top() *frame {
	if len(w.stack) == 0 {
		return nil
	}
	return w.stack[len(w.stack)-1]
}

// push begins a block.
func (w *walker) push(b *project.Block, steps []project.Step) *frame {
	f := &frame{block: b, steps: steps}
	if t := w.top(); t != nil {
		f.extra, f.depth = t.extra, t.depth
	}
	if len(b.Extra) > 0 {
		f.extra = append(f.extra[:len(f.extra):len(f.extra)], b.Extra...)
	}
	w.stack = append(w.stack, f)
	return f
}

func (w *walker) pop() { w.stack = w.stack[:len(w.stack)-1] }

// Next is the task that the host is to run, nil when the play is over for it.
func (w *walker) Next() *project.Task {
	for !w.ended {
		f := w.top()
		if f == nil {
			w.ended = true
			return nil
		}
		if f.i >= len(f.steps) {
			w.leave(f)
			continue
		}
		switch s := f.steps[f.i].(type) {
		case *project.Task:
			if f.flush && !w.notified[s] {
				f.i++
				continue
			}
			return s
		case *project.Block:
			if w.skips(f, s) {
				f.i++
				continue
			}
			w.push(s, s.Body)
		}
	}
	return nil
}

// skips reports whether the host does not take part in a block.
func (w *walker) skips(f *frame, b *project.Block) bool {
	if f.only != nil && !f.only[b] {
		return true
	}
	return b.Once != "" && w.once[b.Once]
}

// notify marks a handler. A role that was included again has its handlers
// again: the newest stands for them all, so that each runs once.
func (w *walker) notify(h *project.Task) {
	maps.DeleteFunc(w.notified, func(old *project.Task, _ bool) bool { return old.At == h.At })
	w.notified[h] = true
}

// done moves the host behind the task that it ran.
func (w *walker) done(t *project.Task, ran bool) {
	f := w.top()
	if f.flush {
		delete(w.notified, t)
	}
	f.i++
	if ran {
		for _, f := range w.stack {
			f.ran = true
		}
	}
}

// leave ends a list of steps that is done.
func (w *walker) leave(f *frame) {
	if f.section == rescue {
		w.fatal = false
	}
	if f.section != always && len(f.block.Always) > 0 {
		f.section, f.steps, f.i = always, f.block.Always, 0
		return
	}
	if f.block.Once != "" && f.ran {
		w.once[f.block.Once] = true
	}
	w.pop()
	if f.pending {
		w.fail()
		return
	}
	if t := w.top(); t != nil {
		t.i++
	}
}

// rescuable reports whether a failure here would be rescued.
func (w *walker) rescuable() bool {
	for i := len(w.stack) - 1; i >= 0; i-- {
		f := w.stack[i]
		if f.section == body && len(f.block.Rescue) > 0 {
			return true
		}
	}
	return false
}

// fail moves the host to the rescue or always section that is nearest, or
// ends it.
func (w *walker) fail() {
	for len(w.stack) > 0 {
		f := w.top()
		switch {
		case f.section == body && len(f.block.Rescue) > 0:
			f.section, f.steps, f.i = rescue, f.block.Rescue, 0
			return
		case f.section != always && len(f.block.Always) > 0:
			f.section, f.steps, f.i, f.pending = always, f.block.Always, 0, true
			return
		}
		w.pop()
	}
	w.ended, w.failed = true, true
	w.run.fail(w.name)
}

// lose ends an unreachable host; it stays where it is, for clear_host_errors.
func (w *walker) lose() {
	w.ended, w.lost = true, true
	w.run.lose(w.name)
}

// forgive takes an unreachable host back, behind the task that it was lost at.
func (w *walker) forgive() {
	if w.lost {
		w.ended, w.lost = false, false
		w.top().i++
	}
}

// remember keeps for the rescue section what failed: the task as it is
// written, and its result.
func (w *walker) remember(t *project.Task, name string, result *value.Dict) {
	if t.Syntax.Name == "" {
		name = ""
	}
	task := value.NewDict("name", name, "action", t.Action, "args", written(t.Args), "tags", value.Of(t.Attrs.Tags), "register", nil, "loop", nil)
	if t.Register != "" {
		task.Set("register", t.Register)
	}
	if t.Loop != nil {
		task.Set("loop", written(t.Loop.Items))
	}
	when := []any{}
	for _, c := range t.Attrs.When {
		when = append(when, c.Src)
	}
	task.Set("when", when)
	for a, d := range t.Attrs.Value {
		task.Set(project.Attr(a).String(), written(d))
	}
	w.host.Set(value.NewDict("ansible_failed_task", task, "ansible_failed_result", result))
}

// written is what stands in the playbook, its templates not evaluated.
func written(d *template.Data) any {
	if d == nil {
		return nil
	}
	return d.Raw()
}

// Compare orders hosts by where they are: negative for a host that is behind the other.
func (w *walker) Compare(other *walker) int {
	for d := 0; d < len(w.stack) && d < len(other.stack); d++ {
		fa, fb := w.stack[d], other.stack[d]
		switch {
		case fa == fb:
			continue
		case fa.block != fb.block:
			return fa.order - fb.order
		case fa.section != fb.section:
			return int(fa.section) - int(fb.section)
		case fa.i != fb.i:
			return fa.i - fb.i
		}
	}
	return len(w.stack) - len(other.stack)
}

// outcome is what a task did on one host.
type outcome struct {
	walker   *walker
	task     *project.Task
	status   event.Status
	ignored  bool
	result   *value.Dict // to register; whole, secrets included
	items    []*itemOutcome
	includes []includeRequest
}

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

// walker is the position of one host in a play: a stack of frames, outermost first.
type walker struct {
	name     string
	host     *vars.Host
	stack    []*frame
	run      *standing
	notified map[*project.Task]bool
	once     map[string]bool // roles that have run
	ended    bool            // failed, unreachable, or ended by a meta task
	failed   bool
	lost     bool           // unreachable
	fatal    bool           // it failed under any_errors_fatal and has not been rescued
	past     *resume.Action // in a resumed run: the host's action at its current task in the previous run
}

// section is the section of a block that is being run.
type section int

const (
	body section = iota
	rescue
	always
)

// frame is a list of steps that is being run.
type frame struct {
	block   *project.Block // identifies the list; never nil
	section section
	steps   []project.Step
	i       int
	pending bool                    // the block failed and its always section runs
	only    map[*project.Block]bool // for an include: the blocks that this host takes part in
	extra   []*vars.Layer           // variables of dynamic includes
	order   int
	flush   bool // run only the handlers that were notified
	ran     bool // a task ran and was not skipped
	depth   int  // nesting depth of dynamic includes
}

func (w *walker) top() *frame {
	if len(w.stack) == 0 {
		return nil
	}
	return w.stack[len(w.stack)-1]
}

// push enters a block.
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

// Next returns the next task of the host, or nil at the end of the play.
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

// notify marks a handler as notified. If a role is included repeatedly, each inclusion has its own copies of the
// handlers. The latest copy replaces the others, so that each handler runs once.
func (w *walker) notify(h *project.Task) {
	maps.DeleteFunc(w.notified, func(old *project.Task, _ bool) bool { return old.At == h.At })
	w.notified[h] = true
}

// done moves the host past the task that it ran.
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

// leave ends a list of steps that has been run completely.
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

// fail moves the host to the nearest rescue or always section, or ends it if there is none.
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

// lose ends an unreachable host. It keeps its position, for clear_host_errors.
func (w *walker) lose() {
	w.ended, w.lost = true, true
	w.run.lose(w.name)
}

// forgive brings an unreachable host back, at the position after the task at which it became unreachable.
func (w *walker) forgive() {
	if w.lost {
		w.ended, w.lost = false, false
		w.top().i++
	}
}

// remember stores the failed task, as written, and its result in the variables of the rescue section.
func (w *walker) remember(t *project.Task, name string, result *value.Dict) {
	if t.Syntax.Name == "" {
		name = ""
	}
	task := value.NewDict("name", name, "action", t.Action, "args", written(t.Args), "tags", value.Of(t.Attrs.Tags),
		"register", nil, "loop", nil)
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

// written returns the source of a value, with its templates not evaluated.
func written(d *template.Data) any {
	if d == nil {
		return nil
	}
	return d.Raw()
}

// Compare orders hosts by their positions. It is negative if w is behind other.
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

// outcome is the result of a task on one host.
type outcome struct {
	walker   *walker
	task     *project.Task
	status   event.Status
	ignored  bool
	result   *value.Dict // value for register; complete, including secrets
	items    []*itemOutcome
	includes []includeRequest
}

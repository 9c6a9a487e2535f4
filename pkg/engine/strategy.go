package engine

import (
	"context"

	"kubekey/pkg/engine/resume"
	"kubekey/pkg/engine/strategy"
	"kubekey/pkg/event"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// together is a batch in which all hosts run each task at the same time.
type together struct {
	e  *Engine
	ps *playState
}

// freely is a batch in which each host runs independently.
type freely struct {
	e      *Engine
	ps     *playState
	tasks  map[*project.Task]*event.Task // announced once, by the first host
	warned map[project.Attr]bool
}

// runHosts runs the tasks of a batch in the order of the play's strategy.
func (e *Engine) runHosts(ctx context.Context, ps *playState) error {
	if !ps.free {
		return strategy.Linear(ctx, ps.walkers, together{e, ps})
	}
	if ps.maxFail >= 0 {
		at := ps.play.Syntax.MaxFailPercentage.At()
		e.emit(event.Warning{Diagnostic: source.Warningf(at, "max_fail_percentage has no effect with strategy: free")})
	}
	f := &freely{e: e, ps: ps, tasks: map[*project.Task]*event.Task{}, warned: map[project.Attr]bool{}}
	return strategy.Free(ctx, ps.walkers, strategy.Forks{Most: e.Forks, Pinned: ps.pinned}, f)
}

// Step implements strategy.Stepper.
func (b together) Step(ctx context.Context, t *project.Task, group []*walker) error {
	e, ps := b.e, b.ps
	if e.passes(ctx, ps, t) {
		for _, w := range group {
			w.done(t, false)
		}
		return nil
	}
	if t.Meta != "" {
		return e.meta(ctx, ps, t, group)
	}
	shared := e.sharedByAll(ctx, ps, t, group[0])
	ev := e.describe(ctx, ps, t, group[0])
	group, err := e.remember(t, ev, group, shared)
	if err != nil || len(group) == 0 {
		return err
	}
	hosts := group
	if shared {
		hosts = group[:1]
	}
	ev.Recalled = recalledByAll(hosts)
	e.announce(ev)
	outcomes := e.fanOut(ctx, ps, t, hosts, ev)
	if ctx.Err() != nil {
		return nil
	}
	for _, o := range outcomes {
		if err := e.take(ctx, ps, o, ev, group, shared); err != nil {
			return err
		}
	}
	e.expand(ps, t, ev, outcomes)
	e.afterTask(ctx, ps, t, outcomes)
	return nil
}

// passes reports whether --start-at-task or --step skips a task.
func (e *Engine) passes(ctx context.Context, ps *playState, t *project.Task) bool {
	if t.Hidden {
		return false
	}
	if ps.startFrom[t] { // never contains fact gathering
		return true
	}
	if !e.stepping || t.Meta != "" {
		return false
	}
	kind := "TASK: "
	if t.Handler {
		kind = "HANDLER: "
	}
	switch e.Step(ctx, kind+TaskName(t)) {
	case No:
		return true
	case Continue:
		e.stepping = false
	}
	return false
}

// sharedByAll reports whether one execution counts for all hosts.
func (e *Engine) sharedByAll(ctx context.Context, ps *playState, t *project.Task, w *walker) bool {
	if t.Spec != nil && t.Spec.Where == onceForAll {
		return true
	}
	if t.Attrs.Value[project.RunOnce] == nil {
		return false
	}
	x := &execution{e: e, ps: ps, t: t, w: w, view: e.taskView(ctx, ps, t, w)}
	once, err := x.flag(x.view, project.RunOnce)
	return once && err == nil
}

// announce emits the start of a task.
func (e *Engine) announce(ev *event.Task) {
	e.emit(event.TaskStarted{Task: ev, Time: e.Now()})
}

// describe names a task, evaluated for its first host.
func (e *Engine) describe(ctx context.Context, ps *playState, t *project.Task, w *walker) *event.Task {
	e.taskID++
	ev := &event.Task{ID: e.taskID, Action: t.Action, Handler: t.Handler, At: t.At, Trace: t.Trace}
	ev.Role, ev.Name = title(t)
	if t.Name != nil {
		if v, err := t.Name.Value(ctx, e.taskView(ctx, ps, t, w)); err == nil {
			ev.Name = value.Str(v)
		}
	}
	if ev.Name == "" {
		ev.Name = t.Action
	}
	ev.Header = t == ps.play.Setup
	ev.Digest = resume.Digest(t.At, t.Handler, ev.Header)
	return ev
}

// fanOut runs a task on hosts, at most forks (or throttle) at a time, and emits the events of the workers.
func (e *Engine) fanOut(ctx context.Context, ps *playState, t *project.Task, hosts []*walker,
	ev *event.Task) []*outcome {
	workers := min(len(hosts), e.Forks)
	if n := e.throttle(ctx, ps, t, hosts[0]); n > 0 {
		workers = min(workers, n)
	}
	next := make(chan *walker, len(hosts))
	for _, w := range hosts {
		next <- w
	}
	close(next)
	for range workers {
		go func() {
			for w := range next {
				if ctx.Err() != nil {
					e.live <- message{outcome: &outcome{walker: w, task: t}}
					continue
				}
				e.live <- message{event: event.HostStarted{Task: ev, Host: w.name, Time: e.Now()}}
				e.live <- message{outcome: e.runHost(ctx, ps, t, w, ev)}
			}
		}()
	}
	byHost := make(map[*walker]*outcome, len(hosts))
	for len(byHost) < len(hosts) {
		m := <-e.live
		if m.event != nil {
			e.emit(m.event)
			continue
		}
		byHost[m.outcome.walker] = m.outcome
		e.report(m.outcome, ev)
	}
	out := make([]*outcome, len(hosts))
	for i, w := range hosts {
		out[i] = byHost[w]
	}
	return out
}

func (e *Engine) throttle(ctx context.Context, ps *playState, t *project.Task, w *walker) int {
	d := t.Attrs.Value[project.Throttle]
	if d == nil {
		return 0
	}
	v, err := d.Value(ctx, e.taskView(ctx, ps, t, w))
	if err != nil {
		return 0
	}
	n, err := playbook.Count.Convert(v)
	if err != nil {
		return 0 // the task reports the error
	}
	return n.(int)
}

// Limit implements strategy.Starter.
func (f *freely) Limit(ctx context.Context, t *project.Task, w *walker) int {
	return f.e.throttle(ctx, f.ps, t, w)
}

// Start implements strategy.Starter.
func (f *freely) Start(ctx context.Context, t *project.Task, w *walker) (running bool, err error) {
	e := f.e
	switch {
	case e.passes(ctx, f.ps, t):
		w.done(t, false)
		return false, nil
	case t.Meta != "":
		return false, e.meta(ctx, f.ps, t, []*walker{w})
	}
	if d := notFree(t); d != nil { // from an include: others are found before the run
		return false, d
	}
	ev := f.tasks[t]
	if ev == nil {
		f.warn(t)
		ev = e.describe(ctx, f.ps, t, w)
		e.announce(ev)
		f.tasks[t] = ev
	}
	if left, err := e.remember(t, ev, []*walker{w}, false); err != nil || len(left) == 0 {
		return false, err
	}
	go func() {
		e.live <- message{event: event.HostStarted{Task: ev, Host: w.name, Time: e.Now()}}
		e.live <- message{outcome: e.runHost(ctx, f.ps, t, w, ev)}
	}()
	return true, nil
}

// warn warns, once per batch, about keywords that require all hosts to run together.
func (f *freely) warn(t *project.Task) {
	for _, a := range []project.Attr{project.RunOnce, project.AnyErrorsFatal} {
		if t.Attrs.Value[a] != nil && !f.warned[a] {
			f.warned[a] = true
			f.e.emit(event.Warning{Diagnostic: source.Warningf(t.At, "%s has no effect with strategy: free", a)})
		}
	}
}

// Await implements strategy.Starter.
func (f *freely) Await(ctx context.Context) (*project.Task, *walker, error) {
	m := <-f.e.live
	for ; m.outcome == nil; m = <-f.e.live {
		if ctx.Err() == nil {
			f.e.emit(m.event)
		}
	}
	o := m.outcome
	if ctx.Err() != nil {
		return o.task, o.walker, nil
	}
	ev := f.tasks[o.task]
	f.e.report(o, ev)
	err := f.e.take(ctx, f.ps, o, ev, []*walker{o.walker}, false)
	if err == nil {
		f.e.expand(f.ps, o.task, ev, []*outcome{o})
	}
	return o.task, o.walker, err
}

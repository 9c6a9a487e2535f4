package engine

import (
	"context"

	"kubekey/pkg/event"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// linear runs the play task by task: all hosts that stand at a task run it
// before any goes on.
func (e *Engine) linear(ctx context.Context, ps *playState) error {
	for ctx.Err() == nil {
		t, group := ps.furthestBehind()
		if t == nil {
			return nil
		}
		if err := e.step(ctx, ps, t, group); err != nil {
			return err
		}
	}
	return nil
}

// furthestBehind is the task to run next, and the hosts that stand at it.
func (ps *playState) furthestBehind() (*project.Task, []*walker) {
	var task *project.Task
	var group []*walker
	for _, w := range ps.walkers {
		t := w.next()
		if t == nil {
			continue
		}
		if task == nil {
			task, group = t, append(group, w)
			continue
		}
		switch d := behind(w, group[0]); {
		case d == 0 && t == task:
			group = append(group, w)
		case d < 0:
			task, group = t, append(group[:0:0], w)
		}
	}
	return task, group
}

// step runs one task on the hosts that stand at it.
func (e *Engine) step(ctx context.Context, ps *playState, t *project.Task, group []*walker) error {
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

// passes reports whether --start-at-task or --step leaves a task out.
func (e *Engine) passes(ctx context.Context, ps *playState, t *project.Task) bool {
	if t.Hidden {
		return false
	}
	if ps.startFrom[t] { // never gathering facts
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

// sharedByAll reports whether one execution serves all hosts.
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

// announce emits that a task starts.
func (e *Engine) announce(ev *event.Task) {
	e.emit(event.TaskStarted{Task: ev, Time: e.Now()})
}

// describe names a task, as its first host sees it.
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
	ev.Digest = Digest(t.At, t.Handler, ev.Header)
	return ev
}

// fanOut runs a task on hosts, at most forks (or throttle) at a time, and
// passes on what the workers tell.
func (e *Engine) fanOut(ctx context.Context, ps *playState, t *project.Task, hosts []*walker, ev *event.Task) []*outcome {
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
		return 0 // the task says so
	}
	return n.(int)
}

// freely lets each host go on alone.
func (e *Engine) freely(ctx context.Context, ps *playState) error {
	f := &freeRun{e: e, ps: ps, tasks: map[*project.Task]*event.Task{}, busy: map[*project.Task]int{}, warned: map[project.Attr]bool{}}
	defer f.drain()
	if ps.maxFail >= 0 {
		e.emit(event.Warning{Diagnostic: source.Warningf(ps.play.Syntax.MaxFailPercentage.At(), "max_fail_percentage has no effect with strategy: free")})
	}
	for ctx.Err() == nil {
		progressed, err := f.startAll(ctx)
		if err != nil {
			return err
		}
		switch {
		case f.running > 0:
			if err := f.one(ctx); err != nil {
				return err
			}
		case !progressed:
			return nil
		}
	}
	return nil
}

// freeRun is a batch under the free strategy.
type freeRun struct {
	e       *Engine
	ps      *playState
	tasks   map[*project.Task]*event.Task // announced once, by the first host
	busy    map[*project.Task]int         // hosts that run a task
	warned  map[project.Attr]bool
	running int
}

// startAll starts what can be started, and reports whether any host moved.
func (f *freeRun) startAll(ctx context.Context) (progressed bool, err error) {
	for _, w := range f.ps.walkers {
		if w.busy || f.running >= f.e.Forks || !f.mayBegin(w) {
			continue
		}
		t := w.next()
		if t == nil {
			continue
		}
		if limit := f.e.throttle(ctx, f.ps, t, w); limit > 0 && f.busy[t] >= limit {
			continue
		}
		progressed = true
		if err := f.start(ctx, t, w); err != nil {
			return progressed, err
		}
	}
	return progressed, nil
}

// mayBegin reports whether a host has a place, or there is one for it: with
// host_pinned, forks hosts have one until they are through.
func (f *freeRun) mayBegin(w *walker) bool {
	if !f.ps.pinned || w.pinned {
		return true
	}
	n := 0
	for _, other := range f.ps.walkers {
		if other.pinned && !other.ended {
			n++
		}
	}
	w.pinned = n < f.e.Forks
	return w.pinned
}

func (f *freeRun) start(ctx context.Context, t *project.Task, w *walker) error {
	e := f.e
	switch {
	case e.passes(ctx, f.ps, t):
		w.done(t, false)
		return nil
	case t.Meta != "":
		return e.meta(ctx, f.ps, t, []*walker{w})
	}
	if d := notFree(t); d != nil { // that an include brought in: others are found before the run
		return d
	}
	ev := f.tasks[t]
	if ev == nil {
		f.warn(t)
		ev = e.describe(ctx, f.ps, t, w)
		e.announce(ev)
		f.tasks[t] = ev
	}
	if left, err := e.remember(t, ev, []*walker{w}, false); err != nil || len(left) == 0 {
		return err
	}
	w.busy = true
	f.running++
	f.busy[t]++
	go func() {
		e.live <- message{event: event.HostStarted{Task: ev, Host: w.name, Time: e.Now()}}
		e.live <- message{outcome: e.runHost(ctx, f.ps, t, w, ev)}
	}()
	return nil
}

// warn tells, once for a batch, of keywords that need the hosts to go together.
func (f *freeRun) warn(t *project.Task) {
	for _, a := range []project.Attr{project.RunOnce, project.AnyErrorsFatal} {
		if t.Attrs.Value[a] != nil && !f.warned[a] {
			f.warned[a] = true
			f.e.emit(event.Warning{Diagnostic: source.Warningf(t.At, "%s has no effect with strategy: free", a)})
		}
	}
}

// one waits for what a worker tells.
func (f *freeRun) one(ctx context.Context) error {
	m := <-f.e.live
	if m.event != nil {
		f.e.emit(m.event)
		return nil
	}
	o := m.outcome
	o.walker.busy = false
	f.running--
	f.busy[o.task]--
	if ctx.Err() != nil {
		return nil
	}
	ev := f.tasks[o.task]
	f.e.report(o, ev)
	if err := f.e.take(ctx, f.ps, o, ev, []*walker{o.walker}, false); err != nil {
		return err
	}
	f.e.expand(f.ps, o.task, ev, []*outcome{o})
	return nil
}

// drain waits for the workers of a batch that ends early.
func (f *freeRun) drain() {
	for f.running > 0 {
		if m := <-f.e.live; m.outcome != nil {
			f.running--
		}
	}
}

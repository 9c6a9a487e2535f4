package engine

import (
	"context"
	"fmt"
	"strconv"

	"kubekey/pkg/event"
	"kubekey/pkg/project"
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
	hosts := group
	shared := e.sharedByAll(ctx, ps, t, group[0])
	if shared {
		hosts = group[:1]
	}
	ev := e.announce(ctx, ps, t, hosts[0])
	outcomes := e.fanOut(ctx, ps, t, hosts, ev)
	if ctx.Err() != nil {
		return nil
	}
	for _, o := range outcomes {
		if o.abort != nil {
			return o.abort
		}
		e.take(ps, o, ev, group, shared)
	}
	if err := e.expand(ps, t, ev, outcomes, group, shared); err != nil {
		return err
	}
	e.afterTask(ctx, ps, t, outcomes)
	return nil
}

// passes reports whether --start-at-task or --step leaves a task out.
func (e *Engine) passes(ctx context.Context, ps *playState, t *project.Task) bool {
	if t.Hidden || t == ps.play.Setup {
		return false
	}
	if ps.startFrom[t] {
		return true
	}
	if !e.stepping || t.Meta != "" {
		return false
	}
	switch e.Step(ctx, TaskName(t)) {
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
	return x.flag(x.view, project.RunOnce)
}

// announce emits that a task starts.
func (e *Engine) announce(ctx context.Context, ps *playState, t *project.Task, w *walker) *event.Task {
	e.taskID++
	ev := &event.Task{ID: e.taskID, Action: t.Action, Handler: t.Handler, At: t.At, Trace: t.Trace, Name: t.Syntax.Name}
	if t.Role != nil {
		ev.Role = t.Role.Name
	}
	if t.Name != nil {
		if v, err := t.Name.Value(ctx, e.taskView(ctx, ps, t, w)); err == nil {
			ev.Name = value.Str(v)
		}
	}
	if ev.Name == "" {
		ev.Name = t.Action
	}
	e.emit(event.TaskStarted{Task: ev, Time: e.Now()})
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
		e.report(ps, m.outcome, ev)
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
	n, _ := strconv.Atoi(value.Str(v))
	return n
}

// freely lets each host go on alone.
func (e *Engine) freely(ctx context.Context, ps *playState) error {
	tasks := map[*project.Task]*event.Task{}
	running := 0
	slots := e.Forks
	for ctx.Err() == nil {
		progressed := false
		for _, w := range ps.walkers {
			if w.busy || running >= slots {
				continue
			}
			t := w.next()
			if t == nil {
				continue
			}
			progressed = true
			if t.Meta != "" {
				if err := e.meta(ctx, ps, t, []*walker{w}); err != nil {
					return err
				}
				continue
			}
			if t.Spec != nil && t.Spec.Where == onceForAll {
				return fmt.Errorf("%s: %s cannot run with strategy: free", t.At, t.Action)
			}
			ev := tasks[t]
			if ev == nil {
				ev = e.announce(ctx, ps, t, w)
				tasks[t] = ev
			}
			w.busy = true
			running++
			go func() { e.live <- message{outcome: e.runHost(ctx, ps, t, w, ev)} }()
		}
		if running == 0 {
			if !progressed {
				return nil
			}
			continue
		}
		if err := e.oneFree(ps, tasks, &running); err != nil {
			return err
		}
	}
	for running > 0 {
		if m := <-e.live; m.outcome != nil {
			running--
		}
	}
	return nil
}

// oneFree waits for what a worker tells.
func (e *Engine) oneFree(ps *playState, tasks map[*project.Task]*event.Task, running *int) error {
	m := <-e.live
	if m.event != nil {
		e.emit(m.event)
		return nil
	}
	o := m.outcome
	o.walker.busy = false
	*running--
	ev := tasks[o.task]
	e.report(ps, o, ev)
	if o.abort != nil {
		return o.abort
	}
	group := []*walker{o.walker}
	e.take(ps, o, ev, group, false)
	return e.expand(ps, o.task, ev, []*outcome{o}, group, false)
}

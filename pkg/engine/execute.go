package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// message is a message of a worker to the goroutine of the run: an event or an outcome.
type message struct {
	event   event.Event
	outcome *outcome
}

// execution is the execution of one task on one host.
type execution struct {
	e    *Engine
	ps   *playState
	t    *project.Task
	w    *walker
	ev   *event.Task
	view *vars.View
	held *atomic.Int64 // bytes of output in the results so far
	loopNames
	authored []*template.Data // items of the loop as written; nil if they are not templates
}

// itemOutcome is the outcome of one execution of a module: for the whole task, or for one item of a loop.
type itemOutcome struct {
	item      *event.Item
	ran       bool // the module was called
	recalled  bool // copied from a previous run
	status    event.Status
	result    *value.Dict
	effects   []module.Effect
	facts     *value.Dict
	factKind  module.FactKind
	delegate  string
	factsTo   string // host that receives the facts
	notify    []string
	diff      []event.Diff
	verbose   bool
	noLog     bool
	badInput  bool // it failed because of what kk was given
	warnings  []string
	ignored   bool
	include   *includeRequest
	startedAt time.Time
	took      time.Duration
}

// runHost runs a task on one host. It is called on the goroutine of a worker.
func (e *Engine) runHost(ctx context.Context, ps *playState, t *project.Task, w *walker, ev *event.Task) *outcome {
	x := &execution{e: e, ps: ps, t: t, w: w, ev: ev, held: new(atomic.Int64)}
	out := &outcome{walker: w, task: t}
	whole := &itemOutcome{startedAt: e.Now()}
	x.survive(whole, func() {
		x.view = e.taskView(ctx, ps, t, w)
		if t.Loop == nil {
			out.items = []*itemOutcome{x.once(ctx, x.view, nil)}
		} else {
			out.items = x.loop(ctx)
		}
		x.finish(out)
	})
	if whole.status == event.Failed {
		out = &outcome{walker: w, task: t, items: []*itemOutcome{whole}}
		out.status, out.ignored, out.result = whole.status, whole.ignored, whole.result
	}
	return out
}

// taskView returns the variables that a task sees on a host.
func (e *Engine) taskView(ctx context.Context, ps *playState, t *project.Task, w *walker) *vars.View {
	static := t.Static
	if f := w.top(); f != nil && len(f.extra) > 0 {
		static = static.With(nil, nil, f.extra)
	}
	v := e.scope.New(ctx, w.name, w.host, e.inventoryLayers(w.name, ps.dir), static, ps.play)
	v.Task = &here{e: e, play: ps, task: t}
	return v
}

// once runs the module for the task or for one item, with its conditions and retries.
func (x *execution) once(ctx context.Context, v *vars.View, item *event.Item) *itemOutcome {
	o := &itemOutcome{item: item, startedAt: x.e.Now()}
	defer func() {
		if !o.recalled {
			o.took = x.e.Now().Sub(o.startedAt)
		}
		o.recalled = o.recalled || x.retells() && x.w.past.Result(item) != nil
	}()
	x.survive(o, func() { x.stages(ctx, v, o) })
	return o
}

// stages runs the stages of one execution, in order.
func (x *execution) stages(ctx context.Context, v *vars.View, o *itemOutcome) {
	x.secrecy(v, o)
	if x.recall(v, o) {
		return
	}
	if skipped := x.conditions(ctx, v, o); skipped {
		return
	}
	if err := x.checkKeywords(v); err != nil {
		x.refuse(v, o, err)
		return
	}
	if x.t.Include != nil {
		x.requestInclude(ctx, v, o)
		return
	}
	x.attempts(ctx, v, o)
	x.hold(o)
	if o.status == event.Changed {
		x.notifications(v, o)
	}
	x.ignore(v, o)
}

// secrecy evaluates no_log. If the evaluation fails, the result is kept secret.
func (x *execution) secrecy(v *vars.View, o *itemOutcome) {
	on, err := x.flag(v, project.NoLog)
	o.noLog = on || err != nil
}

// refuse fails a task before its module ran.
func (x *execution) refuse(v *vars.View, o *itemOutcome, err error) {
	o.fail(err.Error())
	x.ignore(v, o)
}

// ignore marks a failure after which the play continues.
func (x *execution) ignore(v *vars.View, o *itemOutcome) {
	a := project.IgnoreErrors
	switch o.status {
	case event.Failed:
	case event.Unreachable:
		a = project.IgnoreUnreachable
	default:
		return
	}
	o.ignored, _ = x.flag(v, a)
}

// conditions evaluates when. It reports whether the task must be skipped, and stores the reason in o.
func (x *execution) conditions(ctx context.Context, v *vars.View, o *itemOutcome) bool {
	for _, c := range x.t.Attrs.When {
		holds, err := c.Holds(ctx, v)
		if err != nil {
			x.refuse(v, o, conditionError(c, err))
			return true
		}
		if !holds {
			o.status = event.Skipped
			o.result = value.NewDict("changed", false, "skipped", true,
				"skip_reason", "Conditional result was False", "false_condition", c.Src)
			return true
		}
	}
	return false
}

func conditionError(c *project.Cond, err error) error {
	return fmt.Errorf("The conditional check '%s' failed. The error was: %w", c.Src,
		err) //nolint:staticcheck // users search for this text
}

func (o *itemOutcome) fail(msg string) {
	o.status = event.Failed
	o.result = value.NewDict("changed", false, "failed", true, "msg", msg)
}

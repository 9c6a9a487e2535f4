package engine

import (
	"context"
	"fmt"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// attempts runs the module until it succeeds or no retries are left.
func (x *execution) attempts(ctx context.Context, v *vars.View, o *itemOutcome) {
	retries, delay, err := x.retries(v)
	if err != nil {
		o.fail(err.Error())
		return
	}
	for n := 1; ; n++ {
		x.attempt(ctx, v, o)
		if retries < 0 || ctx.Err() != nil || o.status == event.Unreachable || o.status == event.Skipped || !o.ran {
			return
		}
		o.result.Set("attempts", n)
		if retries == 0 { // a single attempt: until is not evaluated
			return
		}
		ok, err := x.satisfied(ctx, v, o)
		if err != nil {
			o.fail(err.Error())
			return
		}
		if ok {
			return
		}
		if n > retries {
			o.status = event.Failed
			o.result.Set("failed", true)
			o.result.Set("attempts", retries)
			return
		}
		x.tell(event.Retry{Task: x.ev, Host: x.w.name, Attempts: n, Left: retries - n + 1, Result: o.shown()})
		if module.Sleep(ctx, delay) != nil {
			return
		}
	}
}

// retries returns the number of retries and the delay between them; n is -1 if the task has no retries.
func (x *execution) retries(v *vars.View) (n int, delay time.Duration, err error) {
	if len(x.t.Until) == 0 && x.t.Retries == nil {
		return -1, 0, nil
	}
	n, delay = 3, 5*time.Second
	if val, set, err := x.ownTyped(v, x.t.Retries, playbook.Count, "retries"); err != nil {
		return 0, 0, err
	} else if set {
		n = val.(int)
	}
	if val, set, err := x.ownTyped(v, x.t.Delay, playbook.Seconds, "delay"); err != nil {
		return 0, 0, err
	} else if set {
		delay = val.(time.Duration)
	}
	return n, delay, nil
}

// own evaluates a keyword that is not inherited.
func (x *execution) own(v *vars.View, d *template.Data) (val any, set bool, err error) {
	if d == nil {
		return nil, false, nil
	}
	val, err = d.Value(v.Context(), v)
	return val, err == nil && val != nil && val != x.e.omit, undefinedOption(err)
}

// satisfied evaluates until. Without until, a result that did not fail is sufficient.
func (x *execution) satisfied(ctx context.Context, v *vars.View, o *itemOutcome) (bool, error) {
	if len(x.t.Until) == 0 {
		return o.status != event.Failed, nil
	}
	seen := x.withResult(v, o)
	for _, c := range x.t.Until {
		ok, err := c.Holds(ctx, seen)
		if err != nil {
			return false, fmt.Errorf("the condition until: %s failed: %w", c.Src, err)
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

func (x *execution) withResult(v *vars.View, o *itemOutcome) *vars.View {
	if x.t.Register == "" {
		return v
	}
	return v.With(x.t.Register, x.registered(o.result))
}

// attempt runs the module once.
func (x *execution) attempt(ctx context.Context, v *vars.View, o *itemOutcome) {
	*o = itemOutcome{item: o.item, startedAt: o.startedAt, noLog: o.noLog}
	limit, err := x.timeout(v)
	if err != nil {
		o.fail(err.Error())
		return
	}
	run := ctx
	if o.noLog {
		run = connector.WithNoLog(run)
	}
	if limit > 0 {
		var cancel context.CancelFunc
		run, cancel = context.WithTimeout(run, limit)
		defer cancel()
	}
	c, err := x.prepare(run, v, o)
	var warnings []string
	if err == nil {
		o.ran = true
		var res module.Result
		res, err = x.contain(func() (module.Result, error) { return x.runModule(run, v, c) })
		warnings = res.Warnings
		if err == nil || ctx.Err() == nil && run.Err() == nil {
			x.take(o, res, err)
			err = nil
		}
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		o.fail("interrupted")
		o.ran = false
	case run.Err() != nil:
		o.fail(fmt.Sprintf("The %s action failed to execute in the expected time frame (%v) and was terminated", x.t.Action,
			limit.Seconds()))
		o.warnings = warnings
		o.result.Set("timedout", value.NewDict("period", int(limit.Seconds()), "frame", x.t.At.String()))
	default:
		x.take(o, module.Result{}, undefinedOption(err))
	}
	if o.ran && o.status != event.Skipped && o.status != event.Unreachable {
		x.evaluate(ctx, v, o)
	}
}

func (x *execution) timeout(v *vars.View) (time.Duration, error) {
	val, set, err := x.typed(v, project.Timeout)
	if err != nil || !set {
		return 0, undefinedOption(err)
	}
	return val.(time.Duration), nil
}

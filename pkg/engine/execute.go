package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/schema"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// message is what a worker tells the run's goroutine: an event, or an outcome.
type message struct {
	event   event.Event
	outcome *outcome
}

// execution is one task on one host.
type execution struct {
	e    *Engine
	ps   *playState
	t    *project.Task
	w    *walker
	ev   *event.Task
	view *vars.View
}

// itemOutcome is one execution of a module: for the task, or for one item.
type itemOutcome struct {
	item      *event.Item
	ran       bool // the module was called
	status    event.Status
	result    *value.Dict
	effects   []module.Effect
	facts     *value.Dict
	factKind  module.FactKind
	delegate  string
	factsTo   string // host that the facts go to
	notify    []string
	diff      []event.Diff
	verbose   bool
	noLog     bool
	warnings  []string
	ignored   bool
	include   *includeRequest
	startedAt time.Time
	took      time.Duration
}

// runHost runs a task on one host. It is called on a worker's goroutine.
func (e *Engine) runHost(ctx context.Context, ps *playState, t *project.Task, w *walker, ev *event.Task) *outcome {
	x := &execution{e: e, ps: ps, t: t, w: w, ev: ev}
	x.view = e.taskView(ctx, ps, t, w)
	out := &outcome{walker: w, task: t}
	if t.Loop == nil {
		out.items = []*itemOutcome{x.once(ctx, x.view, nil)}
	} else {
		out.items = x.loop(ctx)
	}
	x.finish(out)
	return out
}

// taskView makes the variables that a task sees on a host.
func (e *Engine) taskView(ctx context.Context, ps *playState, t *project.Task, w *walker) *vars.View {
	static := t.Static
	if f := w.top(); f != nil && len(f.extra) > 0 {
		static = static.With(nil, nil, f.extra)
	}
	v := e.scope.New(ctx, w.name, w.host, e.inventoryLayers(w.name, ps.dir), static, ps.play)
	v.Task = &here{e: e, play: ps, task: t}
	return v
}

// once runs the module once, with its conditions and retries.
func (x *execution) once(ctx context.Context, v *vars.View, item *event.Item) *itemOutcome {
	o := &itemOutcome{item: item, startedAt: x.e.Now()}
	defer func() { o.took = x.e.Now().Sub(o.startedAt) }()
	x.secrecy(v, o)
	if skipped := x.conditions(ctx, v, o); skipped {
		return o
	}
	if err := x.checkKeywords(v); err != nil {
		x.refuse(v, o, err)
		return o
	}
	if x.t.Include != nil {
		x.requestInclude(ctx, v, o)
		return o
	}
	x.attempts(ctx, v, o)
	if o.status == event.Changed {
		x.notifications(v, o)
	}
	x.ignore(v, o)
	return o
}

// secrecy evaluates no_log; when that cannot be, the result is kept secret.
func (x *execution) secrecy(v *vars.View, o *itemOutcome) {
	on, err := x.flag(v, project.NoLog)
	o.noLog = on || err != nil
}

// refuse fails a task that did not get to run its module.
func (x *execution) refuse(v *vars.View, o *itemOutcome, err error) {
	o.fail(err.Error())
	x.ignore(v, o)
}

// ignore marks a failure that the play goes on after.
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

// checkKeywords evaluates the keywords that are read outside of the task, too:
// a template in one of them must not fail silently there.
func (x *execution) checkKeywords(v *vars.View) error {
	for i, d := range x.t.Attrs.Value {
		a := project.Attr(i)
		if d == nil || !a.IsBool() && a != project.Throttle {
			continue
		}
		if _, static := d.Static(); static {
			continue // checked when the playbook was read
		}
		check := x.flag
		if a == project.Throttle {
			check = x.isNumber
		}
		if _, err := check(v, a); err != nil {
			return undefinedOption(err)
		}
	}
	return nil
}

// isNumber reports whether a keyword is given, and an error when it is no whole number.
func (x *execution) isNumber(v *vars.View, a project.Attr) (bool, error) {
	val, set, err := x.attr(v, a)
	if err != nil || !set {
		return false, err
	}
	if _, err := strconv.Atoi(value.Str(val)); err != nil {
		return false, fmt.Errorf("%s must be a whole number, not %s", a, value.Repr(val))
	}
	return true, nil
}

// attr evaluates an inherited keyword. One that yields omit is as if it were
// not given: what the parent says holds.
func (x *execution) attr(v *vars.View, a project.Attr) (val any, set bool, err error) {
	return x.e.attr(v, &x.t.Attrs, a)
}

func (e *Engine) attr(v *vars.View, from *project.Attrs, a project.Attr) (val any, set bool, err error) {
	for ; from != nil && from.Value[a] != nil; from = from.Outer(a) {
		if val, err = from.Value[a].Value(v.Context(), v); err != nil {
			return nil, false, err
		}
		if val, err = value.Force(val); err != nil {
			return nil, false, err
		}
		if val != e.omit {
			return val, true, nil
		}
	}
	return nil, false, nil
}

// flag evaluates a keyword that is true or false; false when it is not given.
func (x *execution) flag(v *vars.View, a project.Attr) (bool, error) {
	val, set, err := x.attr(v, a)
	if err != nil || !set || val == nil {
		return false, err
	}
	on, err := boolean(val)
	if err != nil {
		return false, fmt.Errorf("%s %w", a, err)
	}
	return on, nil
}

// conditions evaluates when; it reports whether the task is not to run, with
// the reason in o.
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
	return fmt.Errorf("The conditional check '%s' failed. The error was: %w", c.Src, err) //nolint:staticcheck // users search for this text
}

func (o *itemOutcome) fail(msg string) {
	o.status = event.Failed
	o.result = value.NewDict("changed", false, "failed", true, "msg", msg)
}

// attempts runs the module until it succeeds or the retries are used up.
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
		if !sleep(ctx, delay) {
			return
		}
	}
}

// retries is how often to repeat: -1 when the task does not.
func (x *execution) retries(v *vars.View) (n int, delay time.Duration, err error) {
	if len(x.t.Until) == 0 && x.t.Retries == nil {
		return -1, 0, nil
	}
	n, delay = 3, 5*time.Second
	if val, set, err := x.own(v, x.t.Retries); err != nil {
		return 0, 0, err
	} else if set {
		if n, err = strconv.Atoi(strings.TrimSpace(value.Str(val))); err != nil {
			return 0, 0, fmt.Errorf("retries must be a whole number, not %s", value.Repr(val))
		}
	}
	if val, set, err := x.own(v, x.t.Delay); err != nil {
		return 0, 0, err
	} else if set {
		if delay, err = seconds(val); err != nil {
			return 0, 0, fmt.Errorf("delay: %w", err)
		}
	}
	return max(0, n), delay, nil
}

// own evaluates a keyword that is the task's alone.
func (x *execution) own(v *vars.View, d *template.Data) (val any, set bool, err error) {
	if d == nil {
		return nil, false, nil
	}
	val, err = d.Value(v.Context(), v)
	return val, err == nil && val != nil && val != x.e.omit, undefinedOption(err)
}

func seconds(v any) (time.Duration, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(value.Str(v)), 64)
	if err != nil || f < 0 {
		return 0, fmt.Errorf("%s is not a number of seconds", value.Repr(v))
	}
	return time.Duration(f * float64(time.Second)), nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// satisfied evaluates until; without one, what did not fail is done.
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
	if limit > 0 {
		var cancel context.CancelFunc
		run, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	c, err := x.prepare(run, v, o)
	if err == nil {
		o.ran = true
		var res module.Result
		res, err = x.runModule(run, c)
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
		o.fail(fmt.Sprintf("The %s action failed to execute in the expected time frame (%v) and was terminated", x.t.Action, limit.Seconds()))
		o.result.Set("timedout", value.NewDict("period", int(limit.Seconds()), "frame", x.t.At.String()))
	default:
		x.take(o, module.Result{}, undefinedOption(err))
	}
	if o.ran && o.status != event.Skipped && o.status != event.Unreachable {
		x.judge(ctx, v, o)
	}
}

func (x *execution) timeout(v *vars.View) (time.Duration, error) {
	val, set, err := x.attr(v, project.Timeout)
	if err != nil || !set || val == nil {
		return 0, undefinedOption(err)
	}
	limit, err := seconds(val)
	if err != nil {
		return 0, fmt.Errorf("timeout: %w", err)
	}
	return limit, nil
}

// prepare makes what the module is called with. Its errors fail the task
// before the module ran: changed_when and failed_when do not judge them.
func (x *execution) prepare(ctx context.Context, v *vars.View, o *itemOutcome) (*module.Call, error) {
	args, err := x.arguments(ctx, v)
	if err != nil {
		return nil, err
	}
	check, diff, err := x.modes(v)
	if err != nil {
		return nil, err
	}
	if o.delegate, err = x.delegate(v); err != nil {
		return nil, err
	}
	if on, err := x.flag(v, project.DelegateFacts); err != nil {
		return nil, err
	} else if on {
		o.factsTo = o.delegate
	}
	c := &module.Call{
		Host: x.w.name, Check: check, Diff: diff, Args: args, Raw: args, At: x.t.At, Now: x.e.Now,
		Scope: v, Templates: x.e.Templates, Files: x.e.Tree, WorkDir: x.e.WorkDir, Ask: x.e.Ask,
		Find:     func(kind, name string) (string, error) { return find(x.e.Tree, x.t, kind, name) },
		Output:   func(line string, stderr bool) { x.output(o.noLog, line, stderr) },
		Progress: func(what string, done, total int64) { x.progress(o.noLog, what, done, total) },
	}
	if x.skipsCheck(c) {
		return c, nil
	}
	if x.t.Spec.Where == module.OnHost {
		err = x.connect(ctx, v, c, o.delegate)
	}
	return c, err
}

// skipsCheck reports whether check mode leaves the module out.
func (x *execution) skipsCheck(c *module.Call) bool { return c.Check && x.t.Spec.Check == module.Skips }

func (x *execution) runModule(ctx context.Context, c *module.Call) (module.Result, error) {
	spec := x.t.Spec
	if x.skipsCheck(c) {
		msg := spec.CheckSkipMsg
		if msg == "" {
			msg = "remote module (" + spec.Name + ") does not support check mode"
		}
		return module.Result{Skipped: true, Msg: msg}, nil
	}
	runner, err := spec.Decode(c.Args)
	if err != nil {
		var problems schema.Errors
		if errors.As(err, &problems) {
			return module.Result{}, errors.New(schema.Explain(spec.Name, runner, problems))
		}
		return module.Result{}, err
	}
	return runner.Run(ctx, c)
}

func undefinedOption(err error) error {
	var u *value.Undefined
	if errors.As(err, &u) {
		return fmt.Errorf("The task includes an option with an undefined variable. The error was: %w", err) //nolint:staticcheck // users search for this text
	}
	return err
}

// modes are check and diff mode of the task.
func (x *execution) modes(v *vars.View) (check, diff bool, err error) {
	check, diff = x.e.Check, x.e.Diff
	for _, m := range []struct {
		attr project.Attr
		on   *bool
	}{{project.CheckMode, &check}, {project.Diff, &diff}} {
		val, set, err := x.attr(v, m.attr)
		if err != nil {
			return false, false, err
		}
		if !set || val == nil {
			continue
		}
		if *m.on, err = boolean(val); err != nil {
			return false, false, fmt.Errorf("%s %w", m.attr, err)
		}
	}
	return check, diff, nil
}

// arguments evaluates the task's arguments, module_defaults beneath them.
func (x *execution) arguments(ctx context.Context, v *vars.View) (*value.Dict, error) {
	args := value.NewDict()
	for _, d := range x.t.Attrs.ModuleDefaults {
		defaults, err := d.Value(ctx, v)
		if err != nil {
			return nil, err
		}
		all, _ := defaults.(*value.Dict)
		for name, a := range all.All() {
			own, _ := a.(*value.Dict)
			if text, ok := name.(string); ok && x.t.Spec.Is(text) {
				args.Merge(own)
			}
		}
	}
	if x.t.Args == nil {
		return args, nil
	}
	got, err := x.t.Args.Value(ctx, v)
	if err != nil {
		return nil, err
	}
	own, ok := got.(*value.Dict)
	if !ok {
		return nil, fmt.Errorf("the arguments of %s must be a mapping, not a %s", x.t.Action, value.TypeName(got))
	}
	if args.Len() > 0 {
		args.Merge(own)
		own = args
	}
	cleaned, _ := x.withoutOmit(own).(*value.Dict)
	return cleaned, nil
}

// withoutOmit drops what has the value of the variable omit, at any depth.
func (x *execution) withoutOmit(v any) any {
	if !x.hasOmit(v) {
		return v
	}
	switch v := v.(type) {
	case []any:
		var out []any
		for _, e := range v {
			if e != x.e.omit {
				out = append(out, x.withoutOmit(e))
			}
		}
		return out
	case *value.Dict:
		out := value.NewDict()
		for k, e := range v.All() {
			if s, ok := e.(string); !ok || s != x.e.omit {
				out.Set(k, x.withoutOmit(e))
			}
		}
		return out
	}
	return v
}

func (x *execution) hasOmit(v any) bool {
	switch v := v.(type) {
	case string:
		return v == x.e.omit
	case []any:
		for _, e := range v {
			if x.hasOmit(e) {
				return true
			}
		}
	case *value.Dict:
		for _, e := range v.All() {
			if x.hasOmit(e) {
				return true
			}
		}
	}
	return false
}

// delegate is the host that the task is delegated to, or "".
func (x *execution) delegate(v *vars.View) (string, error) {
	val, set, err := x.attr(v, project.DelegateTo)
	if err != nil || !set {
		return "", err
	}
	return value.Str(val), nil
}

// connect gives the call its connector: become, environment and check mode applied.
func (x *execution) connect(ctx context.Context, v *vars.View, c *module.Call, delegate string) error {
	host := x.w.name
	reached := v
	if delegate != "" {
		host = delegate
		reached = x.e.seenFrom(v, delegate, x.t.Static).Sharing(v)
	}
	s := x.e.settings(reached, &x.t.Attrs, v)
	target := x.e.target(host, s)
	become, wanted := x.e.become(s)
	env, err := x.environment(ctx, v)
	if s.err != nil {
		return s.err
	}
	if err != nil {
		return err
	}
	pool, err := x.e.connection(ctx, target)
	if err != nil {
		return err
	}
	var conn connector.Connector = pool
	c.Reset = func(ctx context.Context) error {
		x.e.drop(target)
		return x.connect(ctx, v, c, delegate)
	}
	if wanted {
		conn = pool.become(become)
	}
	conn = connector.Env(conn, env)
	if c.Check {
		conn = connector.ReadOnly(conn)
	}
	c.Conn = conn
	return nil
}

// environment merges the environment keywords.
func (x *execution) environment(ctx context.Context, v *vars.View) (map[string]string, error) {
	var out map[string]string
	for _, d := range x.t.Attrs.Environment {
		val, err := d.Value(ctx, v)
		if err != nil {
			return nil, fmt.Errorf("environment: %w", err)
		}
		if s, ok := val.(string); ok && (s == "" || s == x.e.omit) || val == nil {
			continue
		}
		env, ok := x.withoutOmit(val).(*value.Dict)
		if !ok {
			return nil, fmt.Errorf("environment must be a mapping, not a %s", value.TypeName(val))
		}
		for k, e := range env.All() {
			if out == nil {
				out = map[string]string{}
			}
			out[value.Str(k)] = value.Str(e)
		}
	}
	return out, nil
}

func (x *execution) tell(ev event.Event) { x.e.live <- message{event: ev} }

func (x *execution) output(secret bool, line string, stderr bool) {
	if !secret {
		x.tell(event.Output{Task: x.ev, Host: x.w.name, Line: line, Stderr: stderr})
	}
}

func (x *execution) progress(secret bool, what string, done, total int64) {
	if !secret {
		x.tell(event.Progress{Task: x.ev, Host: x.w.name, What: what, Done: done, Total: total})
	}
}

// notifications works out the names of the handlers to notify.
func (x *execution) notifications(v *vars.View, o *itemOutcome) {
	for _, d := range x.t.Attrs.Notify {
		val, err := d.Value(v.Context(), v)
		if err != nil {
			o.fail(undefinedOption(err).Error())
			return
		}
		list, ok := val.([]any)
		if !ok {
			list = []any{val}
		}
		for _, n := range list {
			if n != x.e.omit && n != nil {
				o.notify = append(o.notify, value.Str(n))
			}
		}
	}
}

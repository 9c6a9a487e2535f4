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
	value     any // the item
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
	o.noLog = x.flag(v, project.NoLog)
	if skipped := x.conditions(ctx, v, o); skipped {
		return o
	}
	if x.t.Include != nil {
		x.requestInclude(ctx, v, o)
		return o
	}
	x.attempts(ctx, v, o)
	if o.status == event.Failed || o.status == event.Unreachable {
		o.ignored = x.ignored(v, o)
	}
	if o.status == event.Changed {
		x.notifications(v, o)
	}
	return o
}

func (x *execution) ignored(v *vars.View, o *itemOutcome) bool {
	if o.status == event.Unreachable {
		return x.flag(v, project.IgnoreUnreachable)
	}
	return x.flag(v, project.IgnoreErrors)
}

// flag evaluates a bool keyword; one that cannot be evaluated is false here and
// reported where the task runs.
func (x *execution) flag(v *vars.View, a project.Attr) bool {
	d := x.t.Attrs.Value[a]
	if d == nil {
		return false
	}
	val, err := d.Value(v.Context(), v)
	return err == nil && truth(val)
}

// conditions evaluates when; it reports whether the task is not to run, with
// the reason in o.
func (x *execution) conditions(ctx context.Context, v *vars.View, o *itemOutcome) bool {
	for _, c := range x.t.Attrs.When {
		holds, err := c.Holds(ctx, v)
		if err != nil {
			o.fail(fmt.Sprintf("The conditional check '%s' failed. The error was: %s", c.Src, reason(err)))
			o.ignored = x.flag(v, project.IgnoreErrors)
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

// reason is an error without the position that the diagnostic repeats.
func reason(err error) string { return err.Error() }

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
		if retries < 0 || ctx.Err() != nil || o.status == event.Unreachable {
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
	if d := x.t.Retries; d != nil {
		val, err := d.Value(v.Context(), v)
		if err != nil {
			return 0, 0, err
		}
		if n, err = strconv.Atoi(strings.TrimSpace(value.Str(val))); err != nil {
			return 0, 0, fmt.Errorf("retries must be a whole number, not %s", value.Repr(val))
		}
	}
	if d := x.t.Delay; d != nil {
		val, err := d.Value(v.Context(), v)
		if err != nil {
			return 0, 0, err
		}
		if delay, err = seconds(val); err != nil {
			return 0, 0, fmt.Errorf("delay: %w", err)
		}
	}
	return max(0, n), delay, nil
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
	*o = itemOutcome{item: o.item, value: o.value, startedAt: o.startedAt, noLog: o.noLog}
	res, err := x.call(run, v, o)
	switch {
	case ctx.Err() != nil:
		o.fail("interrupted")
		return
	case limit > 0 && errors.Is(run.Err(), context.DeadlineExceeded) && err != nil:
		o.fail(fmt.Sprintf("The %s action failed to execute in the expected time frame (%v) and was terminated", x.t.Action, limit.Seconds()))
		o.result.Set("timedout", value.NewDict("period", int(limit.Seconds()), "frame", x.t.At.String()))
	default:
		x.take(o, res, err)
	}
	if o.status != event.Skipped && o.status != event.Unreachable {
		x.judge(ctx, v, o)
	}
}

func (x *execution) timeout(v *vars.View) (time.Duration, error) {
	d := x.t.Attrs.Value[project.Timeout]
	if d == nil {
		return 0, nil
	}
	val, err := d.Value(v.Context(), v)
	if err != nil {
		return 0, err
	}
	return seconds(val)
}

// call prepares the module's surroundings and runs it.
func (x *execution) call(ctx context.Context, v *vars.View, o *itemOutcome) (module.Result, error) {
	spec := x.t.Spec
	args, err := x.arguments(ctx, v)
	if err != nil {
		return module.Result{}, undefinedOption(err)
	}
	check, diff := x.modes(v)
	if check && spec.Check == module.Skips {
		msg := spec.CheckSkipMsg
		if msg == "" {
			msg = "remote module (" + spec.Name + ") does not support check mode"
		}
		return module.Result{Skipped: true, Msg: msg}, nil
	}
	c := &module.Call{
		Host: x.w.name, Check: check, Diff: diff, Args: args, Raw: args, At: x.t.At, Now: x.e.Now,
		Scope: v, Templates: x.e.Templates, Files: x.e.Tree, WorkDir: x.e.WorkDir, Ask: x.e.Ask,
		Find:     func(kind, name string) (string, error) { return find(x.e.Tree, x.t, kind, name) },
		Output:   func(line string, stderr bool) { x.output(o, line, stderr) },
		Progress: x.progress,
	}
	runner, err := spec.Decode(args)
	if err != nil {
		var problems schema.Errors
		if errors.As(err, &problems) {
			return module.Result{}, errors.New(schema.Explain(spec.Name, runner, problems))
		}
		return module.Result{}, err
	}
	if spec.Where == module.OnHost {
		if err := x.connect(ctx, v, c, o); err != nil {
			return module.Result{}, err
		}
	} else if o.delegate, err = x.delegate(v); err != nil {
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
func (x *execution) modes(v *vars.View) (check, diff bool) {
	check, diff = x.e.Check, x.e.Diff
	if x.t.Attrs.Value[project.CheckMode] != nil {
		check = x.flag(v, project.CheckMode)
	}
	if x.t.Attrs.Value[project.Diff] != nil {
		diff = x.flag(v, project.Diff)
	}
	return check, diff
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
	d := x.t.Attrs.Value[project.DelegateTo]
	if d == nil {
		return "", nil
	}
	val, err := d.Value(v.Context(), v)
	if err != nil {
		return "", undefinedOption(err)
	}
	name := value.Str(val)
	if name == x.e.omit {
		return "", nil
	}
	return name, nil
}

// connect gives the call its connector: become, environment and check mode applied.
func (x *execution) connect(ctx context.Context, v *vars.View, c *module.Call, o *itemOutcome) error {
	host := x.w.name
	delegate, err := x.delegate(v)
	if err != nil {
		return err
	}
	reached := v
	if delegate != "" {
		o.delegate, host = delegate, delegate
		reached = x.e.other(v, delegate)
		if x.flag(v, project.DelegateFacts) {
			o.factsTo = delegate
		}
	}
	s := newSettings(reached, &x.t.Attrs, v)
	target := x.e.target(host, s)
	become, wanted := x.e.become(s)
	env, err := x.environment(ctx, v)
	if s.err != nil {
		return s.err
	}
	if err != nil {
		return err
	}
	conn, err := x.e.connection(ctx, target)
	if err != nil {
		return err
	}
	c.Reset = func(context.Context) error { x.e.drop(target); return nil }
	if wanted {
		conn = connector.Become(conn, become)
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
			return nil, fmt.Errorf("environment: %w", undefinedOption(err))
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

func (x *execution) output(o *itemOutcome, line string, stderr bool) {
	if o.noLog {
		return
	}
	x.tell(event.Output{Task: x.ev, Host: x.w.name, Line: line, Stderr: stderr})
}

func (x *execution) progress(what string, done, total int64) {
	x.tell(event.Progress{Task: x.ev, Host: x.w.name, What: what, Done: done, Total: total})
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
			o.notify = append(o.notify, value.Str(n))
		}
	}
}

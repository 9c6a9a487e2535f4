package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"kubekey/pkg/connector"
	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/schema"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// prepare creates the call of the module. Its errors fail the task before the module runs, and changed_when and
// failed_when do not apply to them.
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
		Host: x.w.name, Target: x.w.name, Check: check, Diff: diff, Args: args, Raw: args, At: x.t.At, Now: x.e.Now,
		Scope: v, Templates: x.e.Templates, Files: x.e.Tree, WorkDir: x.e.WorkDir, Ask: x.e.Ask, Share: x.e.share,
		Jobs:     x.e.jobs,
		Find:     func(kind, name string) (string, error) { return x.t.Find(x.e.Tree, kind, name) },
		Outputs:  x.outputs(o.noLog),
		Output:   func(line string, stderr bool) { x.output(o.noLog, line, stderr) },
		Progress: x.progress(o.noLog),
	}
	if o.delegate != "" {
		c.Target = o.delegate
	}
	if x.skipsCheck(c) {
		return c, nil
	}
	if _, refused := x.runner(c); refused != nil {
		return c, nil // has no connection: runModule fails
	}
	switch x.t.Spec.Where {
	case module.OnHost:
		err = x.connect(ctx, v, c, o.delegate)
	case module.Once:
		c.Connect = x.others(v, c.Check)
	}
	return c, err
}

// skipsCheck reports whether the module is skipped in check mode.
func (x *execution) skipsCheck(c *module.Call) bool { return c.Check && x.t.Spec.Check == module.Skips }

// runModule runs the module, in the background if the task is async.
func (x *execution) runModule(ctx context.Context, v *vars.View, c *module.Call) (module.Result, error) {
	a, err := x.async(v)
	if err != nil {
		return module.Result{}, undefinedOption(err)
	}
	if a.limit > 0 {
		return x.background(ctx, v, c, a)
	}
	return x.foreground(ctx, c)
}

func (x *execution) foreground(ctx context.Context, c *module.Call) (module.Result, error) {
	spec := x.t.Spec
	runner, err := x.runner(c)
	if err != nil {
		return module.Result{}, err
	}
	if x.skipsCheck(c) {
		msg := spec.CheckSkipMsg
		if msg == "" {
			msg = "remote module (" + spec.Name + ") does not support check mode"
		}
		return module.Result{Skipped: true, Msg: msg}, nil
	}
	return x.e.Perform(ctx, x.t, runner, c)
}

// runner returns the module with its arguments.
func (x *execution) runner(c *module.Call) (module.Runner, error) {
	runner, err := x.t.Spec.Decode(c.Args, x.e.Redact)
	var problems schema.Errors
	if errors.As(err, &problems) {
		return nil, errors.New(schema.Explain(x.t.Spec.Name, runner, problems))
	}
	return runner, err
}

func undefinedOption(err error) error {
	var u *value.Undefined
	if errors.As(err, &u) {
		return fmt.Errorf("The task includes an option with an undefined variable. The error was: %w",
			err) //nolint:staticcheck // users search for this text
	}
	return err
}

// modes reports whether check mode and diff mode apply to the task.
func (x *execution) modes(v *vars.View) (check, diff bool, err error) {
	check, diff = x.e.Check, x.e.Diff
	for _, m := range []struct {
		attr project.Attr
		on   *bool
	}{{project.CheckMode, &check}, {project.Diff, &diff}} {
		val, set, err := x.typed(v, m.attr)
		if err != nil {
			return false, false, err
		}
		if set {
			*m.on = val.(bool)
		}
	}
	return check, diff, nil
}

// arguments evaluates the task's arguments. They override module_defaults.
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
			if text, ok := name.(string); ok && (x.t.Spec.Is(text) || x.t.Spec.InGroup(text)) {
				args.Merge(own)
				x.keepRaw(args, d, text)
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

// keepRaw restores, unevaluated, the arguments from module_defaults that the module evaluates itself.
func (x *execution) keepRaw(args *value.Dict, defaults *template.Data, name string) {
	own, ok := defaults.Member(name)
	if !ok {
		return
	}
	for _, raw := range x.t.Spec.RawArgs {
		if arg, ok := own.Member(raw); ok {
			args.Set(raw, module.AsWritten(arg.Raw()))
		}
	}
}

// withoutOmit removes the values that equal the variable omit, at any depth.
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

// delegate returns the host that the task is delegated to, or "".
func (x *execution) delegate(v *vars.View) (string, error) {
	val, set, err := x.attr(v, project.DelegateTo)
	if err != nil || !set {
		return "", err
	}
	return value.Str(val), nil
}

// connect sets the connector of the call, with become, environment and check mode applied.
func (x *execution) connect(ctx context.Context, v *vars.View, c *module.Call, delegate string) error {
	r, err := x.route(ctx, v, delegate)
	if err != nil {
		return err
	}
	if c.Conn, err = x.open(ctx, r, c.Check); err != nil {
		return err
	}
	c.Reset = func(ctx context.Context) error {
		x.e.drop(r.target)
		return x.connect(ctx, v, c, delegate)
	}
	return nil
}

// others returns how a module that works for all hosts at once connects to each of them.
func (x *execution) others(v *vars.View, check bool) func(context.Context, string) (connector.Connector, error) {
	var mu sync.Mutex // evaluates variables, one host at a time
	return func(ctx context.Context, host string) (connector.Connector, error) {
		mu.Lock()
		r, err := x.route(ctx, v, host)
		mu.Unlock()
		if err != nil {
			return nil, err
		}
		return x.open(ctx, r, check)
	}
}

// route is how a task reaches a host.
type route struct {
	target Target
	become connector.BecomeOptions
	other  bool // become applies
	env    map[string]string
}

// route returns how the task reaches its host or, if delegate is not empty, another one.
func (x *execution) route(ctx context.Context, v *vars.View, delegate string) (route, error) {
	host := x.w.name
	reached := v
	if delegate != "" {
		host = delegate
		reached = x.e.reachedFrom(v, delegate, x.t)
	}
	s := x.e.settings(reached, &x.t.Attrs, v)
	r := route{target: x.e.target(host, s)}
	r.become, r.other = x.e.become(s)
	env, err := x.environment(ctx, v)
	if err == nil {
		r.env, err = x.jobFolder(v, env)
	}
	if s.err != nil {
		return r, s.err
	}
	return r, err
}

func (x *execution) open(ctx context.Context, r route, check bool) (connector.Connector, error) {
	pool, err := x.e.connection(ctx, r.target)
	if err != nil {
		return nil, err
	}
	var conn connector.Connector = pool
	if r.other {
		conn = pool.become(r.become)
	}
	conn = connector.Env(conn, r.env)
	if check {
		conn = connector.ReadOnly(conn)
	}
	return conn, nil
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
		x.e.hideNamed("", env)
		for k, e := range env.All() {
			if out == nil {
				out = map[string]string{}
			}
			out[value.Str(k)] = value.Str(e)
		}
	}
	return out, nil
}

// asyncDir is the variable of Ansible that specifies where hosts store their jobs.
const asyncDir = "ansible_async_dir"

// jobFolder adds the host's directory for async jobs to the environment, if a variable specifies it.
func (x *execution) jobFolder(v *vars.View, env map[string]string) (map[string]string, error) {
	if x.t.Async == nil && (x.t.Spec == nil || !x.t.Spec.Is("async_status")) {
		return env, nil
	}
	dir, ok, err := v.Lookup(asyncDir)
	if err != nil || !ok {
		return env, err
	}
	const name = "ANSIBLE_ASYNC_DIR"
	if _, given := env[name]; given {
		return env, nil
	}
	out := map[string]string{name: value.Str(dir)}
	maps.Copy(out, env)
	return out, nil
}

// outputs returns the limit of command output in the result. The items of a loop share it, but each can use a
// guaranteed part.
func (x *execution) outputs(secret bool) *module.Outputs {
	most := cmp.Or(x.e.KeepOutput, module.DefaultKeep)
	b := &module.Outputs{Keep: max(most-int(x.held.Load()), most/16), Secrets: x.e.Redact, Why: x.e.NoOverflow}
	switch open := x.e.Overflow; {
	case secret:
		b.Why = "nothing that no_log hides is written to disk"
	case open != nil:
		b.Open = func(stream string) module.Overflow { return open(x.ev, x.w.name, stream) }
	case b.Why == "":
		b.Why = "the run has no journal"
	}
	return b
}

// hold counts the bytes of output in the result of an item.
func (x *execution) hold(o *itemOutcome) {
	if o.result != nil {
		x.held.Add(int64(len(o.result.String("stdout")) + len(o.result.String("stderr"))))
	}
}

func (x *execution) tell(ev event.Event) { x.e.live <- message{event: ev} }

func (x *execution) output(secret bool, line string, stderr bool) {
	if !secret {
		x.tell(event.Output{Task: x.ev, Host: x.w.name, Line: line, Stderr: stderr})
	}
}

// notifications evaluates the names of the handlers to notify.
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

package flow

import (
	"context"
	"fmt"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

type assert struct {
	That       []any `kk:"that,required" doc:"conditions that must all be true"`
	FailMsg    any   `kk:"fail_msg,alias=msg" doc:"message if a condition is false"`
	SuccessMsg any   `kk:"success_msg" doc:"message if all conditions are true"`
	Quiet      bool  `kk:"quiet" default:"no" doc:"do not print the result on success"`
}

// Run implements module.Runner.
func (m *assert) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	for _, cond := range m.That {
		ok, err := holds(ctx, c, cond)
		if err != nil {
			//nolint:staticcheck // the text users know
			return module.Result{}, fmt.Errorf("The conditional check '%s' failed. The error was: %w",
				value.Str(asText(cond)), err)
		}
		if !ok {
			return module.Result{Failed: true, Verbose: true, Msg: text(m.FailMsg, "Assertion failed"),
				Data: value.NewDict("assertion", asText(cond), "evaluated_to", false)}, nil
		}
	}
	return module.Result{Verbose: !m.Quiet, Msg: text(m.SuccessMsg, "All assertions passed")}, nil
}

// asText is a condition in the form of results.
func asText(cond any) any {
	if written, ok := cond.(module.Written); ok {
		return string(written)
	}
	return cond
}

func text(v any, fallback string) string {
	if v == nil {
		return fallback
	}
	return value.Str(v)
}

// holds evaluates one condition: an expression of the playbook, a bool, or a list of these.
func holds(ctx context.Context, c *module.Call, cond any) (bool, error) {
	switch cond := cond.(type) {
	case []any:
		for _, each := range cond {
			if ok, err := holds(ctx, c, each); err != nil || !ok {
				return false, err
			}
		}
		return true, nil
	case module.Written:
		if strings.TrimSpace(string(cond)) == "" {
			return true, nil
		}
		condition, err := c.Templates.Condition(string(cond), c.At)
		if err != nil {
			return false, err
		}
		return condition.AllHold(ctx, c.Scope)
	}
	return c.Templates.DataHolds(cond, c.At)
}

type fail struct {
	Msg any `kk:"msg" default:"Failed as requested from task" doc:"message to fail with"`
}

// Run implements module.Runner.
func (m *fail) Run(_ context.Context, c *module.Call) (module.Result, error) {
	if isNull(c, "msg") {
		return module.Result{Failed: true, Data: value.NewDict("msg", nil)}, nil
	}
	return module.Result{Failed: true, Msg: value.Str(m.Msg)}, nil
}

type debug struct {
	Msg       any `kk:"msg" doc:"message to print. Default: Hello world!"`
	Var       any `kk:"var" doc:"expression to print the value of, without {{ }}"`
	Verbosity int `kk:"verbosity" default:"0" doc:"print only with at least this many -v"`
}

// Rules implements schema.Ruled.
func (*debug) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("msg", "var").Says("'msg' and 'var' are incompatible options"),
	}
}

// Run implements module.Runner.
func (m *debug) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if verbosity(c) < m.Verbosity {
		return module.Result{Skipped: true, Data: value.NewDict("skipped_reason", "Verbosity threshold not met.")}, nil
	}
	if m.Var != nil {
		return m.show(ctx, c)
	}
	var msg any = "Hello world!"
	if m.Msg != nil || isNull(c, "msg") {
		msg = m.Msg
	}
	return module.Result{Verbose: true, Data: value.NewDict("msg", msg)}, nil
}

// isNull marks an argument that was given as null: debug prints it like any value,
// while elsewhere null leaves an argument at its default.
func isNull(c *module.Call, name string) bool {
	v, given := c.Args.Get(name)
	return given && v == nil
}

func (m *debug) show(ctx context.Context, c *module.Call) (module.Result, error) {
	src, ok := m.Var.(module.Written)
	if !ok { // an evaluated value, which is data
		return module.Result{Verbose: true, Data: value.NewDict(value.Str(m.Var), m.Var)}, nil
	}
	v, err := evaluate(ctx, c, string(src))
	if value.IsUndefined(v) {
		v = "VARIABLE IS NOT DEFINED!"
	}
	if err != nil {
		return module.Result{}, fmt.Errorf("evaluate %s: %w", src, err)
	}
	return module.Result{Verbose: true, Data: value.NewDict(string(src), v)}, nil
}

// evaluate is the value of an expression, or of a template written in its place.
func evaluate(ctx context.Context, c *module.Call, src string) (any, error) {
	if trimmed := strings.TrimSpace(src); strings.HasPrefix(trimmed, "{{") && strings.HasSuffix(trimmed, "}}") &&
		strings.Count(trimmed, "{{") == 1 {
		src = trimmed[2 : len(trimmed)-2]
	} else if strings.Contains(src, "{{") || strings.Contains(src, "{%") {
		t, err := c.Templates.String(src, c.At)
		if err != nil {
			return nil, err
		}
		return t.Value(ctx, c.Scope)
	}
	x, err := c.Templates.Env().Compile(src, c.At, expr.Escaped)
	if err != nil {
		return nil, err
	}
	v, err := x.EvalLoose(ctx, c.Scope)
	if err != nil {
		return nil, err
	}
	return value.Force(v)
}

func verbosity(c *module.Call) int {
	v, _, err := c.Scope.Lookup("ansible_verbosity")
	if err != nil {
		return 0
	}
	n, _ := v.(int)
	return n
}

package expr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Plugin is a filter or a test that a project defines as an expression. The expression sees its parameters and
// `value`, the value before the bar or before `is`. It sees no variables, so that it has the same meaning
// everywhere.
type Plugin struct {
	Name   string
	Test   bool       // x is NAME; otherwise x | NAME
	At     source.Pos // of Name
	Params []Param
	Source string
	From   source.Pos // of Source
}

// Param is a parameter of a Plugin. A parameter that is not required has a default.
type Param struct {
	Name     string
	Default  any
	Required bool
}

// maxPlugins limits the depth of plugins that call each other.
const maxPlugins = 100

// With returns an Env with these filters and tests added. They can use each other. A name that already exists, and
// an expression that does not compile or that reads a variable, are errors with positions. The Env contains the
// others.
func (e *Env) With(plugins []Plugin) (*Env, source.Diagnostics) {
	if len(plugins) == 0 {
		return e, nil
	}
	out := *e
	out.filters, out.tests = maps.Clone(e.filters), maps.Clone(e.tests)
	var ds source.Diagnostics
	var made []*plugin
	for i := range plugins {
		p := &plugin{Plugin: plugins[i], sig: plugins[i].signature()}
		if d := out.addPlugin(p); d != nil {
			ds.Add(d)
			continue
		}
		made = append(made, p)
	}
	for _, p := range made {
		ds = append(ds, p.compile(&out)...)
	}
	return &out, ds
}

func (e *Env) addPlugin(p *plugin) *source.Diagnostic {
	_, taken := e.filters[p.Name]
	if p.Test {
		_, taken = e.tests[p.Name]
	}
	if taken {
		return source.Errorf(p.At, "there is a %s named '%s' already", p.kind(), p.Name).WithHelp("choose another name")
	}
	if p.Test {
		e.tests[p.Name] = p.test
	} else {
		e.filters[p.Name] = p.filter
	}
	return nil
}

// plugin is a Plugin in an Env.
type plugin struct {
	Plugin
	sig  *signature
	expr *Expr // nil when it did not compile
}

func (p *Plugin) kind() string {
	if p.Test {
		return "test"
	}
	return "filter"
}

func (p *Plugin) signature() *signature {
	s := &signature{name: p.Name}
	for i, param := range p.Params {
		s.params = append(s.params, param.Name)
		if param.Required {
			s.required = i + 1
		}
	}
	return s
}

func (p *plugin) compile(e *Env) source.Diagnostics {
	x, err := e.Compile(p.Source, p.From, Escaped)
	if err != nil {
		var d *source.Diagnostic
		if !errors.As(err, &d) {
			d = source.Errorf(p.From, "%s", err)
		}
		return source.Diagnostics{d}
	}
	sees := append(slices.Clone(p.sig.params), "value")
	for _, name := range x.Names() {
		if _, global := e.functions[name]; global || slices.Contains(sees, name) {
			continue
		}
		d := source.Errorf(p.From, "the %s '%s' reads '%s', which is none of its parameters", p.kind(), p.Name, name)
		if d.Help = source.DidYouMean(name, sees); d.Help == "" {
			d.Help = "it sees " + strings.Join(sees, ", ") + "; pass what else it needs as a parameter"
		}
		return source.Diagnostics{d}
	}
	p.expr = x
	return nil
}

func (p *plugin) filter(c *Call, in any, a Args) (any, error) {
	x, ctx, scope, err := p.call(c, in, a)
	if err != nil {
		return nil, err
	}
	return x.Eval(ctx, scope)
}

func (p *plugin) test(c *Call, in any, a Args) (bool, error) {
	x, ctx, scope, err := p.call(c, in, a)
	if err != nil {
		return false, err
	}
	return x.Bool(ctx, scope)
}

type pluginDepth struct{}

// call binds the arguments of one call.
func (p *plugin) call(c *Call, in any, a Args) (*Expr, context.Context, Names, error) {
	if p.expr == nil {
		return nil, nil, nil, fmt.Errorf("the %s '%s' has an error of its own", p.kind(), p.Name)
	}
	ctx := c.Context
	if ctx == nil {
		ctx = context.Background()
	}
	depth, _ := ctx.Value(pluginDepth{}).(int)
	if depth == maxPlugins {
		return nil, nil, nil, fmt.Errorf("the %s '%s' calls itself without end", p.kind(), p.Name)
	}
	b, err := p.sig.bind(a)
	if err != nil {
		return nil, nil, nil, err
	}
	scope := Names{"value": in}
	for i, v := range b.values {
		if v == (notGiven{}) {
			v = value.Clone(p.Params[i].Default)
		}
		scope[p.Params[i].Name] = v
	}
	return p.expr, context.WithValue(ctx, pluginDepth{}, depth+1), scope, nil
}

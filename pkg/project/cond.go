package project

import (
	"context"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/expr"
	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// Cond is one condition.
type Cond struct {
	Src string
	At  source.Pos

	expr   *expr.Expr
	lit    *bool
	tmpl   *template.Data // of a condition written with {{ }}
	engine *template.Engine
}

func (l *Linker) conds(values []playbook.Value) (out []*Cond, ds source.Diagnostics) {
	for _, v := range values {
		c, err := l.cond(v)
		if err != nil {
			ds.Add(diagnostic(err, v.TextAt()))
			continue
		}
		out = append(out, c)
	}
	return out, ds
}

func (l *Linker) cond(v playbook.Value) (*Cond, error) {
	c := &Cond{Src: strings.TrimSpace(v.Text()), At: v.At(), engine: l.Engine}
	// Unquoted yes, no, true, 1 are values; quoted they are expressions.
	if lit, ok := literal(v); ok {
		c.lit = &lit
		return c, nil
	}
	var err error
	if strings.Contains(c.Src, "{{") || strings.Contains(c.Src, "{%") {
		c.tmpl, err = l.Engine.Data(c.Src, v.TextAt())
		return c, err
	}
	c.expr, err = l.Engine.Env().Compile(v.Text(), v.TextAt(), expr.Escaped)
	return c, err
}

func literal(v playbook.Value) (truth, ok bool) {
	if v.Kind() != yaml.ScalarNode {
		return false, false
	}
	n := v.Scalar()
	raw, err := value.Scalar(n)
	if err != nil {
		return false, false
	}
	switch raw.(type) {
	case bool, int, float64:
		return value.Truth(raw), true
	}
	return false, false
}

// Holds evaluates the condition.
func (c *Cond) Holds(ctx context.Context, s expr.Scope) (bool, error) {
	switch {
	case c.lit != nil:
		return *c.lit, nil
	case c.expr != nil:
		return c.expr.Bool(ctx, s)
	}
	v, err := c.tmpl.Value(ctx, s)
	if err != nil {
		return false, err
	}
	text, ok := v.(string)
	if !ok {
		return value.Truth(v), nil
	}
	if strings.TrimSpace(text) == "" {
		return false, nil
	}
	// A condition with {{ }} yields the text of another condition.
	e, err := c.engine.Env().Compile(text, c.At, expr.Escaped)
	if err != nil {
		return false, err
	}
	return e.Bool(ctx, s)
}

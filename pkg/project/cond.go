package project

import (
	"context"
	"strings"

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
	if v.Node.Style == 0 {
		switch v.Node.ShortTag() {
		case "!!bool", "!!int", "!!float":
			data, ds := l.Engine.Node(v.File, v.Node)
			raw, _ := data.Static()
			truth := value.Truth(raw)
			c.lit = &truth
			return c, ds.Err()
		}
	}
	var err error
	if strings.Contains(c.Src, "{{") || strings.Contains(c.Src, "{%") {
		c.tmpl, err = l.Engine.Data(c.Src, v.TextAt())
		return c, err
	}
	c.expr, err = l.Engine.Env().Compile(v.Text(), v.TextAt(), expr.Escaped)
	return c, err
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

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

	lit  *bool
	cond *template.Condition
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
	c := &Cond{Src: strings.TrimSpace(v.Text()), At: v.At()}
	// Unquoted yes, no, true and 1 are values; quoted, they are expressions.
	if lit, ok := literal(v); ok {
		c.lit = &lit
		return c, nil
	}
	var err error
	c.cond, err = l.Engine.Condition(v.Text(), v.TextAt())
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
	if c.lit != nil {
		return *c.lit, nil
	}
	return c.cond.Holds(ctx, s)
}

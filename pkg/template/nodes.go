package template

import (
	"errors"
	"fmt"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

type textNode struct{ text string }

func (n *textNode) run(f *frame) error {
	if f.muted {
		return nil
	}
	return f.text(n.text)
}

type outputNode struct {
	expr *expr.Expr
	at   source.Pos
}

func (n *outputNode) run(f *frame) error {
	if f.muted {
		return nil
	}
	if text, ok := f.authored(n.expr); ok {
		return f.text(text)
	}
	v, err := n.expr.Eval(f.ctx, f.scope)
	if err != nil {
		return f.fail(err, n.at)
	}
	if err := f.data(v); err != nil {
		return f.fail(err, n.at)
	}
	return nil
}

type doNode struct {
	expr *expr.Expr
	at   source.Pos
}

func (n *doNode) run(f *frame) error {
	if _, err := n.expr.Eval(f.ctx, f.scope); err != nil {
		return f.fail(err, n.at)
	}
	return nil
}

type jumpNode struct{ to *control }

func (n *jumpNode) run(*frame) error { return n.to }

type branch struct {
	cond *expr.Expr
	at   source.Pos
	body body
}

type ifNode struct {
	branches []branch
	orElse   body
}

func (n *ifNode) run(f *frame) error {
	for i := range n.branches {
		b := &n.branches[i]
		ok, err := b.cond.Bool(f.ctx, f.scope)
		if err != nil {
			return f.fail(err, b.at)
		}
		if ok {
			return b.body.run(f)
		}
	}
	return n.orElse.run(f)
}

// target is the target of an assignment: a name, an attribute of a namespace, or parts.
type target struct {
	name  string
	attr  string
	parts []target
}

func (t *target) assign(s *scope, v any) error {
	if t.parts != nil {
		return t.unpack(s, v)
	}
	if t.attr == "" {
		s.set(t.name, v)
		return nil
	}
	ns, ok, err := s.Lookup(t.name)
	if err != nil {
		return err
	}
	if !ok {
		return &value.Undefined{Name: t.name, Hint: "write {% set " + t.name + " = namespace() %} first"}
	}
	setter, ok := ns.(expr.AttrSetter)
	if !ok {
		return fmt.Errorf("cannot set '%s.%s': '%s' is no namespace", t.name, t.attr, t.name)
	}
	setter.SetAttr(t.attr, v)
	return nil
}

func (t *target) unpack(s *scope, v any) error {
	v, err := value.Force(v)
	if err != nil {
		return err
	}
	items, err := expr.Iterate(v)
	if err != nil {
		return err
	}
	if len(items) < len(t.parts) {
		return fmt.Errorf("not enough values to unpack (expected %d, got %d)", len(t.parts), len(items))
	}
	if len(items) > len(t.parts) {
		return fmt.Errorf("too many values to unpack (expected %d, got %d)", len(t.parts), len(items))
	}
	for i := range t.parts {
		if err := t.parts[i].assign(s, items[i]); err != nil {
			return err
		}
	}
	return nil
}

type setNode struct {
	target target
	value  *expr.Expr
	at     source.Pos
}

func (n *setNode) run(f *frame) error {
	v, err := n.value.EvalLoose(f.ctx, f.scope)
	if err == nil {
		err = n.target.assign(f.scope, v)
	}
	if err != nil {
		return f.fail(err, n.at)
	}
	return nil
}

// filtered applies a filter chain to a text; nil means no filters.
func (f *frame) filtered(chain *expr.Expr, text string) (any, error) {
	if chain == nil {
		return text, nil
	}
	s := &scope{outer: f.scope}
	s.set(filterName, text)
	return chain.Eval(f.ctx, s)
}

type setBlockNode struct {
	target  target
	filters *expr.Expr
	body    body
	at      source.Pos
}

func (n *setBlockNode) run(f *frame) error {
	v, err := f.captureBody(n.body, n.filters)
	if err == nil {
		err = n.target.assign(f.scope, v)
	}
	if err != nil {
		return f.fail(err, n.at)
	}
	return nil
}

// captureBody runs a block in its own scope and returns its filtered text.
func (f *frame) captureBody(b body, chain *expr.Expr) (any, error) {
	text, err := f.capture(func() error {
		return f.inScope(&scope{outer: f.scope}, b.run)
	})
	if err != nil {
		return nil, err
	}
	return f.filtered(chain, text)
}

type filterNode struct {
	chain *expr.Expr
	at    source.Pos
	body  body
}

func (n *filterNode) run(f *frame) error {
	if f.muted {
		return nil
	}
	v, err := f.captureBody(n.body, n.chain)
	if err == nil {
		err = f.data(v)
	}
	if err != nil {
		return f.fail(err, n.at)
	}
	return nil
}

type withNode struct {
	targets []target
	values  []*expr.Expr
	at      source.Pos
	body    body
}

func (n *withNode) run(f *frame) error {
	inner := &scope{outer: f.scope}
	for i, x := range n.values {
		v, err := x.EvalLoose(f.ctx, f.scope)
		if err == nil {
			err = n.targets[i].assign(inner, v)
		}
		if err != nil {
			return f.fail(err, n.at)
		}
	}
	return f.inScope(inner, n.body.run)
}

// jump returns "break" or "continue" for a control error, "" for other errors.
func jump(err error) string {
	var c *control
	if errors.As(err, &c) {
		return c.name
	}
	return ""
}

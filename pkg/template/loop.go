package template

import (
	"errors"
	"fmt"
	"slices"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

type forNode struct {
	target    target
	iter      *expr.Expr
	cond      *expr.Expr // nil for none
	recursive bool
	at        source.Pos
	body      body
	orElse    body
}

func (n *forNode) run(f *frame) error {
	v, err := n.iter.Eval(f.ctx, f.scope)
	if err != nil {
		return f.fail(err, n.at)
	}
	return n.over(f, v, 0)
}

// over runs the loop over the elements of v; level counts the recursion.
func (n *forNode) over(f *frame, v any, level int) error {
	items, err := expr.Iterate(v)
	if err == nil && n.cond != nil {
		items, err = n.pick(f, items)
	}
	if err != nil {
		return f.fail(err, n.at)
	}
	if len(items) == 0 {
		return f.inScope(&scope{outer: f.scope}, n.orElse.run)
	}
	inner := &scope{outer: f.scope}
	loop := &loopVar{node: n, frame: f, outer: f.scope, items: items, level: level}
	inner.set("loop", loop)
	f.scope = inner
	err = n.each(f, loop)
	f.scope = inner.outer
	return err
}

func (n *forNode) each(f *frame, loop *loopVar) error {
	inner := f.scope
	for i, item := range loop.items {
		if err := f.ctx.Err(); err != nil {
			return f.fail(err, n.at)
		}
		inner.clear(1)
		loop.i = i
		if err := n.target.assign(inner, item); err != nil {
			return f.fail(err, n.at)
		}
		err := n.body.run(f)
		if err == nil {
			continue
		}
		f.scope = inner // a jump can skip the cleanup of inner blocks
		switch jump(err) {
		case "break":
			return nil
		case "":
			return err
		}
	}
	return nil
}

// pick keeps the items for which the loop's `if` is true.
func (n *forNode) pick(f *frame, items []any) ([]any, error) {
	inner := &scope{outer: f.scope}
	var out []any
	for _, item := range items {
		if err := f.ctx.Err(); err != nil {
			return nil, err
		}
		inner.clear(0)
		if err := n.target.assign(inner, item); err != nil {
			return nil, err
		}
		ok, err := n.cond.Bool(f.ctx, inner)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, item)
		}
	}
	return out, nil
}

// loopVar is the variable `loop`.
type loopVar struct {
	node  *forNode
	frame *frame
	outer *scope
	items []any
	i     int
	level int
	last  []any // the last arguments of loop.changed
	seen  bool
}

// Attr implements expr.Attrs.
func (l *loopVar) Attr(name string) (any, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return l.i + 1, true
	case "index0":
		return l.i, true
	case "revindex":
		return n - l.i, true
	case "revindex0":
		return n - l.i - 1, true
	case "first":
		return l.i == 0, true
	case "last":
		return l.i == n-1, true
	case "length":
		return n, true
	case "depth":
		return l.level + 1, true
	case "depth0":
		return l.level, true
	case "previtem":
		return l.item(name, l.i-1), true
	case "nextitem":
		return l.item(name, l.i+1), true
	case "cycle":
		return expr.Func(l.cycle), true
	case "changed":
		return expr.Func(l.changed), true
	}
	return nil, false
}

// String is the loop as Jinja2 prints it.
func (l *loopVar) String() string { return fmt.Sprintf("<LoopContext %d/%d>", l.i+1, len(l.items)) }

func (l *loopVar) item(name string, i int) any {
	if i < 0 || i >= len(l.items) {
		return &value.Undefined{Name: "loop." + name, Hint: "there is none at the ends of the list"}
	}
	return l.items[i]
}

func (l *loopVar) cycle(_ *expr.Call, a expr.Args) (any, error) {
	if len(a.Positional) == 0 {
		return nil, errors.New("loop.cycle needs items to cycle through")
	}
	return a.Positional[l.i%len(a.Positional)], nil
}

func (l *loopVar) changed(_ *expr.Call, a expr.Args) (any, error) {
	same := l.seen && value.Equal(l.last, a.Positional)
	l.last, l.seen = slices.Clone(a.Positional), true
	return !same, nil
}

// Call implements expr.Callable: loop(children) runs the loop again, inside itself.
func (l *loopVar) Call(_ *expr.Call, a expr.Args) (any, error) {
	if !l.node.recursive {
		return nil, errors.New("this loop is not recursive: write {% for … recursive %}")
	}
	if len(a.Positional) != 1 {
		return nil, errors.New("loop() needs one argument: what to loop over")
	}
	f := l.frame
	if err := f.enter("recursive loop", l.node.at); err != nil {
		return nil, err
	}
	defer f.leave()
	text, err := f.capture(func() error {
		return f.inScope(l.outer, func(f *frame) error {
			return l.node.over(f, a.Positional[0], l.level+1)
		})
	})
	if err != nil {
		return nil, err
	}
	return text, nil
}

package expr

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"kubekey/pkg/value"
)

// frame is the state of one evaluation. It lives on the stack. Only a call of a filter, test or function allocates
// a Call on the heap.
type frame struct {
	expr  *Expr
	ctx   context.Context
	scope Scope
	call  *Call
}

// eval evaluates a node. The result can be a *value.Undefined or a value.Lazy. Every error is an *Error.
func (f *frame) eval(n node) (any, error) {
	switch n := n.(type) {
	case *constNode:
		return n.v, nil
	case *nameNode:
		return f.name(n)
	case *attrNode:
		return f.attr(n)
	case *indexNode:
		return f.index(n)
	case *sliceNode:
		return f.slice(n)
	case *callNode:
		return f.callNode(n)
	case *filterNode:
		return f.filter(n)
	case *testNode:
		return f.test(n)
	case *notNode:
		b, err := f.truth(n.x)
		return !b, err
	case *negNode:
		return f.sign(n)
	case *logicNode:
		return f.logic(n)
	case *mathNode:
		return f.math(n)
	case *compareNode:
		return f.compare(n)
	case *concatNode:
		return f.concat(n)
	case *condNode:
		return f.cond(n)
	case *listNode:
		return f.list(n)
	case *dictNode:
		return f.dict(n)
	}
	return nil, f.fail(n, fmt.Errorf("cannot evaluate %T", n))
}

// force is eval without a Lazy in the result.
func (f *frame) force(n node) (any, error) {
	v, err := f.eval(n)
	if err != nil {
		return nil, err
	}
	return f.forced(n, v)
}

func (f *frame) forced(n node, v any) (any, error) {
	if _, ok := v.(value.Lazy); !ok {
		return v, nil
	}
	return f.rescued(n, "", v)
}

// need is force for an operand that must be defined.
func (f *frame) need(n node) (any, error) {
	v, err := f.force(n)
	if err != nil {
		return nil, err
	}
	if u, ok := v.(*value.Undefined); ok {
		if u.Lenient {
			return "", nil
		}
		return nil, f.undefined(n, u)
	}
	return v, nil
}

// strict returns the result of a whole expression as plain data.
func (f *frame) strict(n node) (any, error) {
	v, err := f.force(n)
	if err != nil {
		return nil, err
	}
	if u, ok := v.(*value.Undefined); ok {
		if u.Lenient {
			return nil, nil
		}
		return nil, f.undefined(n, u)
	}
	if f.expr.builds {
		return v, f.nested(n, v, 0)
	}
	return f.elements(n, v)
}

// elements checks a list that the expression yields for undefined elements, which filters can pass on, for example
// map('extract', ...). Data from variables is not searched.
func (f *frame) elements(n node, v any) (any, error) {
	switch n := n.(type) {
	case *filterNode, *mathNode, *condNode, *logicNode:
		list, _ := v.([]any)
		for _, e := range list {
			if u, ok := e.(*value.Undefined); ok {
				return nil, f.undefined(n, u)
			}
		}
	}
	return v, nil
}

// truth returns the truth value of an operand, which must be defined.
func (f *frame) truth(n node) (bool, error) {
	v, err := f.eval(n)
	if err != nil {
		return false, err
	}
	if b, ok := v.(bool); ok {
		return b, nil
	}
	return f.truthOf(n, v)
}

func (f *frame) truthOf(n node, v any) (bool, error) {
	v, err := f.forced(n, v)
	if err != nil {
		return false, err
	}
	if u, ok := v.(*value.Undefined); ok && !u.Lenient {
		return false, f.undefined(n, u)
	}
	return value.Truth(v), nil
}

// fail adds the position of a node to an error, unless the error already has a position in this expression.
func (f *frame) fail(n node, err error) error {
	if e, ok := err.(*Error); ok && e.Source == f.expr.src && e.Pos.File == f.expr.at.File {
		return err
	}
	at := n.where()
	text := f.expr.src[at.pos:at.end]
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		text = text[:i]
	}
	return &Error{
		Pos:    advance(f.expr.at, f.expr.src, at.pos),
		Width:  utf8.RuneCountInString(text),
		Source: f.expr.src,
		Err:    err,
	}
}

func (f *frame) name(n *nameNode) (any, error) {
	v, ok, err := f.scope.Lookup(n.name)
	switch {
	case err != nil:
		return f.undefinedBy(n, n.name, err)
	case ok:
		return v, nil
	}
	if fn, ok := f.expr.env.functions[n.name]; ok {
		return Func(fn), nil
	}
	return &value.Undefined{Name: n.name}, nil
}

func (f *frame) attr(n *attrNode) (any, error) {
	obj, err := f.eval(n.obj)
	if err != nil {
		return nil, err
	}
	v, err := at(obj, n.key)
	if err != nil {
		return f.undefinedBy(n, "", err)
	}
	return v, nil
}

func (f *frame) index(n *indexNode) (any, error) {
	obj, err := f.eval(n.obj)
	if err != nil {
		return nil, err
	}
	key, err := f.need(n.key)
	if err != nil {
		return nil, err
	}
	v, err := at(obj, key)
	if err != nil {
		return f.undefinedBy(n, "", err)
	}
	return v, nil
}

func (f *frame) slice(n *sliceNode) (any, error) {
	obj, err := f.force(n.obj)
	if err != nil || value.IsUndefined(obj) {
		return obj, err
	}
	var bounds [3]any
	for i, b := range [3]node{n.low, n.up, n.step} {
		if b == nil {
			continue
		}
		if bounds[i], err = f.need(b); err != nil {
			return nil, err
		}
	}
	v, err := slice(obj, bounds[0], bounds[1], bounds[2])
	if err != nil {
		return nil, f.fail(n, err)
	}
	return v, nil
}

func (f *frame) cond(n *condNode) (any, error) {
	ok, err := f.truth(n.cond)
	switch {
	case err != nil:
		return nil, err
	case ok:
		return f.eval(n.then)
	case n.els == nil:
		return &value.Undefined{Name: "inline if", Lenient: true}, nil
	}
	return f.eval(n.els)
}

func (f *frame) list(n *listNode) (any, error) {
	out := make([]any, len(n.items))
	for i, item := range n.items {
		v, err := f.eval(item)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (f *frame) dict(n *dictNode) (any, error) {
	d := value.NewDict()
	for i, k := range n.keys {
		key, err := f.need(k)
		if err != nil {
			return nil, err
		}
		if !IsKey(key) {
			return nil, f.fail(k, fmt.Errorf("a '%s' cannot be the key of a dict", value.TypeName(key)))
		}
		v, err := f.eval(n.values[i])
		if err != nil {
			return nil, err
		}
		d.Set(key, v)
	}
	return d, nil
}

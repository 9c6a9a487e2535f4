package expr

import (
	"fmt"
	"slices"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// surroundings returns the Call of this evaluation. It is created on first use.
func (f *frame) surroundings() *Call {
	if f.call == nil {
		f.call = &Call{f.ctx, f.expr.env, f.scope}
	}
	return f.call
}

func (f *frame) args(list arguments) (Args, error) { return f.evalArgs(list, false) }

func (f *frame) evalArgs(list arguments, lazy bool) (Args, error) {
	var a Args
	if len(list) == 0 {
		return a, nil
	}
	a.Positional = make([]any, 0, len(list))
	for i := range list {
		v, err := f.eval(list[i].x)
		if err == nil && !lazy {
			v, err = f.forced(list[i].x, v)
		}
		if err != nil {
			return a, err
		}
		if err := f.arg(&a, &list[i], v); err != nil {
			return a, err
		}
	}
	return a, nil
}

func (f *frame) arg(a *Args, arg *argument, v any) error {
	switch {
	case arg.name != "":
		return f.named(a, arg, arg.name, v)
	case arg.spread == single:
		a.Positional = append(a.Positional, v)
	case arg.spread == spreadList:
		items, err := Iterate(v)
		if err != nil {
			return f.fail(arg.x, err)
		}
		a.Positional = append(a.Positional, items...)
	default:
		v, err := f.forced(arg.x, v)
		if err != nil {
			return err
		}
		d, ok := v.(*value.Dict)
		if !ok {
			return f.fail(arg.x, fmt.Errorf("** needs a dict, not '%s'", value.TypeName(v)))
		}
		for k, v := range d.All() {
			if err := f.named(a, arg, value.Str(k), v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *frame) named(a *Args, arg *argument, name string, v any) error {
	if a.Named == nil {
		a.Named = value.NewDict()
	}
	if a.Named.Has(name) {
		return f.fail(arg.x, fmt.Errorf("the argument '%s' is given twice", name))
	}
	a.Named.Set(name, v)
	return nil
}

func (f *frame) filter(n *filterNode) (any, error) {
	in, err := f.force(n.in)
	if err != nil {
		return nil, err
	}
	a, err := f.evalArgs(n.args, n.lazy)
	if err != nil {
		return nil, err
	}
	v, err := n.fn(f.surroundings(), in, a)
	if u, ok := in.(*value.Undefined); ok && err != nil && u.Lenient && asUndefined(err) != nil {
		v, err = n.fn(f.surroundings(), "", a)
	}
	if err != nil {
		return nil, f.calleeFailed(n, n.in, in, n.args, a, err)
	}
	return v, nil
}

// calleeFailed adds a position to the error of a filter or test. For an undefined input or argument it is the
// position of that operand.
func (f *frame) calleeFailed(n, inNode node, in any, list arguments, a Args, err error) error {
	u, ok := err.(*value.Undefined)
	if !ok {
		return f.fail(n, err)
	}
	if in == any(u) {
		return f.undefined(inNode, u)
	}
	for i := range min(len(list), len(a.Positional)) {
		if a.Positional[i] == any(u) && list[i].spread == single && list[i].name == "" {
			return f.undefined(list[i].x, u)
		}
	}
	return f.fail(n, err)
}

func (f *frame) test(n *testNode) (any, error) {
	if n.fn == nil {
		ok, err := f.defined(n.in)
		return ok == ((n.name == "defined") != n.negated), err
	}
	in, err := f.force(n.in)
	if err != nil {
		return nil, err
	}
	a, err := f.args(n.args)
	if err != nil {
		return nil, err
	}
	ok, err := n.fn(f.surroundings(), in, a)
	if err != nil {
		return nil, f.calleeFailed(n, n.in, in, n.args, a, err)
	}
	return ok != n.negated, nil
}

// callNode calls a method, a value of the scope, or a global function.
func (f *frame) callNode(n *callNode) (any, error) {
	if a, ok := n.fn.(*attrNode); ok && !a.item {
		return f.method(n, a)
	}
	callee, err := f.callee(n.fn)
	if err != nil {
		return nil, err
	}
	return f.invoke(n, callee)
}

func (f *frame) callee(n node) (any, error) {
	v, err := f.need(n)
	name, ok := n.(*nameNode)
	if _, callable := v.(Callable); callable || !ok || err != nil {
		if e, isErr := err.(*Error); isErr && ok && asUndefined(err) != nil {
			return nil, f.unknownFunction(name, e)
		}
		return v, err
	}
	if fn, ok := f.expr.env.functions[name.name]; ok {
		return Func(fn), nil
	}
	return v, nil
}

// unknownFunction adds similar function names to an undefined callee.
func (f *frame) unknownFunction(n *nameNode, e *Error) error {
	u, ok := e.Err.(*value.Undefined)
	if !ok || u.Hint != "" || u.Err != nil {
		return e
	}
	hint := source.DidYouMean(n.name, f.expr.env.FunctionNames())
	if slices.Contains(f.expr.env.FilterNames(), n.name) {
		hint = "'" + n.name + "' is a filter: write x | " + n.name
	}
	hinted := *u
	hinted.Hint = hint
	return f.fail(n, &hinted)
}

func (f *frame) invoke(n *callNode, callee any) (any, error) {
	fn, ok := callee.(Callable)
	if !ok {
		return nil, f.fail(n.fn, fmt.Errorf("'%s' object is not callable", value.TypeName(callee)))
	}
	a, err := f.args(n.args)
	if err != nil {
		return nil, err
	}
	v, err := fn.Call(f.surroundings(), a)
	if err != nil {
		return nil, f.calleeFailed(n, n.fn, nil, n.args, a, err)
	}
	return v, nil
}

package expr

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// frame is one evaluation. It lives on the stack; only a filter, test or
// function call makes a Call on the heap.
type frame struct {
	expr  *Expr
	ctx   context.Context
	scope Scope
	call  *Call
}

// eval works a node out. The result may be a *value.Undefined or a value.Lazy.
// Every error is an *Error.
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

// rescued forces v; an undefined name inside makes the whole undefined.
func (f *frame) rescued(n node, name string, v any) (any, error) {
	v, err := value.Force(v)
	if err == nil {
		return v, nil
	}
	return f.undefinedBy(n, name, err)
}

// undefinedBy turns an error that an undefined name caused into an undefined value.
func (f *frame) undefinedBy(n node, name string, err error) (any, error) {
	if asUndefined(err) == nil {
		return nil, f.fail(n, err)
	}
	if name == "" {
		at := n.where()
		name = f.expr.src[at.pos:at.end]
	}
	return &value.Undefined{Name: name, Err: err}, nil
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

// strict is the result of a whole expression as plain data.
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

// nested checks all that a value holds for undefined members, at any depth.
func (f *frame) nested(n node, v any, depth int) error {
	if depth > maxFlatten {
		return value.ErrTooDeep
	}
	switch v := v.(type) {
	case *value.Undefined:
		return f.undefined(n, v)
	case []any:
		for _, e := range v {
			if err := f.nested(n, e, depth+1); err != nil {
				return err
			}
		}
	case *value.Dict:
		for _, e := range v.All() {
			if err := f.nested(n, e, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// elements checks a list that the expression yields for undefined elements:
// filters pass them on, from map('extract', ...) say. Data from variables is
// not searched.
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

// truth is the truth of an operand, which must be defined.
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

// fail places an error at a node, unless it has its place in this expression already.
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

// undefined is the error of using an undefined value, at the operand that is
// undefined and with a near name.
func (f *frame) undefined(n node, u *value.Undefined) error {
	n, hint := f.culprit(n, u)
	if u.Hint == "" && hint != "" {
		hinted := *u
		hinted.Hint = hint
		u = &hinted
	}
	return f.fail(n, u)
}

func knownNames(s Scope) []string {
	if l, ok := s.(Lister); ok {
		return l.Names()
	}
	return nil
}

// culprit finds the part of a path that does not exist. It looks only at names and
// attributes, which can be evaluated again without effects.
func (f *frame) culprit(n node, u *value.Undefined) (node, string) {
	switch at := n.(type) {
	case *nameNode:
		if u.Missing == "" && u.Name == at.name && u.Err == nil {
			return n, source.DidYouMean(at.name, knownNames(f.scope))
		}
	case *attrNode:
		if !isPath(at.obj) {
			return n, ""
		}
		obj, err := f.force(at.obj)
		if err != nil {
			return n, ""
		}
		if inner, ok := obj.(*value.Undefined); ok {
			return f.culprit(at.obj, inner)
		}
		return n, nearKey(obj, at.key)
	case *filterNode:
		if isPath(at.in) {
			return f.culprit(at.in, u)
		}
	}
	return n, ""
}

func isPath(n node) bool {
	switch n := n.(type) {
	case *nameNode:
		return true
	case *attrNode:
		return isPath(n.obj)
	}
	return false
}

func nearKey(obj, key any) string {
	d, ok := obj.(*value.Dict)
	name, isName := key.(string)
	if !ok || !isName || d.Has(key) {
		return ""
	}
	var names []string
	for k := range d.All() {
		names = append(names, value.Str(k))
	}
	return source.DidYouMean(name, names)
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

// surroundings is the Call of this evaluation, made when first needed.
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
		items, err := iterate(v)
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

// calleeFailed places the error of a filter or test: an undefined input or argument at its own place.
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

func (f *frame) defined(n node) (bool, error) {
	if name, ok := n.(*nameNode); ok {
		v, ok, err := f.scope.Lookup(name.name)
		if err == nil && !ok {
			_, ok = f.expr.env.functions[name.name]
			return ok, nil
		}
		if err == nil {
			return !value.IsUndefined(v), nil
		}
	}
	v, err := f.eval(n)
	return err == nil && !value.IsUndefined(v), err
}

func (f *frame) sign(n *negNode) (any, error) {
	v, err := f.need(n.x)
	if err != nil {
		return nil, err
	}
	if v, err = sign(v, n.plus); err != nil {
		return nil, f.fail(n, err)
	}
	return v, nil
}

// logic returns the operand that decides, as Python does.
func (f *frame) logic(n *logicNode) (any, error) {
	last := len(n.terms) - 1
	for _, t := range n.terms[:last] {
		v, err := f.eval(t)
		if err != nil {
			return nil, err
		}
		ok, isBool := v.(bool)
		if !isBool {
			if ok, err = f.truthOf(t, v); err != nil {
				return nil, err
			}
		}
		if ok == n.or {
			return v, nil
		}
	}
	return f.eval(n.terms[last])
}

func (f *frame) math(n *mathNode) (any, error) {
	left, err := f.need(n.first)
	if err != nil {
		return nil, err
	}
	for _, o := range n.rest {
		right, err := f.need(o.x)
		if err != nil {
			return nil, err
		}
		if o.op == opMod {
			right = oneArgument(left, right, o.x)
		}
		if left, err = arith(o.op, left, right); err != nil {
			return nil, f.fail(n, err)
		}
	}
	return left, nil
}

// oneArgument is the right side of '%s' % list: unlike a tuple a list is one
// value there. Since tuples become lists, one that comes from a variable is
// taken apart when the format has not exactly one directive.
func oneArgument(left, right any, x node) any {
	format, isText := left.(string)
	list, isList := right.([]any)
	if !isText || !isList {
		return right
	}
	if l, ok := x.(*listNode); ok && l.tuple {
		return right
	}
	if directives := strings.Count(strings.ReplaceAll(format, "%%", ""), "%"); directives == 1 {
		return []any{list}
	}
	return right
}

func (f *frame) compare(n *compareNode) (any, error) {
	left, err := f.need(n.first)
	if err != nil {
		return nil, err
	}
	for i := range n.rest {
		ok, right, err := f.compareOne(n, left, &n.rest[i])
		if !ok || err != nil {
			return false, err
		}
		left = right
	}
	return true, nil
}

func (f *frame) compareOne(n node, left any, o *operation) (bool, any, error) {
	if o.op == opIn || o.op == opNotIn {
		return f.membership(n, left, o)
	}
	right, err := f.need(o.x)
	if err != nil {
		return false, nil, err
	}
	ok, err := relation(o.op, left, right)
	if err != nil {
		return false, nil, f.fail(n, err)
	}
	return ok, right, nil
}

// Container is a value.Lazy that knows its keys without being forced: `in` asks it.
type Container interface {
	value.Lazy
	Contains(key any) (bool, error)
}

func (f *frame) membership(n node, left any, o *operation) (bool, any, error) {
	right, err := f.eval(o.x)
	if err != nil {
		return false, nil, err
	}
	var found bool
	if c, ok := right.(Container); ok {
		found, err = c.Contains(left)
	} else {
		if right, err = f.forced(o.x, right); err != nil {
			return false, nil, err
		}
		if u, ok := right.(*value.Undefined); ok && !u.Lenient {
			return false, nil, f.undefined(o.x, u)
		}
		found, err = contains(right, left)
	}
	if err != nil {
		return false, nil, f.fail(n, err)
	}
	return found == (o.op == opIn), right, nil
}

func (f *frame) concat(n *concatNode) (any, error) {
	var b strings.Builder
	for _, p := range n.parts {
		v, err := f.need(p)
		if err != nil {
			return nil, err
		}
		b.WriteString(pyStr(v))
		if b.Len() > maxSize {
			return nil, f.fail(n, errTooBig)
		}
	}
	return b.String(), nil
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
		if !isKey(key) {
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

// unknownFunction adds near function names to an undefined callee.
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

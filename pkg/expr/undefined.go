package expr

import (
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// rescued forces v; an undefined name inside makes the whole value undefined.
func (f *frame) rescued(n node, name string, v any) (any, error) {
	v, err := value.Force(v)
	if err == nil {
		return v, nil
	}
	return f.undefinedBy(n, name, err)
}

// undefinedBy converts an error that was caused by an undefined name to an undefined value.
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

// nested checks a value for undefined members at any depth.
func (f *frame) nested(n node, v any, depth int) error {
	if depth > MaxDepth {
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

// undefined returns the error for using an undefined value, at the position of the undefined operand and with a
// similar name.
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

// culprit finds the part of a path that does not exist. It only checks names and attributes, which can be evaluated
// again without side effects.
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

// IsPath reports whether the expression is a name, optionally followed by constant keys.
func (x *Expr) IsPath() bool { return isPath(x.root) }

// isPath reports whether an expression is a name, optionally followed by constant keys.
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

package expr

import (
	"strings"

	"kubekey/pkg/value"
)

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

// oneArgument handles the right side of '%s' % list. In Python a list counts as one value here, a tuple as several.
// Since tuples become lists, a list from a variable counts as several values unless the format has exactly one
// directive.
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

// Container is a value.Lazy that can report its keys without being forced, for the operator `in`.
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
		found, err = Contains(right, left)
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
		b.WriteString(PyStr(v))
		if b.Len() > MaxSize {
			return nil, f.fail(n, ErrTooBig)
		}
	}
	return b.String(), nil
}

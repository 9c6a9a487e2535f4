package engine

import (
	"fmt"
	"strconv"

	"kubekey/pkg/project"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// checkKeywords evaluates the keywords that are read outside of the task, too:
// a template in one of them must not fail silently there.
func (x *execution) checkKeywords(v *vars.View) error {
	for i, d := range x.t.Attrs.Value {
		a := project.Attr(i)
		if d == nil || !a.IsBool() && a != project.Throttle {
			continue
		}
		if _, static := d.Static(); static {
			continue // checked when the playbook was read
		}
		check := x.flag
		if a == project.Throttle {
			check = x.isNumber
		}
		if _, err := check(v, a); err != nil {
			return undefinedOption(err)
		}
	}
	return nil
}

// isNumber reports whether a keyword is given, and an error when it is no whole number.
func (x *execution) isNumber(v *vars.View, a project.Attr) (bool, error) {
	val, set, err := x.attr(v, a)
	if err != nil || !set {
		return false, err
	}
	if _, err := strconv.Atoi(value.Str(val)); err != nil {
		return false, fmt.Errorf("%s must be a whole number, not %s", a, value.Repr(val))
	}
	return true, nil
}

// attr evaluates an inherited keyword. One that yields omit is as if it were
// not given: what the parent says holds.
func (x *execution) attr(v *vars.View, a project.Attr) (val any, set bool, err error) {
	return x.e.attr(v, &x.t.Attrs, a)
}

func (e *Engine) attr(v *vars.View, from *project.Attrs, a project.Attr) (val any, set bool, err error) {
	for ; from != nil && from.Value[a] != nil; from = from.Outer(a) {
		if val, err = from.Value[a].Value(v.Context(), v); err != nil {
			return nil, false, err
		}
		if val, err = value.Force(val); err != nil {
			return nil, false, err
		}
		if val != e.omit {
			return val, true, nil
		}
	}
	return nil, false, nil
}

// flag evaluates a keyword that is true or false; false when it is not given.
func (x *execution) flag(v *vars.View, a project.Attr) (bool, error) {
	val, set, err := x.attr(v, a)
	if err != nil || !set || val == nil {
		return false, err
	}
	on, err := boolean(val)
	if err != nil {
		return false, fmt.Errorf("%s %w", a, err)
	}
	return on, nil
}

package engine

import (
	"fmt"

	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// checkKeywords evaluates the keywords that are also read outside of the task, where a failing template would have no
// effect.
func (x *execution) checkKeywords(v *vars.View) error {
	for i, d := range x.t.Attrs.Value {
		a := project.Attr(i)
		if d == nil || a.Type() != playbook.Bool && a != project.Throttle {
			continue
		}
		if _, static := d.Static(); static {
			continue // checked when the playbook was read
		}
		if _, _, err := x.typed(v, a); err != nil {
			return undefinedOption(err)
		}
	}
	return nil
}

// typed evaluates an inherited keyword and converts it to its type.
func (x *execution) typed(v *vars.View, a project.Attr) (val any, set bool, err error) {
	val, set, err = x.attr(v, a)
	if err != nil || !set || val == nil {
		return nil, false, err
	}
	val, err = converted(a.Type(), a.String(), val)
	return val, err == nil, err
}

// ownTyped evaluates a keyword that is not inherited and converts it to its type.
func (x *execution) ownTyped(v *vars.View, d *template.Data, t playbook.Type, name string) (val any, set bool,
	err error) {
	val, set, err = x.own(v, d)
	if err != nil || !set {
		return nil, false, err
	}
	val, err = converted(t, name, val)
	return val, err == nil, err
}

// converted converts a value to a type. The error names the keyword.
func converted(t playbook.Type, name string, v any) (any, error) {
	out, err := t.Convert(v)
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	return out, nil
}

// attr evaluates an inherited keyword. If its value is omit, the keyword counts as not set, and the value of the
// parent applies.
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

// flag evaluates a boolean keyword; false if it is not set.
func (x *execution) flag(v *vars.View, a project.Attr) (bool, error) {
	val, set, err := x.typed(v, a)
	if err != nil || !set {
		return false, err
	}
	on, _ := val.(bool)
	return on, nil
}

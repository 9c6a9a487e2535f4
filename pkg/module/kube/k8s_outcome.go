package kube

import (
	"context"
	"errors"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// outcome is what became of one object.
type outcome struct {
	object  object // after
	before  *object
	changed bool
	method  string
	err     error  // why it did not reach the desired state
	note    string // why nothing was done
}

// data is the outcome in the form of results.
func (m *K8s) data(o outcome) *value.Dict {
	d := value.NewDict("changed", o.changed)
	switch {
	case o.err != nil:
		d.Set("result", value.NewDict())
		d.Set("error", value.NewDict("msg", o.err.Error()))
	case o.note != "":
		d.Set("result", value.NewDict())
		d.Set("msg", o.note)
	default:
		d.Set("method", o.method)
		d.Set("result", m.shown(o.object))
	}
	return d
}

// errorsOf are those of the outcomes.
func errorsOf(all []outcome) error {
	var failed []error
	for _, o := range all {
		failed = append(failed, o.err)
	}
	return errors.Join(failed...)
}

// fail is the result of an error, with what was done before it.
func fail(r module.Result, err error) (module.Result, error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || lostHost(err) {
		return module.Result{}, err
	}
	r.Failed, r.Msg = true, err.Error()
	return r, nil
}

// result is the result of the task. Unless it continues after errors, these make its
// message, and the objects that they concern are not among the results.
func (m *K8s) result(all []outcome, single bool) module.Result {
	r := module.Result{Data: value.NewDict()}
	list := []any{}
	for _, o := range all {
		if o.err != nil && !m.Continue {
			continue
		}
		r.Changed = r.Changed || o.changed
		list = append(list, m.data(o))
	}
	switch {
	case single && len(list) == 1:
		one := list[0].(*value.Dict)
		for _, key := range []string{"result", "method", "error"} {
			if v, ok := one.Get(key); ok {
				r.Data.Set(key, v)
			}
		}
		r.Msg = one.String("msg")
	case len(list) > 0:
		r.Data.Set("result", value.NewDict("results", list))
	}
	return r
}

func (m *K8s) diffs(all []outcome) []event.Diff {
	var list []event.Diff
	for _, o := range all {
		if !o.changed || o.err != nil {
			continue
		}
		d := event.Diff{BeforeHeader: o.object.String(), AfterHeader: o.object.String(), Before: "", After: ""}
		if o.before != nil {
			d.Before = m.desired(*o.before)
		}
		if o.method != "delete" {
			d.After = m.desired(o.object)
		}
		if o.before != nil && o.object.kind() == "Secret" && !value.Equal(o.before.at("data"), o.object.at("data")) {
			d.Note = o.object.String() + ": its data changes, and is not shown"
		}
		list = append(list, d)
	}
	return list
}

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
}

// fail is the result of what went wrong, with what was done before.
func fail(r module.Result, err error) (module.Result, error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || lostHost(err) {
		return module.Result{}, err
	}
	r.Failed, r.Msg = true, err.Error()
	return r, nil
}

func result(all []outcome, single bool) module.Result {
	r := module.Result{Data: value.NewDict()}
	list := []any{}
	for _, o := range all {
		r.Changed = r.Changed || o.changed
		list = append(list, value.NewDict("changed", o.changed, "method", o.method, "result", shown(o.object)))
	}
	if single && len(all) == 1 {
		r.Data.Set("result", shown(all[0].object))
		r.Data.Set("method", all[0].method)
		return r
	}
	r.Data.Set("result", value.NewDict("results", list))
	return r
}

func diffs(all []outcome) []event.Diff {
	var list []event.Diff
	for _, o := range all {
		if !o.changed {
			continue
		}
		d := event.Diff{BeforeHeader: o.object.String(), AfterHeader: o.object.String(), Before: "", After: ""}
		if o.before != nil {
			d.Before = wanted(*o.before)
		}
		if o.method != "delete" {
			d.After = wanted(o.object)
		}
		if o.before != nil && o.object.kind() == "Secret" && !value.Equal(o.before.at("data"), o.object.at("data")) {
			d.Note = o.object.String() + ": its data changes, and is not shown"
		}
		list = append(list, d)
	}
	return list
}

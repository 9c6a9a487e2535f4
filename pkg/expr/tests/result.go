package tests

import (
	"fmt"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// resultTests check results that a task registered.
func resultTests() []expr.Test {
	return []expr.Test{
		result("failed failure", func(r *value.Dict) bool { return flagOf(r, "failed") }),
		result("succeeded success successful", func(r *value.Dict) bool { return !flagOf(r, "failed") }),
		result("changed change", isChanged),
		result("skipped skip", func(r *value.Dict) bool { return flagOf(r, "skipped") }),
		result("unreachable", func(r *value.Dict) bool { return flagOf(r, "unreachable") }),
		result("reachable", func(r *value.Dict) bool { return !flagOf(r, "unreachable") }),
		result("timedout", func(r *value.Dict) bool {
			period, _ := r.Get("timedout")
			d, ok := period.(*value.Dict)
			return ok && flagOf(d, "period")
		}),
		result("started", func(r *value.Dict) bool { return !r.Has("started") || flagOf(r, "started") }),
		result("finished", func(r *value.Dict) bool { return !r.Has("finished") || flagOf(r, "finished") }),
	}
}

func result(names string, is func(r *value.Dict) bool) expr.Test {
	return expr.Test{Names: names, Do: func(_ *expr.Call, in any, _ *expr.Bound) (bool, error) {
		r, ok := in.(*value.Dict)
		if !ok {
			return false, fmt.Errorf("the test needs a registered result (a dict), not '%s'", value.TypeName(in))
		}
		return is(r), nil
	}}
}

func flagOf(r *value.Dict, key string) bool {
	v, _ := r.Get(key)
	return value.Truth(v)
}

// isChanged checks the results of a loop when the overall result has no changed key.
func isChanged(r *value.Dict) bool {
	results, _ := r.Get("results")
	items, ok := results.([]any)
	if r.Has("changed") || !ok {
		return flagOf(r, "changed")
	}
	for _, item := range items {
		if d, ok := item.(*value.Dict); ok && flagOf(d, "changed") {
			return true
		}
	}
	return false
}

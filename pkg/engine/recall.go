package engine

import (
	"slices"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// remember finds the action of each host at a task in the previous run, and removes hosts that pass the task. If one
// host runs the task for all, the host that did so in the previous run is first.
func (e *Engine) remember(t *project.Task, ev *event.Task, group []*walker, shared bool) ([]*walker, error) {
	for _, w := range group {
		w.past = nil
	}
	if e.Memory == nil {
		return group, nil
	}
	if shared {
		first := 0
		for i, w := range group {
			if e.Memory.Has(w.name, ev) {
				first = i
				break
			}
			if !e.Memory.CanRun(group[first].name) && e.Memory.CanRun(w.name) {
				first = i
			}
		}
		group = append([]*walker{group[first]}, append(group[:first:first], group[first+1:]...)...)
	}
	out := make([]*walker, 0, len(group))
	for i, w := range group {
		if shared && i > 0 {
			out = append(out, w)
			continue
		}
		d, passes, err := e.Memory.Recall(w.name, ev)
		if err != nil {
			return nil, err
		}
		if passes && !shared {
			w.done(t, false)
			continue
		}
		w.past = d
		out = append(out, w)
	}
	return out, nil
}

// recalledByAll reports whether no host has to run the task.
func recalledByAll(hosts []*walker) bool {
	for _, w := range hosts {
		if w.past == nil || !w.past.Succeeded() {
			return false
		}
	}
	return true
}

// recall copies the result of the task, or of an item, from the previous run. It returns false if the work must be
// done again: if it failed, was not done, or had an effect that the journal does not record.
func (x *execution) recall(v *vars.View, o *itemOutcome) bool {
	r := x.w.past.Result(o.item)
	if r == nil || !x.restorable(r) {
		return false
	}
	o.ran, o.recalled = true, true
	o.status, o.result, o.delegate = r.Status, r.Result.Copy(), r.Delegate
	o.startedAt, o.took = r.StartedAt, r.Duration
	if facts, ok := o.result.Get("ansible_facts"); ok {
		o.facts, _ = facts.(*value.Dict)
	}
	if x.t.Action == "set_fact" {
		o.factKind = module.SetFact
	}
	if on, err := x.flag(v, project.DelegateFacts); on && err == nil {
		o.factsTo = o.delegate
	}
	if o.status == event.Changed {
		x.notifications(v, o)
	}
	x.ignore(v, o)
	return true
}

// restorable reports whether the journal contains all effects of the task.
func (x *execution) restorable(r *event.HostResult) bool {
	if r.Result == nil || r.Status == event.Skipped {
		return r.Result != nil
	}
	if x.retells() || module.EndsWithRun(r.Result) {
		return false
	}
	whole := !r.Partial && !r.Result.Has("censored")
	return whole || x.t.Register == "" && !x.makesFacts()
}

// retells reports whether a task changes only the state of kk, which the journal does not record. Such a task runs
// again, and the repetition is not shown.
func (x *execution) retells() bool {
	switch x.t.Action {
	case "add_host", "group_by", "add_hostvars", "include_vars", "result":
		return true
	}
	return x.t.Include != nil
}

func (x *execution) makesFacts() bool {
	return x.t.Action == "set_fact" || x.t.Action == "setup" || strings.HasSuffix(x.t.Action, "_facts")
}

// recallsAll reports whether all hosts are still in the part that the previous run has done.
func (e *Engine) recallsAll(group []*walker) bool {
	return !slices.ContainsFunc(group, func(w *walker) bool { return !e.Memory.Behind(w.name) })
}

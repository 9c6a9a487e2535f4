package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// metaAction describes a meta task: its action and its messages. In messages about a single host, %s is the host.
type metaAction struct {
	name   string
	done   string
	not    string // message if the condition is false
	msg    string // msg of the result in that case, if it is not the name
	forAll bool   // runs once for all hosts; the condition of the first host applies
	anyhow bool   // runs even if its condition is false
}

func metaActions() []metaAction {
	return []metaAction{
		{name: "clear_facts", done: "facts cleared", not: "not clearing facts and fact cache for %s", forAll: true},
		{name: "clear_host_errors", done: "cleared host errors", not: "not clearing host error state for %s", forAll: true},
		{name: "end_batch", done: "ending batch", not: "continuing current batch", forAll: true},
		{name: "end_host", done: "ending play for %s", not: "continuing execution for %s",
			msg: "end_host conditional evaluated to false, continuing execution for %s"},
		{name: "end_play", done: "ending play", not: "continuing play", forAll: true},
		{name: "end_role", done: "ending role for %s", not: "continuing role for %s"},
		{name: "end_run", done: "ending run", not: "continuing run", forAll: true},
		{name: "flush_handlers", done: "triggered running handlers for %s", not: "not running handlers for %s"},
		{name: "noop", done: "noop", anyhow: true},
		{name: "refresh_inventory", done: "inventory successfully refreshed", forAll: true, anyhow: true},
		{name: "reset_connection", done: "reset connection", anyhow: true},
	}
}

// about inserts a host into a text about a single host.
func about(text, host string) string { return strings.ReplaceAll(text, "%s", host) }

// meta runs a meta task for the hosts at it. An error ends the run.
func (e *Engine) meta(ctx context.Context, ps *playState, t *project.Task, group []*walker) error {
	actions := metaActions()
	a := actions[slices.IndexFunc(actions, func(a metaAction) bool { return a.name == t.Meta })]
	var ev *event.Task
	if !t.Hidden {
		ev = e.describe(ctx, ps, t, group[0])
		ev.Recalled = e.recallsAll(group)
		e.announce(ev)
	}
	for _, w := range group {
		w.done(t, false)
	}
	if a.anyhow && len(t.Attrs.When) > 0 {
		e.emit(event.Warning{Diagnostic: source.Warningf(t.At,
			"meta: %s does not support when: it is done whatever the condition", t.Meta)})
	}
	if a.forAll {
		group = group[:1]
	}
	for _, w := range group {
		wanted, failed := true, false
		if !a.anyhow && len(t.Attrs.When) > 0 {
			wanted, failed = e.metaWanted(ctx, ps, t, ev, w)
		}
		if failed {
			continue
		}
		if ev != nil {
			ran := event.MetaRan{Task: ev, Action: t.Meta, Host: w.name, Message: about(a.done, w.name)}
			if !wanted {
				ran.Message = about(cmp.Or(a.msg, t.Meta), w.name)
				ran.Skipped = t.Meta + " conditional evaluated to False, " + about(a.not, w.name)
			}
			e.emit(ran)
		}
		if !wanted {
			continue
		}
		if err := e.doMeta(ctx, ps, t, w); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) doMeta(ctx context.Context, ps *playState, t *project.Task, w *walker) error {
	switch t.Meta {
	case "flush_handlers":
		ps.flush(w)
	case "end_host":
		w.ended = true
	case "end_play", "end_batch":
		ps.end(t.Meta == "end_play")
	case "end_run":
		ps.end(true)
		e.ended = true
	case "end_role":
		w.endRole()
	case "clear_host_errors":
		e.standing.forgive()
		for _, other := range ps.walkers {
			other.forgive()
		}
	case "clear_facts":
		for _, other := range ps.walkers {
			other.host.ClearFacts()
			e.forget(other.name)
		}
	case "reset_connection":
		e.resetConnection(ctx, ps, t, w)
	case "refresh_inventory":
		return e.refreshInventory(ctx, ps)
	}
	return nil
}

// refreshInventory reads the inventory again. The current play sees its new groups and variables; only later plays
// see new hosts.
func (e *Engine) refreshInventory(ctx context.Context, ps *playState) error {
	ds := e.Inventory.Refresh(ctx)
	if ds.Err() == nil {
		ds = append(ds, e.Inventory.LoadVars(ps.dir)...)
	}
	e.forgetLayers()
	if err := ds.Err(); err != nil {
		return err
	}
	for _, d := range ds {
		e.emit(event.Warning{Diagnostic: d})
	}
	return nil
}

// metaWanted evaluates the condition of a meta task. If the evaluation fails on a host, the host fails.
func (e *Engine) metaWanted(ctx context.Context, ps *playState, t *project.Task, ev *event.Task, w *walker) (wanted,
	failed bool) {
	x := &execution{e: e, ps: ps, t: t, w: w, view: e.taskView(ctx, ps, t, w)}
	o := &itemOutcome{}
	if skipped := x.conditions(ctx, x.view, o); !skipped {
		return true, false
	}
	if o.status != event.Failed {
		return false, false
	}
	e.report(&outcome{walker: w, task: t, status: event.Failed, result: o.result, items: []*itemOutcome{o}}, ev)
	e.count(&outcome{walker: w, task: t, status: event.Failed, result: value.NewDict()})
	e.failHost(w, t, ev.Name, o.result)
	return false, true
}

// flush moves a host into the handlers that were notified on it.
func (ps *playState) flush(w *walker) {
	if len(w.notified) == 0 {
		return
	}
	steps := make([]project.Step, len(ps.play.Handlers))
	for i, h := range ps.play.Handlers {
		steps[i] = h
	}
	w.top().i-- // the handlers take the place of the flush
	f := w.push(ps.flushed, steps)
	f.flush = true
}

// end ends the batch for all of its hosts.
func (ps *playState) end(play bool) {
	ps.endPlay = ps.endPlay || play
	for _, w := range ps.walkers {
		w.ended = true
	}
}

// endRole moves the host out of its current role.
func (w *walker) endRole() {
	for i := len(w.stack) - 1; i > 0; i-- {
		if w.stack[i].block.Role != nil {
			w.stack = w.stack[:i+1]
			w.stack[i].i = len(w.stack[i].steps)
			return
		}
	}
}

func (e *Engine) resetConnection(ctx context.Context, ps *playState, t *project.Task, w *walker) {
	v := e.taskView(ctx, ps, t, w)
	s := e.settings(v, &t.Attrs, v)
	if target := e.target(w.name, s); s.err == nil {
		e.drop(target)
	}
}

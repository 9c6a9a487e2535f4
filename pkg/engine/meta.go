package engine

import (
	"context"

	"kubekey/pkg/event"
	"kubekey/pkg/project"
	"kubekey/pkg/value"
)

// meta runs a meta task for the hosts that stand at it. An error ends the run.
func (e *Engine) meta(ctx context.Context, ps *playState, t *project.Task, group []*walker) error {
	if !t.Hidden {
		ev := e.describe(ctx, ps, t, group[0])
		ev.Recalled = e.Memory.recallsAll(group)
		e.announce(ev)
	}
	for _, w := range group {
		w.done(t, false)
	}
	if forBatch(t.Meta) {
		group = group[:1]
	}
	for _, w := range group {
		if len(t.Attrs.When) > 0 && !e.metaWanted(ctx, ps, t, w) {
			continue
		}
		e.emit(event.MetaRan{Action: t.Meta, Host: w.name})
		if err := e.doMeta(ctx, ps, t, w); err != nil {
			return err
		}
	}
	return nil
}

// forBatch reports whether a meta action is done once, whatever the hosts.
func forBatch(action string) bool {
	switch action {
	case "end_play", "end_run", "end_batch", "clear_host_errors", "refresh_inventory":
		return true
	}
	return false
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
		w.host.ClearFacts()
		e.forget(w.name)
	case "reset_connection":
		e.resetConnection(ctx, ps, t, w)
	case "refresh_inventory":
		return e.refreshInventory(ctx, ps)
	}
	return nil
}

// refreshInventory reads the inventory again. Later plays find its hosts, the
// tasks of this one its groups and variables.
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

func (e *Engine) metaWanted(ctx context.Context, ps *playState, t *project.Task, w *walker) bool {
	x := &execution{e: e, ps: ps, t: t, w: w, view: e.taskView(ctx, ps, t, w)}
	o := &itemOutcome{}
	if skipped := x.conditions(ctx, x.view, o); !skipped {
		return true
	}
	if o.status == event.Failed {
		ev := e.describe(ctx, ps, t, w)
		e.announce(ev)
		e.report(&outcome{walker: w, task: t, status: event.Failed, result: o.result, items: []*itemOutcome{o}}, ev)
		e.count(&outcome{walker: w, task: t, status: event.Failed, result: value.NewDict()})
		e.failHost(w, t, ev.Name, o.result)
	}
	return false
}

// flush puts a host into the handlers that were notified on it.
func (ps *playState) flush(w *walker) {
	if len(w.notified) == 0 {
		return
	}
	steps := make([]project.Step, len(ps.play.Handlers))
	for i, h := range ps.play.Handlers {
		steps[i] = h
	}
	w.top().i-- // the handlers stand where the flush stands
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

// endRole leaves the role that the host is in.
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

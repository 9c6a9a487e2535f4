package engine

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"

	"kubekey/pkg/event"
	"kubekey/pkg/inventory"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

const onceForAll = module.Once

// compiled compiles a text of a play. Syntax errors were already reported when the playbook was loaded.
func compiled(text string, e *Engine) *template.Data {
	d, err := e.Templates.Data(text, source.Pos{})
	if err != nil {
		return template.Literal(text)
	}
	return d
}

func isUndefined(err error) bool {
	var u *value.Undefined
	return errors.As(err, &u)
}

func glob(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// report emits the result of a task on a host.
func (e *Engine) report(o *outcome, ev *event.Task) {
	if o.result == nil { // interrupted
		return
	}
	x := &execution{e: e, t: o.task, w: o.walker, ev: ev}
	rescued := o.status == event.Failed && !o.ignored && o.walker.rescuable()
	r := event.HostResult{Task: ev, Host: o.walker.name, Status: o.status, Ignored: o.ignored, Rescued: rescued}
	if len(o.items) == 1 && o.items[0].item == nil {
		r = x.hostResult(o.items[0])
		r.Rescued = rescued
	} else {
		r.Loop = true
		shown := &itemOutcome{result: o.result, noLog: o.secret()}
		r.Result = shown.shown()
		r.Message = o.result.String("msg")
	}
	r.Include = len(o.includes) > 0
	r.Recalled = len(o.items) > 0 && !slices.ContainsFunc(o.items, func(i *itemOutcome) bool { return !i.recalled })
	e.emit(r)
}

// secret reports whether any part of the outcome must not be shown.
func (o *outcome) secret() bool {
	return slices.ContainsFunc(o.items, func(i *itemOutcome) bool { return i.noLog })
}

// badInput reports whether the task failed because of what kk was given.
func (o *outcome) badInput() bool {
	return slices.ContainsFunc(o.items, func(i *itemOutcome) bool { return i.badInput && i.status == event.Failed })
}

// take applies the outcome of a task: counters, registered variable, facts, notifications and inventory changes. Then
// it moves the host on.
func (e *Engine) take(
	ctx context.Context, ps *playState, o *outcome, ev *event.Task, group []*walker, shared bool,
) (err error) {
	if o.result == nil {
		return nil
	}
	e.count(o)
	targets := []*walker{o.walker}
	if shared {
		targets = group
	}
	x := &execution{e: e, ps: ps, t: o.task, w: o.walker, ev: ev}
	defer func() {
		if p := recover(); p != nil {
			*o, err = *e.lost(x, p), nil
			e.move(o, ev, targets)
		}
	}()
	for _, w := range targets {
		if name := o.task.Register; name != "" {
			w.host.SetOne(name, x.registered(o.result))
		}
	}
	for _, item := range o.items {
		if err := e.learn(ctx, ps, o, item, targets); err != nil {
			return err
		}
	}
	e.move(o, ev, targets)
	return nil
}

// learn applies the facts, effects and notifications of one execution.
func (e *Engine) learn(ctx context.Context, ps *playState, o *outcome, item *itemOutcome, targets []*walker) error {
	if item.facts != nil && item.status < event.Failed {
		for _, w := range targets {
			h := w.host
			if item.factsTo != "" {
				h = e.host(item.factsTo)
			}
			learnFacts(h, item)
			e.keep(cmp.Or(item.factsTo, w.name), h, item.factKind)
			if item.factKind == module.Gathered && len(ps.play.VarsFiles) > 0 {
				if err := e.loadVarsFiles(ctx, ps, w); err != nil {
					return err
				}
			}
		}
	}
	for _, eff := range item.effects {
		e.effect(eff, o.walker.name)
	}
	if o.ignored || item.ignored || item.status != event.Changed {
		return nil
	}
	for _, name := range item.notify {
		if err := e.notify(ps, o.task, name, o.walker); err != nil {
			return err
		}
	}
	return nil
}

func learnFacts(h *vars.Host, item *itemOutcome) {
	switch item.factKind {
	case module.Gathered:
		h.AddFacts(item.facts)
	case module.SetFact:
		h.Set(item.facts)
	case module.SetFactCacheable:
		h.Set(item.facts)
		h.AddCacheable(item.facts)
	case module.IncludeVars:
		h.Include(item.facts)
	}
}

// notify marks the handlers with a name as notified; under run_once only on the host that ran the task. If no handler
// has that name, the run ends; with MissingHandlerWarns this is only a warning.
func (e *Engine) notify(ps *playState, t *project.Task, name string, w *walker) error {
	found := project.FindHandlers(ps.play.Handlers, name, t.Role)
	if len(found) == 0 {
		d := project.NoHandler(t.At, name, ps.play)
		if e.Linker.MissingHandlerWarns {
			d.Severity = source.Warning
			e.emit(event.Warning{Diagnostic: d})
			return nil
		}
		return d
	}
	for _, h := range found {
		w.notify(h)
	}
	e.emit(event.Notified{Handler: name, Host: w.name})
	return nil
}

// effect changes the inventory, or the result that the run reports at its end.
func (e *Engine) effect(eff module.Effect, host string) {
	var err error
	switch eff := eff.(type) {
	case module.AddHost:
		_, err = e.Inventory.AddHost(eff.Name, eff.Groups, eff.Vars)
	case module.GroupBy:
		_, err = e.Inventory.AddToGroup(host, eff.Group, eff.Parents)
	case module.AddHostVars:
		var m inventory.Matched
		if m, err = e.Inventory.Match(eff.Hosts, inventory.MatchOptions{RunID: e.RunID}); err == nil {
			for _, name := range m.Hosts {
				e.host(name).Set(eff.Vars)
			}
		}
	case module.RunResult:
		if e.results == nil {
			e.results = value.NewDict()
		}
		for k, v := range eff.Values.All() {
			e.results.Set(k, v)
		}
		return
	}
	e.forgetLayers()
	if err != nil {
		e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "%s", err)})
	}
}

// count adds a task to the host's counters.
func (e *Engine) count(o *outcome) {
	if o.status == event.OK && len(o.includes) > 0 {
		return // each included file is counted instead
	}
	s := e.stat(o.walker.name)
	rescued := o.walker.rescuable()
	switch o.status {
	case event.Unreachable:
		if o.ignored {
			s.OK++
			s.Ignored++
			return
		}
		s.Unreachable++
	case event.Failed:
		switch {
		case o.ignored:
			s.OK++
			s.Ignored++
		case rescued && o.task.Include == nil:
			s.Rescued++
		default:
			s.Failed++
			if rescued {
				s.Rescued++
			}
		}
	case event.Skipped:
		s.Skipped++
	case event.Changed:
		s.OK++
		s.Changed++
	default:
		s.OK++
	}
	if o.status == event.Failed && o.ignored && truthKey(o.result, "changed") {
		s.Changed++
	}
}

// move moves hosts past the task, to a rescue section, or out of the play. If one execution counts for all hosts, its
// failure fails all of them.
func (e *Engine) move(o *outcome, ev *event.Task, targets []*walker) {
	ran := o.status != event.Skipped && o.status != event.Unreachable
	for _, w := range targets {
		switch {
		case o.status == event.Unreachable && !o.ignored && w == o.walker:
			w.lose()
		case o.status >= event.Failed && !o.ignored:
			if o.badInput() && !w.rescuable() {
				e.standing.reject()
			}
			e.failHost(w, o.task, ev.Name, o.result)
		default:
			w.done(o.task, ran)
		}
	}
}

func (e *Engine) failHost(w *walker, t *project.Task, name string, result *value.Dict) {
	if w.rescuable() {
		w.remember(t, name, result)
	}
	if f := w.top(); f != nil && f.flush {
		delete(w.notified, t)
	}
	w.fail()
}

// afterTask ends hosts or the run if any_errors_fatal or max_fail_percentage requires it.
func (e *Engine) afterTask(ctx context.Context, ps *playState, t *project.Task, outcomes []*outcome) {
	failed := map[*walker]bool{}
	for _, o := range outcomes {
		if o.status >= event.Failed && !o.ignored {
			failed[o.walker] = true
		}
	}
	if len(failed) == 0 {
		return
	}
	if e.anyFatal(ctx, ps, t, outcomes[0].walker) {
		for _, w := range ps.walkers {
			w.fatal = true
			if !w.ended && !failed[w] {
				w.fail()
			}
		}
	}
	if ps.maxFail >= 0 && ps.share() > ps.maxFail {
		ps.abort = true
		for _, w := range ps.walkers {
			if !w.ended {
				w.stack = nil
				w.fail()
			}
		}
	}
}

// share returns the percentage of failed hosts in the batch.
func (ps *playState) share() float64 {
	bad := 0
	for _, w := range ps.walkers {
		if w.failed || w.lost {
			bad++
		}
	}
	return float64(bad) * 100 / float64(len(ps.walkers))
}

func (e *Engine) anyFatal(ctx context.Context, ps *playState, t *project.Task, w *walker) bool {
	if t.Attrs.Value[project.AnyErrorsFatal] == nil {
		return e.Plays.AnyErrorsFatal
	}
	x := &execution{e: e, ps: ps, t: t, w: w, view: e.taskView(ctx, ps, t, w)}
	on, err := x.flag(x.view, project.AnyErrorsFatal)
	return on && err == nil
}

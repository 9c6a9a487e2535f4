package engine

import (
	"context"
	"errors"
	"path"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

const onceForAll = module.Once

// evaluable is a value with templates.
type evaluable = *template.Data

func isNil(d evaluable) bool { return d == nil }

// compiled compiles a text of a play; a broken one was reported at load.
func compiled(text string, e *Engine) evaluable {
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

// report emits how a task ended on a host.
func (e *Engine) report(ps *playState, o *outcome, ev *event.Task) {
	if o.result == nil { // cut short
		return
	}
	x := &execution{e: e, ps: ps, t: o.task, w: o.walker, ev: ev}
	rescued := o.status == event.Failed && !o.ignored && o.walker.rescuable()
	r := event.HostResult{Task: ev, Host: o.walker.name, Status: o.status, Ignored: o.ignored, Rescued: rescued}
	if o.task.Loop == nil && len(o.items) == 1 {
		r = x.hostResult(o.items[0])
		r.Rescued = rescued
	} else {
		r.Loop = true
		shown := &itemOutcome{result: o.result, noLog: len(o.items) > 0 && o.items[0].noLog}
		r.Result = shown.shown()
		r.Message = o.result.String("msg")
	}
	r.Include = len(o.includes) > 0
	e.emit(r)
}

// take makes a task's outcome known: counters, registered variable, facts,
// notifications, inventory; and moves the host on.
func (e *Engine) take(ps *playState, o *outcome, ev *event.Task, group []*walker, shared bool) {
	if o.result == nil {
		return
	}
	e.count(o)
	targets := []*walker{o.walker}
	if shared {
		targets = group
	}
	x := &execution{e: e, ps: ps, t: o.task, w: o.walker, ev: ev}
	for _, w := range targets {
		if name := o.task.Register; name != "" {
			w.host.SetOne(name, x.registered(o.result))
		}
	}
	for _, item := range o.items {
		e.learn(ps, o, item, targets)
	}
	e.move(ps, o, ev, targets)
}

// learn takes the facts, effects and notifications of one execution.
func (e *Engine) learn(ps *playState, o *outcome, item *itemOutcome, targets []*walker) {
	if item.facts != nil && item.status < event.Failed {
		for _, w := range targets {
			h := w.host
			if item.factsTo != "" {
				h = e.host(item.factsTo)
			}
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
		if item.factKind == module.Gathered && len(ps.play.VarsFiles) > 0 {
			for _, w := range targets {
				if err := e.loadVarsFiles(context.Background(), ps, w); err != nil {
					e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "%s", err)})
				}
			}
		}
	}
	for _, eff := range item.effects {
		e.effect(eff, o.walker.name)
	}
	if item.ignored || item.status != event.Changed {
		return
	}
	for _, name := range item.notify {
		e.notify(ps, o, name, targets)
	}
}

func (e *Engine) notify(ps *playState, o *outcome, name string, targets []*walker) {
	found := project.FindHandlers(ps.play.Handlers, name, o.task.Role)
	if len(found) == 0 {
		o.abort = source.Errorf(o.task.At, "The requested handler '%s' was not found in either the main handlers list nor in the listening handlers list", name).
			WithHelp("%s", source.DidYouMean(name, ps.play.HandlerNames()))
		e.fatal = o.abort.Error()
		ps.abort = true
		return
	}
	for _, w := range targets {
		for _, h := range found {
			w.notified[h] = true
		}
		e.emit(event.Notified{Handler: name, Host: w.name})
	}
}

// effect changes the inventory, or the run's summary.
func (e *Engine) effect(eff module.Effect, host string) {
	var err error
	switch eff := eff.(type) {
	case module.AddHost:
		_, err = e.Inventory.AddHost(eff.Name, eff.Groups, eff.Vars)
	case module.GroupBy:
		_, err = e.Inventory.AddToGroup(host, eff.Group, eff.Parents)
	case module.AddHostVars:
		var m matched
		if m, err = e.members(eff.Hosts); err == nil {
			for _, name := range m {
				e.host(name).Set(eff.Vars)
			}
		}
	case module.RunResult:
		e.summary = append(e.summary, eff.Values)
		return
	}
	e.forgetLayers()
	if err != nil {
		e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "%s", err)})
	}
}

type matched = []string

// count adds a task to the host's counters.
func (e *Engine) count(o *outcome) {
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

// move moves hosts behind the task, to a rescue section, or out of the play.
func (e *Engine) move(ps *playState, o *outcome, ev *event.Task, targets []*walker) {
	ran := o.status != event.Skipped && o.status != event.Unreachable
	for _, w := range targets {
		switch {
		case o.status == event.Unreachable && !o.ignored:
			w.ended, w.lost = true, true
			e.unreachable[w.name] = true
		case o.status == event.Failed && !o.ignored:
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
	if w.failed {
		e.failed[w.name] = true
	}
}

// afterTask ends hosts or the run where any_errors_fatal or
// max_fail_percentage want it.
func (e *Engine) afterTask(ctx context.Context, ps *playState, t *project.Task, outcomes []*outcome) {
	failed := false
	for _, o := range outcomes {
		failed = failed || o.status >= event.Failed && !o.ignored
	}
	if !failed {
		return
	}
	if e.anyFatal(ctx, ps, t, outcomes[0].walker) {
		out := false
		for _, w := range ps.walkers {
			if !w.ended && !ranHere(outcomes, w) {
				w.fail()
			} else if !w.ended && !failedHere(outcomes, w) {
				w.fail()
			}
			if w.failed {
				e.failed[w.name] = true
			}
			out = out || w.failed || w.lost
		}
		ps.abort = ps.abort || out
	}
	if ps.maxFail >= 0 {
		bad := 0
		for _, w := range ps.walkers {
			if w.failed || w.lost {
				bad++
			}
		}
		if float64(bad)*100/float64(len(ps.walkers)) > ps.maxFail {
			ps.abort = true
			for _, w := range ps.walkers {
				if !w.ended {
					w.ended, w.failed = true, true
					e.failed[w.name] = true
				}
			}
		}
	}
}

func ranHere(outcomes []*outcome, w *walker) bool {
	for _, o := range outcomes {
		if o.walker == w {
			return true
		}
	}
	return false
}

func failedHere(outcomes []*outcome, w *walker) bool {
	for _, o := range outcomes {
		if o.walker == w {
			return o.status >= event.Failed && !o.ignored
		}
	}
	return false
}

func (e *Engine) anyFatal(ctx context.Context, ps *playState, t *project.Task, w *walker) bool {
	if t.Attrs.Value[project.AnyErrorsFatal] == nil {
		return false
	}
	v := e.scope.New(ctx, w.name, w.host, e.inventoryLayers(w.name, ps.dir), t.Static, ps.play)
	x := &execution{e: e, t: t, view: v}
	return x.flag(v, project.AnyErrorsFatal)
}

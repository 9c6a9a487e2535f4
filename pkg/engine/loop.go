package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// loop runs the task for each item and reports each item when it ends.
func (x *execution) loop(ctx context.Context) []*itemOutcome {
	items, err := x.items(ctx)
	if err != nil {
		return x.badLoop(ctx, err)
	}
	if err := x.nameVars(); err != nil {
		return x.badLoop(ctx, err)
	}
	x.warnOfVar()
	forks, pause, err := x.loopControl()
	if err != nil {
		return x.badLoop(ctx, err)
	}
	x.authored = x.authoredItems(ctx, len(items))
	if forks > 1 || x.t.Async != nil {
		items = forced(items)
	}
	if forks > 1 {
		return x.parallel(ctx, items, forks)
	}
	out := make([]*itemOutcome, 0, len(items))
	before := x.view
	defer func() { x.view = before }()
	l := newLesson()
	for i := range items {
		if i > 0 && pause > 0 && !out[i-1].recalled && module.Sleep(ctx, pause) != nil {
			break
		}
		o, v := x.item(ctx, items, i)
		stop := x.breaks(ctx, v, o)
		x.tellItem(o)
		out = append(out, o)
		if stop || ctx.Err() != nil {
			break
		}
		l.learn(x, o)
		x.view = l.on(before)
	}
	return out
}

// lesson is the data that previous items of a loop registered or set. The next item sees it: set_fact in a loop can
// extend the value that it set for the previous item.
type lesson struct {
	values   *value.Dict
	included *value.Dict // variables of include_vars; can contain templates
}

func newLesson() lesson { return lesson{value.NewDict(), value.NewDict()} }

func (l lesson) learn(x *execution, o *itemOutcome) {
	if o.status == event.Skipped {
		return
	}
	if x.t.Register != "" {
		l.values.Set(x.t.Register, x.registered(o.result))
	}
	switch {
	case o.facts == nil:
	case o.factKind == module.IncludeVars:
		l.included.Merge(o.facts)
	default:
		l.values.Merge(o.facts)
	}
	if o.facts != nil && o.factKind == module.Gathered {
		known := &vars.Host{}
		known.AddFacts(x.view.Facts())
		known.AddFacts(o.facts)
		l.values.Set("ansible_facts", known.Facts())
	}
}

// on returns a view in which the data of the previous items overrides everything else.
func (l lesson) on(v *vars.View) *vars.View {
	for name, val := range l.included.All() {
		v = v.WithIncluded(value.Str(name), val)
	}
	for name, val := range l.values.All() {
		v = v.With(value.Str(name), val)
	}
	return v
}

// loopNames are the names of the variables of a loop; index is "" if there is none.
type loopNames struct{ item, index string }

func (x *execution) nameVars() (err error) {
	if x.loopNames.item, err = x.nameVar("loop_var", x.t.Loop.Var, "item"); err != nil {
		return err
	}
	x.loopNames.index, err = x.nameVar("index_var", x.t.Loop.IndexVar, "")
	return err
}

func (x *execution) nameVar(what string, d *template.Data, otherwise string) (string, error) {
	v, set, err := x.own(x.view, d)
	if err != nil || !set {
		return otherwise, err
	}
	name := value.Str(v)
	if !playbook.IsIdentifier(name) {
		return "", fmt.Errorf("loop_control: %s: %s cannot be the name of a variable", what, value.Repr(v))
	}
	return name, nil
}

// warnOfVar warns about a loop whose variable hides one that is already set.
func (x *execution) warnOfVar() {
	if _, used, _ := x.view.Lookup(x.loopNames.item); used {
		x.tell(event.Warning{Diagnostic: source.Warningf(x.t.Loop.Syntax.At, "the loop variable '%s' is already in use",
			x.loopNames.item).
			WithHelp("name another one: loop_control: {loop_var: NAME}")})
	}
}

// forced evaluates items for use in several goroutines: a lazy value must not be shared.
func forced(items []any) []any {
	items = slices.Clone(items)
	for i, item := range items {
		if whole, err := value.Force(item); err == nil {
			items[i] = whole
		}
	}
	return items
}

// parallel runs at most n items at a time. The results are in item order.
func (x *execution) parallel(ctx context.Context, items []any, n int) []*itemOutcome {
	out := make([]*itemOutcome, len(items))
	module.Parallel(len(items), n, func(i int) {
		out[i], _ = x.item(ctx, items, i)
		x.tellItem(out[i])
	})
	return out
}

// badLoop returns the outcome for a loop whose items cannot be evaluated. It is an error, unless the task is skipped
// by its condition, which is evaluated first.
func (x *execution) badLoop(ctx context.Context, err error) []*itemOutcome {
	o := &itemOutcome{startedAt: x.e.Now()}
	x.secrecy(x.view, o)
	if x.conditions(ctx, x.view, o); o.status != event.Skipped {
		x.refuse(x.view, o, undefinedOption(err))
	}
	t := *x.t
	t.Loop = nil
	x.t = &t
	return []*itemOutcome{o}
}

// items evaluates the items of the loop.
func (x *execution) items(ctx context.Context) ([]any, error) {
	l := x.t.Loop
	evaluate := l.Items.Value
	if l.Syntax.Lookup == "first_found" {
		evaluate = l.Items.Candidates
	}
	v, err := evaluate(ctx, x.view)
	if err != nil {
		return nil, err
	}
	if l.Lookup == "" {
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("Invalid data passed to 'loop', it requires a list, got this instead: %s. Hint: If you "+
				"passed a list/dict of just one element, try adding wantlist=True to your lookup invocation or use q/query "+
				"instead of lookup.", value.Str(v)) //nolint:staticcheck // users search for this text
		}
		return list, nil
	}
	terms, ok := v.([]any)
	if !ok || l.Lookup == "dict" {
		terms = []any{v}
	}
	return x.e.Templates.Env().RunLookup(ctx, x.view, l.Lookup, terms)
}

// loopControl returns the number of items to run at a time, and the pause between items.
func (x *execution) loopControl() (forks int, pause time.Duration, err error) {
	if v, set, err := x.ownTyped(x.view, x.t.Loop.Forks, playbook.Count, "loop_control: forks"); err != nil {
		return 0, 0, err
	} else if set {
		forks = v.(int)
	}
	if v, set, err := x.ownTyped(x.view, x.t.Loop.Pause, playbook.Seconds, "loop_control: pause"); err != nil {
		return 0, 0, err
	} else if set {
		pause = v.(time.Duration)
	}
	return forks, pause, nil
}

// item runs the task for one item.
func (x *execution) item(ctx context.Context, items []any, i int) (*itemOutcome, *vars.View) {
	names := x.loopNames
	v := x.view.WithAuthored(names.item, items[i], x.authoredItem(i)).With("ansible_loop_var", names.item)
	if names.index != "" {
		v = v.With(names.index, i).With("ansible_index_var", names.index)
	}
	var extended *value.Dict
	if x.loopFlag(v, x.t.Loop.Extended, false) {
		extended = x.extended(v, items, i)
		v = v.With("ansible_loop", extended)
	}
	x.e.hideItem(items[i])
	label := &event.Item{Label: x.label(items[i]), Index: i}
	own := *x
	own.view = v
	o := own.once(ctx, v, label)
	if d := x.t.Loop.Label; d != nil {
		done := newLesson()
		done.learn(x, o)
		got, err := d.Value(ctx, done.on(v))
		if err != nil {
			o.fail(undefinedOption(err).Error())
		} else {
			label.Label = value.Str(got)
		}
	}
	if o.noLog {
		label.Label = "None"
	}
	o.result = o.result.Copy()
	o.result.Set(names.item, items[i])
	o.result.Set("ansible_loop_var", names.item)
	if names.index != "" {
		o.result.Set("ansible_index_var", names.index)
		o.result.Set(names.index, i)
	}
	if extended != nil {
		o.result.Set("ansible_loop", extended)
	}
	if o.include != nil {
		o.include.bind(names, items[i], i)
	}
	return o, v
}

// authoredItems returns the items as written in a playbook or variables file; nil if they were computed.
func (x *execution) authoredItems(ctx context.Context, n int) []*template.Data {
	l := x.t.Loop
	if l.Lookup != "" && l.Lookup != "items" && l.Lookup != "list" {
		return nil
	}
	elements, _ := l.Items.Authored(ctx, x.view).Elements()
	if len(elements) != n { // with_items flattens lists
		return nil
	}
	return elements
}

func (x *execution) authoredItem(i int) *template.Data {
	if x.authored == nil {
		return nil
	}
	return x.authored[i]
}

// hideItem hides the values in an item whose names mark them as secret.
func (e *Engine) hideItem(item any) {
	if forced, err := value.Force(item); err == nil {
		e.hideNamed("", forced)
	}
}

func (x *execution) label(item any) string {
	if forced, err := value.Force(item); err == nil {
		item = forced
	}
	if item == nil {
		return value.Repr(nil)
	}
	return value.Str(item)
}

// extended returns the variable ansible_loop.
func (x *execution) extended(v *vars.View, items []any, i int) *value.Dict {
	n := len(items)
	d := value.NewDict("index", i+1, "index0", i, "first", i == 0, "last", i == n-1,
		"length", n, "revindex", n-i, "revindex0", n-i-1)
	if i > 0 {
		d.Set("previtem", items[i-1])
	}
	if i+1 < n {
		d.Set("nextitem", items[i+1])
	}
	if x.loopFlag(v, x.t.Loop.AllItems, true) {
		d.Set("allitems", items)
	}
	return d
}

// loopFlag evaluates a boolean of loop_control.
func (x *execution) loopFlag(v *vars.View, d *template.Data, def bool) bool {
	val, set, err := x.ownTyped(v, d, playbook.Bool, "")
	if err != nil {
		return false
	}
	if !set {
		return def
	}
	return val.(bool)
}

// breaks evaluates break_when after an item.
func (x *execution) breaks(ctx context.Context, v *vars.View, o *itemOutcome) bool {
	if len(x.t.Loop.BreakWhen) == 0 {
		return false
	}
	seen := x.withResult(v, o)
	for _, c := range x.t.Loop.BreakWhen {
		ok, err := c.Holds(ctx, seen)
		if err != nil {
			o.result.Set("failed", true)
			o.result.Set("msg", conditionError(c, err).Error())
			o.status = event.Failed
			return true
		}
		if !ok {
			return false
		}
	}
	return true
}

// tellItem reports an item. Includes are reported by their files instead.
func (x *execution) tellItem(o *itemOutcome) {
	if o.include != nil {
		return
	}
	x.tell(x.hostResult(o))
}

func (x *execution) hostResult(o *itemOutcome) event.HostResult {
	r := event.HostResult{
		Recalled: o.recalled,
		Task:     x.ev, Host: x.w.name, Delegate: o.delegate, Item: o.item, Status: o.status, Ignored: o.ignored,
		Result: o.shown(), Verbose: o.verbose, StartedAt: o.startedAt, Duration: o.took, Warnings: o.warnings,
	}
	if o.noLog {
		r.Warnings = nil // warnings can quote hidden values
		if truthKey(o.result, "stdout_truncated") || truthKey(o.result, "stderr_truncated") {
			r.Warnings = []string{"the result holds the end of a long output; the rest is lost, since no_log keeps it from disk"}
		}
	} else {
		r.Diff = o.diff
	}
	r.Message = r.Result.String("msg")
	return r
}

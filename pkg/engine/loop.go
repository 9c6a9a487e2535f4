package engine

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/project"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// loop runs the task for each item, and reports each as it ends.
func (x *execution) loop(ctx context.Context) []*itemOutcome {
	items, err := x.items(ctx)
	if err != nil {
		return x.badLoop(ctx, err)
	}
	forks := x.loopNumber(x.t.Loop.Forks)
	if forks > 1 {
		return x.parallel(ctx, items, forks)
	}
	pause := x.loopPause()
	out := make([]*itemOutcome, 0, len(items))
	for i := range items {
		if i > 0 && pause > 0 && !sleep(ctx, pause) {
			break
		}
		o, v := x.item(ctx, items, i)
		x.tellItem(o)
		out = append(out, o)
		if ctx.Err() != nil || x.breaks(ctx, v, o) {
			break
		}
	}
	return out
}

// parallel runs items at most n at a time; the results stay in item order.
func (x *execution) parallel(ctx context.Context, items []any, n int) []*itemOutcome {
	out := make([]*itemOutcome, len(items))
	slots := make(chan struct{}, n)
	var wg sync.WaitGroup
	for i := range items {
		slots <- struct{}{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			out[i], _ = x.item(ctx, items, i)
			x.tellItem(out[i])
			<-slots
		}()
	}
	wg.Wait()
	return out
}

// badLoop is a loop whose items cannot be evaluated: an error, unless the
// condition, which comes first, says that the task is not to run.
func (x *execution) badLoop(ctx context.Context, err error) []*itemOutcome {
	o := &itemOutcome{startedAt: x.e.Now(), noLog: x.flag(x.view, project.NoLog)}
	if skipped := x.conditions(ctx, x.view, o); !skipped {
		o.fail(undefinedOption(err).Error())
		o.ignored = x.flag(x.view, project.IgnoreErrors)
	}
	x.t = withoutLoop(x.t)
	return []*itemOutcome{o}
}

func withoutLoop(t *project.Task) *project.Task {
	out := *t
	out.Loop = nil
	return &out
}

// items evaluates what the loop goes over.
func (x *execution) items(ctx context.Context) ([]any, error) {
	l := x.t.Loop
	v, err := l.Items.Value(ctx, x.view)
	if err != nil {
		return nil, err
	}
	if l.Syntax.Lookup == "" {
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("Invalid data passed to 'loop', it requires a list, got this instead: %s. Hint: If you passed a list/dict of just one element, try adding wantlist=True to your lookup invocation or use q/query instead of lookup.", value.Str(v)) //nolint:staticcheck // users search for this text
		}
		return list, nil
	}
	terms, ok := v.([]any)
	if !ok || l.Syntax.Lookup == "dict" {
		terms = []any{v}
	}
	return x.e.Templates.Env().RunLookup(ctx, x.view, l.Syntax.Lookup, terms)
}

func (x *execution) loopNumber(d *template.Data) int {
	if d == nil {
		return 0
	}
	v, err := d.Value(x.view.Context(), x.view)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(value.Str(v))
	return n
}

// loopPause is how long to wait between items.
func (x *execution) loopPause() time.Duration {
	if x.t.Loop.Pause == nil {
		return 0
	}
	v, err := x.t.Loop.Pause.Value(x.view.Context(), x.view)
	if err != nil {
		return 0
	}
	d, _ := seconds(v)
	return d
}

// item runs the task for one item.
func (x *execution) item(ctx context.Context, items []any, i int) (*itemOutcome, *vars.View) {
	l := x.t.Loop.Syntax
	v := x.view.With(l.Var, items[i]).With("ansible_loop_var", l.Var)
	if l.IndexVar != "" {
		v = v.With(l.IndexVar, i).With("ansible_index_var", l.IndexVar)
	}
	if d := x.t.Loop.Extended; d != nil {
		if on, err := d.Value(ctx, v); err == nil && truth(on) {
			v = v.With("ansible_loop", x.extended(ctx, v, items, i))
		}
	}
	label := &event.Item{Label: x.label(items[i]), Index: i}
	own := *x
	own.view = v
	o := own.once(ctx, v, label)
	o.value = items[i]
	if d := x.t.Loop.Label; d != nil {
		got, err := d.Value(ctx, v)
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
	o.result.Set(l.Var, items[i])
	o.result.Set("ansible_loop_var", l.Var)
	if l.IndexVar != "" {
		o.result.Set("ansible_index_var", l.IndexVar)
		o.result.Set(l.IndexVar, i)
	}
	if o.include != nil {
		o.include.bind(l.Var, items[i], l.IndexVar, i)
	}
	return o, v
}

func (x *execution) label(item any) string {
	if forced, err := value.Force(item); err == nil {
		item = forced
	}
	return value.Str(item)
}

// extended is the variable ansible_loop.
func (x *execution) extended(ctx context.Context, v *vars.View, items []any, i int) *value.Dict {
	n := len(items)
	d := value.NewDict("index", i+1, "index0", i, "first", i == 0, "last", i == n-1,
		"length", n, "revindex", n-i, "revindex0", n-i-1)
	if i > 0 {
		d.Set("previtem", items[i-1])
	}
	if i+1 < n {
		d.Set("nextitem", items[i+1])
	}
	all := true
	if a := x.t.Loop.AllItems; a != nil {
		if on, err := a.Value(ctx, v); err == nil {
			all = truth(on)
		}
	}
	if all {
		d.Set("allitems", items)
	}
	return d
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
			o.fail(fmt.Sprintf("The conditional check '%s' failed. The error was: %s", c.Src, reason(err)))
			return true
		}
		if !ok {
			return false
		}
	}
	return true
}

// tellItem reports an item; includes are reported by their files.
func (x *execution) tellItem(o *itemOutcome) {
	if o.include != nil {
		return
	}
	x.tell(x.hostResult(o))
}

func (x *execution) hostResult(o *itemOutcome) event.HostResult {
	r := event.HostResult{
		Task: x.ev, Host: x.w.name, Delegate: o.delegate, Item: o.item, Status: o.status, Ignored: o.ignored,
		Result: o.shown(), Verbose: o.verbose, StartedAt: o.startedAt, Duration: o.took, Warnings: o.warnings,
	}
	if !o.noLog {
		r.Diff = o.diff
	}
	r.Message = r.Result.String("msg")
	return r
}

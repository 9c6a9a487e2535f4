package engine

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/connector"
	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// take converts the return value of the module to a result.
func (x *execution) take(o *itemOutcome, res module.Result, err error) {
	if err != nil {
		var lost *connector.UnreachableError
		if errors.As(err, &lost) {
			o.status = event.Unreachable
			o.result = value.NewDict("changed", false, "unreachable", true, "msg", lost.Error())
			o.warnings = res.Warnings
			return
		}
		// The change that the module announced did not happen.
		res.Failed, res.Changed = true, false
		if res.Msg == "" {
			res.Msg = err.Error()
		} else {
			res.Msg += ": " + err.Error()
		}
	}
	if add, ok := res.Effect.(module.AddHost); ok && !x.e.Inventory.HasVars(add.Name, add.Vars) {
		res.Changed = true // the module compares the groups only
	}
	d := value.NewDict()
	d.Grow(res.Data.Len() + 4)
	for k, v := range res.Data.All() {
		d.Set(k, value.Of(v))
		if k == "stdout" || k == "stderr" {
			if lines := k.(string) + "_lines"; !res.Data.Has(lines) {
				d.SetLines(lines, value.Str(v))
			}
		}
	}
	d.Set("changed", res.Changed)
	d.Set("failed", res.Failed)
	if res.Msg != "" {
		d.Set("msg", res.Msg)
	}
	if res.Skipped {
		d.Set("skipped", true)
	}
	if len(res.Warnings) > 0 {
		d.Set("warnings", value.Of(res.Warnings))
	}
	if len(res.Diff) > 0 && !d.Has("diff") {
		d.Set("diff", diffValue(res.Diff))
	}
	if res.Facts != nil {
		d.Set("ansible_facts", res.Facts)
	}
	o.result, o.facts, o.factKind = d, res.Facts, res.FactKind
	if o.noLog = o.noLog || res.NoLog; o.noLog {
		x.hide(o)
	} else if res.FactKind != module.Gathered || res.Facts == nil {
		x.e.hideNamed("", o.result)
	}
	o.diff, o.verbose, o.warnings = res.Diff, res.Verbose, res.Warnings
	if res.Effect != nil {
		o.effects = append(o.effects, res.Effect)
	}
	o.status, o.badInput = status(res), res.BadInput
}

func status(res module.Result) event.Status {
	switch {
	case res.Failed:
		return event.Failed
	case res.Skipped:
		return event.Skipped
	case res.Changed:
		return event.Changed
	}
	return event.OK
}

// diffValue returns a diff as in results: attributes are one dict, file contents are a list.
func diffValue(diffs []event.Diff) any {
	list := make([]any, len(diffs))
	for i, d := range diffs {
		list[i] = d.Value()
	}
	if _, isDict := diffs[0].Before.(*value.Dict); isDict && len(diffs) == 1 {
		return list[0]
	}
	return list
}

// evaluate applies changed_when and failed_when.
func (x *execution) evaluate(ctx context.Context, v *vars.View, o *itemOutcome) {
	if len(x.t.ChangedWhen) == 0 && len(x.t.FailedWhen) == 0 {
		return
	}
	changedWhen, given, ok := x.verdict(ctx, v, o, x.t.ChangedWhen, "changed_when")
	if given {
		o.result.Set("changed", changedWhen)
	}
	if ok { // a condition that cannot be evaluated fails the task, whatever failed_when is
		if failed, given, _ := x.verdict(ctx, v, o, x.t.FailedWhen, "failed_when"); given {
			o.result.Set("failed", failed)
			o.result.Set("failed_when_result", failed)
		}
	}
	changed, _ := o.result.Get("changed")
	isFailed, _ := o.result.Get("failed")
	switch {
	case value.Truth(isFailed):
		o.status = event.Failed
	case value.Truth(changed):
		o.status = event.Changed
	default:
		o.status = event.OK
	}
}

// verdict reports whether all conditions hold; given is false if there are no conditions. A condition that cannot be
// evaluated fails the task, and ok is false.
func (x *execution) verdict(ctx context.Context, v *vars.View, o *itemOutcome, conds []*project.Cond, what string) (all,
	given, ok bool) {
	if len(conds) == 0 {
		return false, false, true
	}
	seen := x.withResult(v, o)
	for _, c := range conds {
		ok, err := c.Holds(ctx, seen)
		if err != nil {
			o.result.Set("failed", true)
			o.result.Set(what+"_result", err.Error())
			o.result.Set("msg", conditionError(c, err).Error())
			return false, false, false
		}
		if !ok {
			return false, true, true
		}
	}
	return true, true, true
}

// finish combines the results of the executions to the result of the task.
func (x *execution) finish(out *outcome) {
	if x.t.Loop == nil {
		o := out.items[0]
		out.status, out.ignored, out.result = o.status, o.ignored, o.result
		if o.include != nil {
			out.includes = append(out.includes, *o.include)
		}
		return
	}
	out.status, out.result = event.OK, value.NewDict()
	results := make([]any, 0, len(out.items))
	skipped := len(out.items) > 0
	failedIgnored := true
	changed := false
	for _, o := range out.items {
		results = append(results, o.result)
		skipped = skipped && o.status == event.Skipped
		changed = changed || truthKey(o.result, "changed")
		if o.status >= event.Failed {
			out.status = max(out.status, o.status)
			failedIgnored = failedIgnored && o.ignored
		}
		if o.include != nil {
			out.includes = append(out.includes, *o.include)
		}
	}
	out.result.Set("changed", changed)
	out.result.Set("results", results)
	switch {
	case out.status >= event.Failed:
		out.ignored = failedIgnored
		out.result.Set("failed", true)
		out.result.Set("skipped", false)
		out.result.Set("msg", "One or more items failed")
	case len(out.items) == 0:
		out.status = event.Skipped
		out.result.Set("skipped", true)
		out.result.Set("skipped_reason", "No items in the list")
	case skipped:
		out.status = event.Skipped
		out.result.Set("skipped", true)
		out.result.Set("msg", "All items skipped")
	default:
		if changed {
			out.status = event.Changed
		}
		out.result.Set("failed", false)
		out.result.Set("skipped", false)
		out.result.Set("msg", "All items completed")
	}
}

func truthKey(d *value.Dict, key string) bool {
	v, _ := d.Get(key)
	return value.Truth(v)
}

// registered returns the value of the registered variable: the result, or its stdout decoded according to
// register_type.
func (x *execution) registered(result *value.Dict) any {
	kind := x.t.Syntax.RegisterType
	if kind == "" || kind == "string" || result == nil {
		return result
	}
	out := result.String("stdout")
	if kind == "json" {
		if v, err := value.FromJSON([]byte(out)); err == nil {
			return v
		}
		return result
	}
	if v, err := value.DecodeYAML(yaml.NewDecoder(strings.NewReader(out))); err == nil || errors.Is(err, io.EOF) {
		return v
	}
	return result
}

const censored = "the output has been hidden due to the fact that 'no_log: true' was specified for this result"

// hide prevents later tasks from showing the output of a task with no_log, for example through its registered
// variable. Keys that describe only where or how the task ran are not secret.
func (x *execution) hide(o *itemOutcome) {
	for _, key := range []string{"stdout", "stderr", "content", "json", "ansible_facts"} {
		v, _ := o.result.Get(key)
		for _, text := range value.Strings(key, v) {
			x.e.Redact.Add(text)
		}
	}
	if line, ok := o.result.Lookup("cmd"); ok {
		for _, word := range value.Strings("cmd", line) {
			if mayBeSecret(word) {
				x.e.Redact.Add(word)
			}
		}
	}
	x.e.hideNamed("", o.result)
}

// hideNamed hides the values whose names mark them as secret.
func (e *Engine) hideNamed(name string, v any) {
	e.Redact.AddNamed(value.Named(name, v, redact.Within))
}

// longOption matches the name of an option. If it were hidden, it would be missing in all other output, too, such as
// the command that a summary advises.
var longOption = regexp.MustCompile(`^--[a-z][a-z-]*$`)

// mayBeSecret reports whether to hide an argument of a command. Option names are not hidden, and neither are short
// arguments, which are seldom secret and occur often in other output.
func mayBeSecret(word string) bool { return len(word) >= 8 && !longOption.MatchString(word) }

// shown returns the result in the form that can be shown.
func (o *itemOutcome) shown() *value.Dict {
	if !o.noLog {
		return o.result
	}
	out := value.NewDict("censored", censored, "changed", truthKey(o.result, "changed"))
	for _, k := range []string{"attempts", "retries", "failed", "skipped", "unreachable"} {
		if v, ok := o.result.Get(k); ok {
			out.Set(k, v)
		}
	}
	return out
}

package ui

import (
	"fmt"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/value"
)

func (p *printer) result(e event.HostResult) {
	if p.o.NoSkipped && e.Status == event.Skipped && len(e.Warnings) == 0 {
		return
	}
	if !isSilent(e) {
		p.under(e.Task)
	}
	for _, w := range e.Warnings {
		p.warning(w)
	}
	for _, d := range e.Diff {
		p.diff(d)
	}
	switch {
	case e.Status == event.Failed || e.Status == event.Unreachable:
		p.failure(e)
	case !isSilent(e):
		p.success(e)
	}
}

// isSilent reports results that are shown elsewhere: those of an include by Included, of a loop
// by its items.
func isSilent(e event.HostResult) bool {
	if e.Status == event.Failed || e.Status == event.Unreachable {
		return false
	}
	return e.Include && e.Status != event.Skipped || e.Loop && e.Status != event.Skipped
}

func label(e event.HostResult) string {
	if e.Delegate != "" && e.Delegate != e.Host {
		return e.Host + " -> " + e.Delegate
	}
	return e.Host
}

func (p *printer) success(e event.HostResult) {
	word, c := "ok", green
	switch e.Status {
	case event.Changed:
		word, c = "changed", yellow
	case event.Skipped:
		word, c = "skipping", cyan
	}
	text := fmt.Sprintf("%s: [%s]", word, label(e))
	if e.Item != nil {
		text += fmt.Sprintf(" => (item=%s)", e.Item.Label)
		if e.Status == event.Skipped {
			text += " "
		}
	}
	if lines := p.lines(e); lines != "" {
		p.print(c, text+" =>")
		p.block(c, "  ", lines)
		return
	}
	if p.o.Verbosity > 0 || e.Verbose && e.Status != event.Skipped {
		p.json(c, text+" => ", p.dump(p.clean(e), e.Verbose))
		return
	}
	p.print(c, text)
}

// lines is the message of a debug task if it has several lines: it is shown as text, and in the
// Ansible format as JSON.
func (p *printer) lines(e event.HostResult) string {
	if p.o.Format == Ansible || p.o.Verbosity > 0 || !e.Verbose || e.Status == event.Skipped || action(e.Task) != "debug" {
		return ""
	}
	v, _ := e.Result.Get("msg")
	text, _ := v.(string)
	if text = strings.TrimRight(text, "\n"); !strings.Contains(text, "\n") {
		return ""
	}
	return text
}

// action is the module of a task without its collection.
func action(t *event.Task) string { return t.Action[strings.LastIndexByte(t.Action, '.')+1:] }

// clean removes internal values of the module from a result.
func (p *printer) clean(e event.HostResult) *value.Dict {
	if e.Loop { // its items were shown already
		out := e.Result.Copy()
		out.Delete("results")
		return out
	}
	if action(e.Task) != "debug" || e.Result.Len() == 0 {
		return e.Result
	}
	out := value.NewDict()
	for k, v := range e.Result.All() {
		if e.Result.Has("msg") && k == "msg" || !e.Result.Has("msg") && !hiddenInDebug(k) {
			out.Set(k, v)
		}
	}
	return out
}

func hiddenInDebug(key any) bool {
	switch key {
	case "changed", "failed", "skipped", "invocation", "skip_reason":
		return true
	}
	return false
}

// dump is a result as JSON with sorted keys: on one line, or indented for -vvv and for results
// that are always shown.
func (p *printer) dump(d *value.Dict, indent bool) string {
	shown := value.NewDict()
	for k, v := range d.All() {
		name, _ := k.(string)
		if p.isHidden(name) || name == "failed" || name == "skipped" { // the line shows it already
			continue
		}
		shown.Set(k, v)
	}
	o := value.JSONOptions{SortKeys: true}
	if indent || p.o.Verbosity > 2 {
		o.Indent = 4
	}
	text, err := value.JSON(event.Map(shown, p.o.Redact.Text), o)
	if err != nil {
		return fmt.Sprintf(`{"msg": "the result cannot be shown: %v"}`, err)
	}
	return text
}

func (p *printer) isHidden(key string) bool {
	switch key {
	case "invocation", "diff", "exception":
		return p.o.Verbosity < 3
	case "warnings", "deprecations":
		return true
	}
	return strings.HasPrefix(key, "_ansible_")
}

package journal

import (
	"fmt"
	"slices"

	"kubekey/pkg/event"
	"kubekey/pkg/value"
)

// Limits of what is stored: a command that prints gigabytes must not fill kk's disk over a
// hundred runs.
const (
	maxLines = 1000     // printed by one task on one host while it runs
	maxText  = 64 << 10 // bytes of one text of a result: its beginning and its end
	maxItems = 1000     // of one list of a result: the last ones
)

// place is one task on one host.
type place struct {
	task int
	host string
}

// bound returns the event as it is stored, nil to omit it.
func (w *Writer) bound(e event.Event) event.Event {
	switch e := e.(type) {
	case event.Output:
		at := place{e.Task.ID, e.Host}
		w.lines[at]++
		if w.lines[at] == maxLines+1 {
			e.Line = "(more lines, omitted from the journal)"
		}
		if w.lines[at] > maxLines+1 {
			return nil
		}
		return e
	case event.Retry:
		e.Result = w.boundResult(e.Result)
		return e
	case event.HostResult:
		delete(w.lines, place{e.Task.ID, e.Host})
		e.Partial = e.Result != nil && isLarge(e.Result)
		e.Result = w.boundResult(e.Result)
		e.Diff = boundDiffs(e.Diff)
		return e
	}
	return e
}

// boundDiffs removes both sides of a diff if one is too long: a truncated text would show
// changes that do not exist.
func boundDiffs(diffs []event.Diff) []event.Diff {
	out := slices.Clone(diffs)
	for i, d := range out {
		if isLarge(d.Before) || isLarge(d.After) || isLarge(d.Prepared) {
			out[i].Before, out[i].After, out[i].Prepared = nil, nil, ""
			out[i].Note = fmt.Sprintf("this diff is omitted from the journal: the text is longer than %d bytes", maxText)
		}
	}
	return out
}

func (w *Writer) boundResult(d *value.Dict) *value.Dict {
	if d == nil || !isLarge(d) {
		return d
	}
	return w.shorten(d).(*value.Dict)
}

func isLarge(v any) bool {
	switch v := v.(type) {
	case string:
		return len(v) > maxText
	case []any:
		if len(v) > maxItems {
			return true
		}
		for _, e := range v {
			if isLarge(e) {
				return true
			}
		}
	case *value.Dict:
		for _, e := range v.All() {
			if isLarge(e) {
				return true
			}
		}
	}
	return false
}

// shorten copies a value without the parts beyond the limits. Secrets are hidden before a text
// is truncated: half a secret would not be recognized.
func (w *Writer) shorten(v any) any {
	switch v := v.(type) {
	case string:
		if len(v) <= maxText {
			return v
		}
		return cut(w.hide.Text(v))
	case []any:
		out := []any{}
		if over := len(v) - maxItems; over > 0 {
			out = append(out, fmt.Sprintf("(%d items, omitted from the journal)", over))
			v = v[over:]
		}
		for _, e := range v {
			out = append(out, w.shorten(e))
		}
		return out
	case *value.Dict:
		out := value.NewDict()
		for k, e := range v.All() {
			out.Set(k, w.shorten(e))
		}
		return out
	}
	return v
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	const half = maxText / 2
	return fmt.Sprintf("%s\n(%d bytes, omitted from the journal)\n%s", s[:half], len(s)-2*half, s[len(s)-half:])
}

package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/ui"
	"kubekey/pkg/value"
)

// detail is what the page shows for one result on request.
type detail struct {
	Msg      string   `json:"msg,omitempty"`
	Cmd      string   `json:"cmd,omitempty"`
	RC       *int     `json:"rc,omitempty"`
	Stdout   string   `json:"stdout,omitempty"`
	Stderr   string   `json:"stderr,omitempty"`
	Diff     []string `json:"diff,omitempty"` // unified diffs, or why there is none
	More     string   `json:"more,omitempty"` // the rest of the result, as JSON
	Delegate string   `json:"delegate,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Items    []item   `json:"items,omitempty"`
}

// item is one item of a loop.
type item struct {
	Label string `json:"label"`
	State state  `json:"state"`
	Took  int64  `json:"took"`
	detail
}

// maxMore bounds the rest of a result: facts of a host are tens of kilobytes,
// and nobody reads them here.
const maxMore = 8 << 10

// shownKeys are the keys of a result that have their own place on the page, or repeat another.
var shownKeys = []string{
	"changed", "failed", "skipped", "unreachable", "msg", "cmd", "rc", "stdout", "stderr", "stdout_lines", "stderr_lines",
	"start", "end", "delta", "invocation", "diff", "results", "warnings", "item", "ansible_loop_var", "ansible_index_var",
}

func detailOf(e event.HostResult) detail {
	d := detail{Delegate: e.Delegate, Warnings: e.Warnings, Msg: e.Message}
	for _, diff := range e.Diff {
		if text := ui.Unified(diff); text != "" {
			d.Diff = append(d.Diff, text)
		}
	}
	if e.Result == nil {
		return d
	}
	if msg, ok := e.Result.Get("msg"); ok {
		d.Msg = plain(msg)
	}
	if cmd, ok := e.Result.Get("cmd"); ok {
		d.Cmd = command(cmd)
	}
	if rc, ok := e.Result.Get("rc"); ok {
		if n, ok := rc.(int); ok {
			d.RC = &n
		}
	}
	d.Stdout, d.Stderr = text(e.Result, "stdout"), text(e.Result, "stderr")
	d.More = more(e.Result)
	return d
}

// plain is text as it is, and other data as JSON.
func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	out, err := value.JSON(v, value.JSONOptions{Indent: 2})
	if err != nil {
		return value.Str(v)
	}
	return out
}

func text(d *value.Dict, key string) string {
	v, _ := d.Get(key)
	s, _ := v.(string)
	return s
}

func command(v any) string {
	words, ok := v.([]any)
	if !ok {
		return plain(v)
	}
	var out []string
	for _, w := range words {
		out = append(out, value.Str(w))
	}
	return strings.Join(out, " ")
}

func more(result *value.Dict) string {
	rest := value.NewDict()
	for k, v := range result.All() {
		if name, ok := k.(string); !ok || !slices.Contains(shownKeys, name) {
			rest.Set(k, v)
		}
	}
	if rest.Len() == 0 {
		return ""
	}
	out := plain(rest)
	if len(out) > maxMore {
		out = fmt.Sprintf("%s\n… (%d more bytes; see kk runs show -o json)", strings.ToValidUTF8(out[:maxMore], ""),
			len(out)-maxMore)
	}
	return out
}

// chunkSize is the number of details in one part of the page. A part is parsed when one of its
// details is shown, so that a large run opens quickly.
const chunkSize = 512

// details are all details of a run, each once: most hosts have the same results.
type details struct {
	list  []json.RawMessage
	known map[string]int
}

// add returns the number of a detail, -1 for an empty one.
func (ds *details) add(d detail) int {
	text, err := json.Marshal(d)
	if err != nil || string(text) == "{}" {
		return -1
	}
	n, ok := ds.known[string(text)]
	if !ok {
		if ds.known == nil {
			ds.known = map[string]int{}
		}
		n = len(ds.list)
		ds.list = append(ds.list, text)
		ds.known[string(text)] = n
	}
	return n
}

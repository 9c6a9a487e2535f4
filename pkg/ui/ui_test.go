package ui

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/event"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

var update = flag.Bool("update", false, "rewrite the expected outputs")

var start = time.Date(2026, 1, 2, 8, 39, 28, 0, time.UTC)

// story is the events of a run in which everything happens.
func story() []event.Event {
	file := source.NewFile("site.yml", []byte("- hosts: all\n"))
	at := func(line int) source.Pos { return source.Pos{File: file, Line: line, Col: 5} }
	task := func(id int, name, action string) *event.Task {
		return &event.Task{ID: id, Name: name, Action: action, At: at(id)}
	}
	facts := task(1, "Gathering Facts", "gather_facts")
	install := task(2, "install", "copy")
	install.Role = "web"
	install.Trace = []source.Frame{{What: "role web", At: at(3)}, {What: "include_tasks main.yml", At: at(9)}}
	debug, loop, fail := task(3, "say", "ansible.builtin.debug"), task(4, "", "command"), task(5, "break", "command")
	handler := task(6, "restart", "systemd")
	handler.Handler = true
	include, meta := task(7, "more", "include_tasks"), task(8, "", "meta")
	dict := value.NewDict
	started := func(t *event.Task, seconds int) event.Event {
		return event.TaskStarted{Task: t, Time: start.Add(time.Duration(seconds)*time.Second + 123*time.Millisecond)}
	}
	item := func(label string, i int) *event.Item { return &event.Item{Label: label, Index: i} }
	failed := dict("msg", "non-zero return code", "rc", 1, "cmd", []any{"cat", "/none"}, "changed", true,
		"stdout", "", "stderr", "cat: /none: hunter22\nsecond \x1b[2Jline\n", "stdout_lines", []any{}, "invocation",
		dict("a", 1))
	return []event.Event{
		event.RunStarted{ID: "r1", Time: start, Playbooks: []string{"site.yml"}},
		event.PlaybookStarted{Path: "/play/site.yml", Plays: 3},
		event.PlayStarted{Name: "nobody", At: at(1)},
		event.PlayEmpty{Name: "nobody"},
		event.PlayEmpty{Name: "nobody either"},
		event.PlayStarted{Name: "Demo", Hosts: []string{"h1", "h2"}, At: at(1)},
		started(facts, 0),
		event.HostResult{Task: facts, Host: "h1", Status: event.OK, Result: dict("ansible_facts", dict("os", "x"))},
		event.HostResult{Task: facts, Host: "h2", Status: event.Unreachable, Result: dict("changed", false, "msg",
			"Failed to connect to the host via ssh: no route", "unreachable", true)},
		started(install, 1),
		event.Output{Task: install, Host: "h1", Line: "half way\x07 hunter22"},
		event.Output{Task: install, Host: "h1", Line: "oh", Stderr: true},
		event.HostResult{
			Task: install, Host: "h1", Delegate: "h3", Status: event.Changed, Result: dict("changed", true, "dest",
				"/etc/motd", "_ansible_x", 1, "diff", []any{}),
			Diff: []event.Diff{
				{BeforeHeader: "/etc/motd", AfterHeader: "/etc/motd", Before: "a\nb\nc\n", After: "a\nhunter22\nc"},
				{Before: dict("mode", "0600"), After: dict("mode", "0644")},
				{Note: "diff skipped: destination file appears to be binary"},
				{Prepared: "@@ done @@\n-x\n+y\n"},
			},
			Warnings: []string{"this is a rather long warning that does not fit on one line of the screen, so it is wrapped",
				"hunter22"},
		},
		event.Notified{Handler: "restart", Host: "h1"},
		started(debug, 3),
		event.HostResult{Task: debug, Host: "h1", Verbose: true, Result: dict("msg", "hi", "changed", false)},
		event.HostResult{Task: debug, Host: "h1", Verbose: true, Result: dict("x", []any{1, "ü"}, "changed", false)},
		started(loop, 4),
		event.HostResult{Task: loop, Host: "h1", Item: item("a", 0), Status: event.Skipped, Result: dict("skipped", true)},
		event.HostResult{Task: loop, Host: "h1", Item: item("b", 1), Status: event.OK, Result: dict("rc", 0)},
		event.HostResult{Task: loop, Host: "h1", Item: item("c", 2), Status: event.Failed,
			Result: dict("msg", "bad item", "ansible_loop_var", "item")},
		event.HostResult{Task: loop, Host: "h1", Loop: true, Status: event.Failed, Ignored: true,
			Result: dict("msg", "One or more items failed")},
		event.HostResult{Task: loop, Host: "h1", Loop: true, Status: event.Skipped, Result: dict("msg", "All items skipped")},
		event.HostResult{Task: loop, Host: "h1", Loop: true, Status: event.Changed},
		started(meta, 4),
		event.MetaRan{Task: meta, Action: "flush_handlers", Host: "h1", Message: "triggered running handlers for h1"},
		event.MetaRan{Task: meta, Action: "flush_handlers", Host: "h2", Message: "flush_handlers",
			Skipped: "flush_handlers conditional evaluated to False, not running handlers for h2"},
		started(handler, 5),
		event.Retry{Task: handler, Host: "h1", Attempts: 1, Left: 2, Result: dict("rc", 3)},
		event.HostResult{Task: handler, Host: "h1", Status: event.OK, Result: dict("changed", false)},
		started(include, 6),
		event.Included{Task: include, Path: "/play/more.yml", Hosts: []string{"h1", "h2"}, Item: item("x", 0)},
		event.HostResult{Task: include, Host: "h1", Include: true, Status: event.OK},
		event.Warning{Diagnostic: source.Warningf(at(2), "odd").WithHelp("fix it")},
		event.Warning{Diagnostic: source.Warningf(at(2), "odd").WithHelp("fix it")},
		started(fail, 7),
		event.HostResult{Task: fail, Host: "h1", Status: event.Failed, Ignored: true, Result: failed},
		event.HostResult{Task: install, Host: "h1", Status: event.Failed, Result: dict("msg", "line one\nline two", "cmd",
			"ls -l", "rc", 2, "stdout", "out\n")},
		event.HostResult{Task: fail, Host: "h1", Status: event.Failed, Result: dict("censored",
			"the output has been hidden")},
		event.NoMoreHosts{},
		event.PlayEnded{Name: "Demo"},
		event.RunEnded{ID: "r1", Time: start.Add(70 * time.Second), Duration: 70 * time.Second, ExitCode: 2,
			Err: "stopped early", Stats: map[string]*event.Stats{
				"h1": {OK: 4, Changed: 1, Failed: 2, Skipped: 1, Ignored: 2},
				"h2": {Unreachable: 1},
				"a-host-with-a-rather-long-name.example.org": {OK: 1, Rescued: 1},
			}},
	}
}

func TestGolden(t *testing.T) {
	cases := map[string]Options{
		"text":    {},
		"v":       {Verbosity: 1},
		"vv":      {Verbosity: 2},
		"vvv":     {Verbosity: 3},
		"ansible": {Format: Ansible},
		"color":   {Color: true, Width: func() int { return 100 }},
		"timing":  {Timing: true, Format: Ansible},
		"jsonl":   {Format: JSONL},
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			o.Out, o.Err, o.Redact, o.Now = &out, &errs, &redact.Set{}, func() time.Time { return start }
			o.Redact.Add("hunter22")
			sink, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range story() {
				sink.Emit(e)
			}
			sink.Hold()()
			if err := sink.Close(); err != nil {
				t.Fatal(err)
			}
			got := out.String() + "--- stderr\n" + errs.String()
			if strings.Contains(got, "hunter22") {
				t.Error("a secret is shown")
			}
			golden(t, name, got)
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestUnknownFormat(t *testing.T) {
	if _, err := New(Options{Format: "xml"}); err == nil || !strings.Contains(err.Error(), `unknown output format "xml"`) {
		t.Error(err)
	}
}

func TestUseColor(t *testing.T) {
	cases := []struct {
		tty  bool
		env  string
		want bool
	}{
		{true, "", true}, {false, "", false}, {true, "NO_COLOR=1", false}, {false, "FORCE_COLOR=1", true},
		{true, "TERM=dumb", false},
		{true, "NO_COLOR=1 FORCE_COLOR=1", false},
	}
	for _, c := range cases {
		env := map[string]string{}
		for _, kv := range strings.Fields(c.env) {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		if got := UseColor(c.tty, func(k string) string { return env[k] }); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestDiagnostics(t *testing.T) {
	file := source.NewFile("site.yml", []byte("- hosts: all\n  password: hunter22\n"))
	ds := source.Diagnostics{
		source.Errorf(source.Pos{File: file, Line: 2, Col: 3}, "bad key").WithHelp("did you mean x?"),
		source.Warningf(source.Pos{}, "odd"),
	}
	var hide redact.Set
	hide.Add("hunter22")
	var plain, colored bytes.Buffer
	Diagnostics(&plain, ds, false, &hide)
	Diagnostics(&colored, ds, true, nil)
	golden(t, "diagnostics", plain.String()+colored.String())
}

func TestStatusLine(t *testing.T) {
	var out lockedBuffer
	now := start
	o := Options{Out: &out, Err: &out, TTY: true, Width: func() int { return 60 }, Redact: &redact.Set{},
		Now: func() time.Time { return now }}
	o.Redact.Add("hunter22")
	p := newPrinter(o)
	task := &event.Task{ID: 1, Name: "pull images", Action: "image"}
	p.Emit(event.TaskStarted{Task: task, Time: start})
	for _, h := range []string{"h1", "h2", "h3", "h4"} {
		p.Emit(event.HostStarted{Task: task, Host: h, Item: "etcd", Time: start})
	}
	p.Emit(event.Output{Task: task, Host: "h1", Line: "layer\x1b[2J hunter22"})
	now = start.Add(75 * time.Second)
	draw := func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		out.Reset()
		p.status.draw()
		return out.String()
	}
	if got, want := draw(), "\r\x1b[K1:15 | h1, h2, h3 +1 | pull images (etcd) | layer\\x1b[2J **"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	release := p.Hold()
	if got := draw(); got != "" || p.status.drawn > 0 {
		t.Errorf("held back, but the line shows %q", got)
	}
	release()
	release()
	draw()
	p.Emit(event.HostResult{Task: task, Host: "h1", Status: event.OK})
	if got := out.String(); !strings.HasSuffix(got, "\r\x1b[Kok: [h1]\n") {
		t.Errorf("the line is not cleared before other output: %q", got)
	}
	p.Emit(event.PlayEnded{})
	if got := draw(); got != "" {
		t.Errorf("nobody runs, but the line shows %q", got)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// lockedBuffer is a buffer that the drawing goroutine may write to as well.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedBuffer) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

func TestStatusLineIsDrawnByItself(t *testing.T) {
	var out lockedBuffer
	p := newPrinter(Options{Out: &out, Err: &out, TTY: true, Redact: &redact.Set{}, Now: time.Now})
	defer p.Close()
	p.Emit(event.HostStarted{Task: &event.Task{ID: 1, Name: "wait"}, Host: "h1"})
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(out.String(),
		"h1 | wait"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no status line: %q", out.String())
		}
	}
}

func TestWidths(t *testing.T) {
	if got := textWidth("a\u0301日本🚀"); got != 7 {
		t.Error(got)
	}
	if got := fit("日本語", 5); got != "日本" {
		t.Errorf("%q", got)
	}
	if diff := cmp.Diff([]string{"aa bb", "ccc", "ccc", "c d"}, wrap("aa bb ccccccc d", 5)); diff != "" {
		t.Error(diff)
	}
}

package ui

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/event"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// closing returns what a sink prints of events, from the recap on.
func closing(t *testing.T, o Options, events ...event.Event) string {
	t.Helper()
	var out bytes.Buffer
	o.Out, o.Err = &out, &out
	show(t, o, events...)
	_, after, _ := strings.Cut(out.String(), "PLAY RECAP")
	_, after, _ = strings.Cut(after, "\n")
	return after
}

// show gives events to a sink, and closes it.
func show(t *testing.T, o Options, events ...event.Event) {
	t.Helper()
	o.Redact, o.Now = &redact.Set{}, func() time.Time { return start }
	sink, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		sink.Emit(e)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestClosing(t *testing.T) {
	install, ignored := &event.Task{ID: 1, Name: "Install", Role: "os"}, &event.Task{ID: 2, Name: "Try"}
	run := func(code int) []event.Event {
		out := []event.Event{
			event.RunStarted{Time: start}, event.PlayStarted{Name: "Systems"}, event.TaskStarted{Task: install, Time: start},
			event.HostResult{Task: install, Host: "h1", Item: &event.Item{Label: "x"}, Status: event.Failed,
				Result: value.NewDict("msg", "no such\npackage", "stderr", "a\nE: b\n")},
		}
		for _, h := range strings.Split("h1 h2 h3 h4 h5 h6 h7 h8 h9 h10", " ") {
			out = append(out, event.HostResult{Task: install, Host: h, Loop: true, Status: event.Failed,
				Result: value.NewDict("msg", "no")})
		}
		return append(out,
			event.TaskStarted{Task: ignored, Time: start.Add(90 * time.Second)},
			event.HostResult{Task: ignored, Host: "h11", Status: event.Failed, Ignored: true,
				Result: value.NewDict("msg", "no")},
			event.RunEnded{Time: start.Add(90 * time.Second), ExitCode: code, Stats: map[string]*event.Stats{}})
	}
	slow := "Slowest tasks of 0:01:30.000:\n      90.0s  os : Install\n\n"
	failed := "Failed in \"Systems\":\n  os : Install on h1: no such: E: b\n  os : Install on h2, h3, h4, h5, h6, h7, h8, h9 and 1 more: no\nContinue with: kk again\n\n"
	for name, c := range map[string]struct {
		o    Options
		code int
		want string
	}{
		"failed":        {Options{Continue: "kk again"}, 2, "\n" + failed},
		"done":          {Options{Continue: "kk again"}, 0, "\n"},
		"slow":          {Options{Slowest: 10}, 0, "\n" + slow},
		"slow, failed":  {Options{Continue: "kk again", Slowest: 10}, 2, "\n" + slow + failed},
		"Ansible's way": {Options{Continue: "kk again", Slowest: 10, Format: Ansible}, 2, "\n"},
	} {
		if diff := cmp.Diff(c.want, closing(t, c.o, run(c.code)...)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// A secret at the place where a reason is cut is hidden whole.
func TestNoHalfOfASecretInAReason(t *testing.T) {
	var out bytes.Buffer
	o := Options{Continue: "kk again", Out: &out, Err: &out, Redact: &redact.Set{}}
	o.Redact.Add("PlantedSecret77")
	sink, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	why := strings.Repeat("x", reasonMax-7) + "PlantedSecret77"
	task := &event.Task{ID: 1, Name: "t"}
	sink.Emit(event.HostResult{Task: task, Host: "h1", Status: event.Failed, Result: value.NewDict("msg", why)})
	sink.Emit(event.RunEnded{ExitCode: 2})
	if got := out.String(); strings.Contains(got, "Planted") || !strings.Contains(got, "t on h1: x") {
		t.Error(got)
	}
}

func TestInterruptedRunsSayWhere(t *testing.T) {
	got := closing(t, Options{Continue: "kk again"}, event.PlayStarted{Name: "Systems"}, event.RunEnded{ExitCode: 99})
	if want := "\nStopped in \"Systems\".\nContinue with: kk again\n\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A debug task that says several lines is shown as it is, but for Ansible's
// shape and -v.
func TestDebugOfSeveralLines(t *testing.T) {
	task := &event.Task{ID: 1, Name: "say", Action: "ansible.builtin.debug"}
	e := event.HostResult{Task: task, Host: "h1", Verbose: true, Result: value.NewDict("msg", "a\n  b\x1b[2J\n")}
	for name, c := range map[string]struct {
		o     Options
		lines bool
	}{"text": {Options{}, true}, "v": {Options{Verbosity: 1}, false}, "ansible": {Options{Format: Ansible}, false}} {
		var out bytes.Buffer
		c.o.Out, c.o.Err = &out, &out
		sink, err := New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		sink.Emit(e)
		if got := strings.Contains(out.String(), "ok: [h1] =>\n  a\n    b\\x1b[2J\n"); got != c.lines {
			t.Errorf("%s: %q", name, out.String())
		}
	}
}

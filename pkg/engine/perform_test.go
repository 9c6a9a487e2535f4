package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/value"
)

// Perform gets the decoded arguments of a module and the host that the task is delegated to. Its return value is the
// result of the task.
func TestPerform(t *testing.T) {
	b := newBench(t, `
-- site.yml --
- hosts: h1
  gather_facts: false
  tasks:
    - command: hostname
      delegate_to: h2
      register: told
    - debug: {msg: "{{ told.stdout }} {{ told.changed }}"}
`)
	var targets []string
	b.o.Perform = func(ctx context.Context, task *project.Task, r module.Runner, c *module.Call) (module.Result, error) {
		if task.Action != "command" {
			return r.Run(ctx, c)
		}
		targets = append(targets, c.Host+" on "+c.Target)
		return module.Result{Data: value.NewDict("stdout", "answered")}, nil
	}
	b.expect(ExitOK).wants("h1: answered False")
	if !slices.Equal(targets, []string{"h1 on h2"}) {
		t.Errorf("performed %q", targets)
	}
}

// A module that failed because of what kk was given, and that nothing rescues, sets the exit code of invalid input.
func TestBadInput(t *testing.T) {
	const bad, failed = "    - command: bad\n", "    - command: failed\n"
	indented := func(task string) string { return "    " + task }
	for name, c := range map[string]struct {
		tasks string
		code  int
	}{
		"alone":                    {bad, ExitInput},
		"no bad input":             {failed, ExitFailed},
		"ignored":                  {bad + "      ignore_errors: true\n", ExitOK},
		"ignored, and a failure":   {bad + "      ignore_errors: true\n" + failed, ExitFailed},
		"not a failure":            {bad + "      failed_when: false\n", ExitOK},
		"rescued":                  {"    - block:\n" + indented(bad) + "      rescue:\n        - debug:\n", ExitOK},
		"rescued, and a failure":   {"    - block:\n" + indented(bad) + "      rescue:\n" + indented(failed), ExitFailed},
		"with something to do yet": {"    - block:\n" + indented(bad) + "      always:\n        - debug:\n", ExitInput},
		"in a loop":                {bad + "      loop: [1, 2]\n", ExitInput},
		"after errors are cleared": {bad + "    - meta: clear_host_errors\n", ExitInput},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "-- site.yml --\n- hosts: h1\n  gather_facts: false\n  tasks:\n"+c.tasks)
			b.o.Perform = func(ctx context.Context, task *project.Task, r module.Runner, c *module.Call) (module.Result, error) {
				if task.Action != "command" {
					return r.Run(ctx, c)
				}
				how, _ := c.Args.Get("_raw_params")
				if how == nil {
					how, _ = c.Args.Get("cmd")
				}
				return module.Result{Failed: true, BadInput: how == "bad"}, nil
			}
			b.expect(c.code)
		})
	}
}

// What modules report every few kilobytes becomes an event ten times a second, and at the ends of transfers.
func TestProgress(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		b := newBench(t, fmt.Sprintf(`
-- site.yml --
- hosts: h1
  gather_facts: false
  tasks:
    - command: send
      no_log: %v
`, hidden))
		now := time.Now()
		b.o.Now = func() time.Time { return now }
		b.o.Perform = func(_ context.Context, _ *project.Task, _ module.Runner, c *module.Call) (module.Result, error) {
			if c.Progress == nil {
				return module.Result{}, nil
			}
			for i := range int64(300) { // a second and a half
				now = now.Add(5 * time.Millisecond)
				c.Progress("file", i, 300)
				c.Progress("other", 7, -1)
			}
			c.Progress("file", 300, 300)
			c.Progress("other", 3, -1) // started again
			return module.Result{}, nil
		}
		b.expect(ExitOK)
		var got []string
		for _, e := range b.events.Events {
			if p, ok := e.(event.Progress); ok && p.What == "file" {
				got = append(got, fmt.Sprint(p.Done))
			} else if ok && p.Done != 7 {
				got = append(got, fmt.Sprint("other ", p.Done))
			}
		}
		want := strings.Fields("0 20 40 60 80 100 120 140 160 180 200 220 240 260 280 300")
		want = append(want, "other 3")
		if hidden {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("no_log %v: %q", hidden, got)
		}
	}
}

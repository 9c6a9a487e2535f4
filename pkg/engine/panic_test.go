package engine

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
	"kubekey/pkg/engine/resume"
	"kubekey/pkg/event"
	"kubekey/pkg/facts"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// panicker is a module that panics on one host and counts its calls on all hosts.
type panicker struct {
	On    string `kk:"on" default:"h1"`
	Where string `kk:"where" default:"run" choices:"run,together,output,nil,facts"`
	Times int    `kk:"times" default:"1000000"`
	What  string `kk:"what" default:"index out of reach"`

	calls *atomic.Int64
}

func panicking() []module.Spec {
	calls := &atomic.Int64{}
	fresh := func() module.Runner { return &panicker{calls: calls} }
	return []module.Spec{{Name: "panicker", Summary: "Panics", New: fresh}}
}

func (m *panicker) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if c.Host != m.On || m.calls.Add(1) > int64(m.Times) {
		return module.Result{Changed: true, Data: value.NewDict("stdout", "ran on "+c.Host)}, nil
	}
	switch m.Where {
	case "together":
		module.Parallel(3, 2, func(int) { panic(m.What) })
	case "output":
		_, err := c.Conn.Run(ctx, connector.Command{Line: "echo some text", Stdout: m})
		return module.Result{}, err
	case "facts":
		return module.Result{Facts: value.NewDict("one", odd{})}, nil
	case "nil":
		var missing *value.Dict
		missing.Set("x", 1)
	}
	panic(m.What)
}

// odd is a value that panics when the run reads it.
type odd struct{}

func (odd) At(any) (any, bool, error) { panic("index out of reach") }
func (odd) Force() (any, error)       { panic("index out of reach") }

// Write is called by the connection, on its own goroutine.
func (m *panicker) Write([]byte) (int, error) { panic(m.What) }

// A module that panics on one host fails there like any other failure. The other hosts continue.
func TestPanicStaysOnItsHost(t *testing.T) {
	const asksForReport = `h1: module "panicker" panicked: index out of reach: this is a bug in kk, please report it`
	for _, c := range []struct {
		name  string
		tasks string
		play  string // additional keywords of the play
		code  int
		ran   string // hosts that ran the task "after"
		wants []string
	}{
		{name: "plain", tasks: `[panicker: {}]`, code: ExitFailed, ran: "h2 h3",
			wants: []string{asksForReport, "kk runs show test -o json"}},
		{name: "nil map", tasks: `[panicker: {where: nil}]`, code: ExitFailed, ran: "h2 h3", wants: []string{"nil pointer"}},
		{name: "pieces of work at once", tasks: `[panicker: {where: together}]`, code: ExitFailed, ran: "h2 h3",
			wants: []string{asksForReport}},
		{name: "output of a command", tasks: `[panicker: {where: output}]`, code: ExitFailed, ran: "h2 h3",
			wants: []string{asksForReport}},
		{name: "facts that are kept", tasks: `[panicker: {where: facts}]`, code: ExitFailed, ran: "h2 h3",
			wants: []string{"h1: the result of the task (panicker) panicked: index out of reach: this is a bug in kk, please"}},
		{name: "facts that are kept, free", tasks: `[panicker: {where: facts}]`, play: "strategy: free",
			code: ExitFailed, ran: "h2 h3",
			wants: []string{"the result of the task (panicker) panicked"}},
		{name: "facts that are kept, fatal", tasks: `[panicker: {where: facts}]`, play: "any_errors_fatal: true",
			code: ExitFailed, ran: "",
			wants: []string{"the result of the task (panicker) panicked"}},
		{name: "free", tasks: `[panicker: {}]`, play: "strategy: free", code: ExitFailed, ran: "h2 h3",
			wants: []string{asksForReport}},
		{name: "serial", tasks: `[panicker: {}]`, play: "serial: [2, 1]", code: ExitFailed, ran: "h2 h3",
			wants: []string{asksForReport}},
		{name: "any_errors_fatal", tasks: `[panicker: {}]`, play: "any_errors_fatal: true", code: ExitFailed, ran: "",
			wants: []string{asksForReport}},
		{name: "ignore_errors", tasks: `[{panicker: {}, ignore_errors: true}]`, ran: "h1 h2 h3",
			wants: []string{asksForReport}},
		{name: "failed_when", tasks: `[{panicker: {}, failed_when: false}]`, ran: "h1 h2 h3", wants: []string{asksForReport}},
		{name: "rescue",
			tasks: `[{block: [panicker: {}], rescue: [debug: {msg: "rescued {{ ansible_failed_result.msg }}"}]}]`,
			ran:   "h1 h2 h3", wants: []string{`h1: rescued module "panicker" panicked`}},
		{name: "always", tasks: `[{block: [panicker: {}], always: [debug: {msg: in any case}]}]`, code: ExitFailed,
			ran: "h2 h3", wants: []string{"h1: in any case"}},
		{name: "until",
			tasks: `[{panicker: {times: 2}, retries: 3, delay: 0, until: r is succeeded, register: r},
				{debug: {msg: "after {{ r.attempts }}"}}]`,
			ran: "h1 h2 h3", wants: []string{"h1: after 3", "h2: after 1"}},
		{name: "retries used up", tasks: `[{panicker: {}, retries: 2, delay: 0}]`, code: ExitFailed, ran: "h2 h3",
			wants: []string{asksForReport}},
		{name: "loop",
			tasks: `[{panicker: {times: 1}, loop: [a, b], register: r, ignore_errors: true},
				{debug: {msg: "{{ r.results | map(attribute='failed') | join(' ') }}"}}]`,
			ran: "h1 h2 h3", wants: []string{asksForReport, "h1: True False", "h2: False False"}},
		{name: "loop at once", tasks: `[{panicker: {times: 2}, loop: [a, b, c], loop_control: {forks: 2}}]`, code: ExitFailed,
			ran: "h2 h3", wants: []string{asksForReport}},
		{name: "async", tasks: `[{panicker: {}, async: 30, poll: 1}]`, code: ExitFailed, ran: "h2 h3",
			wants: []string{asksForReport}},
		{name: "async without waiting", tasks: `[{panicker: {}, async: 30, poll: 0, register: r},
			{async_status: {jid: "{{ r.ansible_job_id }}"}, register: s, until: s.finished, retries: 100, delay: 0.05}]`,
			code: ExitFailed, ran: "h2 h3", wants: []string{asksForReport}},
		{name: "async that nobody asks for", tasks: `[{panicker: {}, async: 30, poll: 0}]`, ran: "h1 h2 h3",
			wants: []string{`warning: a task in the background failed: panicker of h1`, `module "panicker" panicked`}},
		{name: "run_once", tasks: `[{panicker: {}, run_once: true}]`, code: ExitFailed, ran: "",
			wants: []string{asksForReport}},
		{name: "delegated", tasks: `[{panicker: {}, delegate_to: h2}]`, code: ExitFailed, ran: "h2 h3",
			wants: []string{asksForReport}},
		{name: "timeout", tasks: `[{panicker: {}, timeout: 10}]`, code: ExitFailed, ran: "h2 h3",
			wants: []string{asksForReport}},
		{name: "connecting",
			tasks: `[{ping: {}, vars: {ansible_host: "{{ inventory_hostname | replace('h1', 'panics') }}"}}]`,
			code:  ExitFailed,
			ran:   "h2 h3", wants: []string{"h1: the task (ping) panicked: connecting: this is a bug in kk, please report it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, "-- site.yml --\n- hosts: all\n  gather_facts: false\n  "+c.play+"\n  tasks:\n    - block: "+
				strings.ReplaceAll(c.tasks, "\n", " ")+"\n    - {name: after, ping: {}}\n")
			b.o.Connect = func(ctx context.Context, to Target) (connector.Connector, error) {
				if to.Address == "panics" {
					panic("connecting")
				}
				return connector.Guarded(local.New()), nil
			}
			b.o.Facts = &facts.Cache{Dir: t.TempDir()}
			b.expect(c.code).wants(c.wants...)
			ran := strings.ReplaceAll(strings.Join(b.results("after"), " "), " ok", "")
			if sorted(ran) != c.ran {
				t.Errorf("the task after it ran on %q, want %q:\n%s", ran, c.ran, b.messages())
			}
		})
	}
}

// The stack is in the result that the journal stores, under the key that is shown with -vvv.
func TestPanicHasItsStack(t *testing.T) {
	for _, where := range []string{"run", "together", "output", "nil"} {
		b := newBench(t, "-- site.yml --\n- hosts: h1\n  gather_facts: false\n  tasks: [panicker: {where: "+where+"}]\n")
		b.o.Connect = func(context.Context, Target) (connector.Connector, error) {
			return connector.Guarded(local.New()), nil
		}
		b.expect(ExitFailed)
		stack := ""
		for _, e := range b.events.Events {
			if r, ok := e.(event.HostResult); ok {
				stack = r.Result.String("exception")
			}
		}
		if !strings.Contains(stack, "engine.(*panicker)") {
			t.Errorf("%s: the stack does not lead to the module: %q", where, stack)
		}
	}
}

// The value of a panic can be a secret. It is hidden like any message.
func TestPanicKeepsSecrets(t *testing.T) {
	b := newBench(t, `
-- site.yml --
- hosts: all
  gather_facts: false
  tasks:
    - {name: known, panicker: {what: "with hunter22secret in it"}, ignore_errors: true}
    - {name: hidden, panicker: {what: "with other33secret in it"}, no_log: true, ignore_errors: true}
    - {name: item, panicker: {what: "with other33secret in it"}, no_log: true, loop: [a], loop_control: {forks: 2}}
`)
	b.o.Redact.Add("hunter22secret")
	b.expect(ExitFailed)
	shown := 0
	for _, e := range b.events.Events {
		text := string(event.Encode(e, time.Time{}, b.o.Redact.Text))
		if strings.Contains(text, "hunter22secret") || strings.Contains(text, "other33secret") {
			t.Errorf("shown: %s", text)
		}
		if strings.Contains(text, "panicked: with "+redact.Mask) {
			shown++
		}
	}
	if shown == 0 {
		t.Errorf("the panic without no_log is not shown: %s", b.story())
	}
}

// If a panic failed a run on one host, the resumed run continues there, and nothing is left to do on the other hosts.
func TestPanicAndResume(t *testing.T) {
	archive := "-- site.yml --\n- hosts: all\n  gather_facts: false\n  tasks:\n" +
		"    - {name: first, ping: {}}\n    - {name: it, panicker: {times: 1}}\n    - {name: after, ping: {}}\n"
	b := newBench(t, archive)
	b.expect(ExitFailed)
	m := &resume.Memory{}
	for _, e := range b.events.Events {
		m.Emit(e)
	}
	b.events.Events, b.o.Memory = nil, m
	b.expect(ExitOK)
	if got := sorted(strings.Join(b.results("it"), " ")); got != "changed changed changed h1 h2 h3" {
		t.Errorf("gone on with: %s\n%s", got, b.story())
	}
	for _, e := range b.events.Events {
		if r, ok := e.(event.HostResult); ok && r.Recalled != (r.Host != "h1" || r.Task.Name == "first") {
			t.Errorf("%s on %s: recalled is %v", r.Task.Name, r.Host, r.Recalled)
		}
	}
}

func sorted(words string) string {
	list := strings.Fields(words)
	slices.Sort(list)
	return strings.Join(list, " ")
}

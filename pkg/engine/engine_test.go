package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/event"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

func lost(ctx context.Context, c connectortest.Call) connectortest.Answer {
	if c.Host == "h1" {
		return connectortest.Answer{Err: &connector.UnreachableError{Host: "h1", Reason: "no route to h1"}}
	}
	return connectortest.Answer{}
}

func TestUnreachableHostLeavesTheRun(t *testing.T) {
	b := newBench(t, `-- site.yml --
- hosts: all
  gather_facts: false
  tasks:
    - name: one
      block: [{name: one, command: "true"}]
      rescue: [{name: rescue, debug: {}}]
      always: [{name: always, debug: {}}]
- hosts: all
  gather_facts: false
  tasks: [{name: later, command: "true"}]
`)
	b.answer, b.o.Forks = lost, 1
	b.expect(ExitUnreachable).wants("no route to h1")
	for task, want := range map[string][]string{
		"one": {"h1 unreachable", "h2 changed", "h3 changed"}, "rescue": nil,
		"always": {"h2 ok", "h3 ok"}, "later": {"h2 changed", "h3 changed"},
	} {
		if diff := cmp.Diff(want, b.results(task)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", task, diff)
		}
	}
	for _, f := range b.fakes {
		if !f.Closed() {
			t.Error("a connection is open after the run")
		}
	}
}

func TestConnectionThatDropsInTheMiddle(t *testing.T) {
	b := newBench(t, `-- site.yml --
- hosts: all
  gather_facts: false
  tasks:
    - {name: one, command: "true"}
    - {name: two, command: "true"}
    - meta: clear_host_errors
    - {name: three, command: "true"}
`)
	var mu sync.Mutex
	calls := map[string]int{}
	b.answer = func(_ context.Context, c connectortest.Call) connectortest.Answer {
		mu.Lock()
		defer mu.Unlock()
		if calls[c.Host]++; c.Host == "h2" && calls[c.Host] == 2 {
			return connectortest.Answer{Err: &connector.UnreachableError{Host: "h2", Reason: "connection lost"}}
		}
		return connectortest.Answer{}
	}
	b.expect(ExitOK)
	if got := b.results("three"); len(got) != 3 {
		t.Errorf("after clear_host_errors the hosts are %v", got)
	}
}

func TestConnectErrorFailsTheHost(t *testing.T) {
	b := newBench(t, `-- hosts --
h1 ansible_host=refused
h2
-- site.yml --
- hosts: all
  gather_facts: false
  tasks: [{name: one, command: "true"}]
`)
	b.expect(ExitFailed).wants("this address is refused")
}

// blocked answers when the command is cancelled.
func blocked(started chan<- string) func(context.Context, connectortest.Call) connectortest.Answer {
	return func(ctx context.Context, c connectortest.Call) connectortest.Answer {
		started <- c.Host
		<-ctx.Done()
		return connectortest.Answer{Err: ctx.Err()}
	}
}

func TestCancelEndsTheRunAndItsGoroutines(t *testing.T) {
	for name, play := range map[string]string{
		"linear":        "  tasks: [{command: sleep 1}, {command: sleep 2}]",
		"forks":         "  tasks: [{command: sleep 1, throttle: 1}]",
		"free":          "  strategy: free\n  tasks: [{command: sleep 1}, {command: sleep 2}]",
		"loop":          "  tasks: [{command: sleep 1, loop: [1, 2]}]",
		"loop forks":    "  tasks: [{command: sleep 1, loop: [1, 2, 3], loop_control: {forks: 2}}]",
		"retries":       "  tasks: [{command: sleep 1, retries: 5, delay: 60}]",
		"rescue":        "  tasks: [{block: [{command: sleep 1}], rescue: [{debug: {}}], always: [{debug: {}}]}]",
		"ignore_errors": "  tasks: [{command: sleep 1, ignore_errors: true}]",
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			b := newBench(t, "-- site.yml --\n- hosts: all\n  gather_facts: false\n"+play+
				"\n- {hosts: all, gather_facts: false, tasks: [{debug: {}}]}\n")
			started := make(chan string, 100)
			b.answer = blocked(started)
			ctx, cancel := context.WithCancel(context.Background())
			go func() { <-started; cancel() }()
			if code := b.run(ctx); code != ExitInterrupted {
				t.Errorf("exit %d, want %d", code, ExitInterrupted)
			}
			waitForGoroutines(t, before)
			if got := b.results("debug"); got != nil {
				t.Errorf("tasks ran after the interruption: %v", got)
			}
		})
	}
}

// waitForGoroutines waits until the number of goroutines is back to the one before.
func waitForGoroutines(t *testing.T, before int) {
	t.Helper()
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}

func TestCancelWhileWaiting(t *testing.T) {
	for _, task := range []string{
		"{command: x, retries: 3, delay: 60}",
		"{debug: {}, loop: [1, 2], loop_control: {pause: 60}}",
	} {
		b := newBench(t, "-- site.yml --\n- hosts: h1\n  gather_facts: false\n  tasks: ["+task+"]\n")
		b.answer = func(context.Context, connectortest.Call) connectortest.Answer {
			return connectortest.Answer{Exit: connector.Exit{Code: 1}}
		}
		ctx, cancel := context.WithCancel(context.Background())
		b.o.Sink = sinkFunc(func(e event.Event) {
			switch e.(type) {
			case event.Retry, event.HostResult:
				cancel()
			}
		})
		if code := b.run(ctx); code != ExitInterrupted {
			t.Errorf("%s: exit %d", task, code)
		}
		cancel()
	}
}

type sinkFunc func(event.Event)

func (f sinkFunc) Emit(e event.Event) { f(e) }

func TestFatalErrorLeavesNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	b := newBench(t, `-- site.yml --
- hosts: all
  strategy: free
  gather_facts: false
  tasks:
    - command: one
      notify: "{{ 'nobody' }}"
    - command: two
  handlers: [{name: somebody, debug: {}}]
`)
	b.expect(ExitError).wants("The requested handler 'nobody' was not found")
	waitForGoroutines(t, before)
}

func TestTimeoutEndsTheCommand(t *testing.T) {
	b := newBench(t, `-- site.yml --
- hosts: h1
  gather_facts: false
  tasks: [{name: one, command: sleep 100, timeout: 1}]
`)
	b.answer = blocked(make(chan string, 10))
	b.expect(ExitFailed).wants("The command action failed to execute in the expected time frame (1) and was terminated")
}

func TestTwoEnginesInOneProcess(t *testing.T) {
	const play = `-- site.yml --
- hosts: all
  gather_facts: false
  vars: {who: "{{ inventory_hostname }}"}
  tasks:
    - set_fact: {seen: "{{ who }} {{ kk_work_dir }}"}
    - command: "echo {{ hostvars.h2.seen }} {{ item }}"
      loop: [1, 2]
      notify: H
    - {name: check, assert: {that: "seen == who ~ ' ' ~ kk_work_dir"}}
  handlers: [{name: H, debug: {}}]
`
	var wg sync.WaitGroup
	benches := []*bench{newBench(t, play), newBench(t, play), newBench(t, play)}
	for _, b := range benches {
		wg.Add(1)
		go func() {
			defer wg.Done()
			b.expect(ExitOK)
		}()
	}
	wg.Wait()
	for _, b := range benches {
		if got := b.results("check"); len(got) != 3 {
			t.Errorf("the results are %v", got)
		}
	}
}

func TestTargets(t *testing.T) {
	b := newBench(t, `-- hosts --
h1 ansible_host=10.0.0.1 ansible_port=2222 ansible_user=joe ansible_password=hunter22 ansible_ssh_private_key_file=/key ansible_ssh_common_args="-o A=b" ansible_ssh_extra_args=-q ansible_timeout=7 ansible_host_key_checking=false
h2
-- site.yml --
- hosts: h1,h2
  gather_facts: false
  remote_user: play
  port: 23
  connection: ssh
  tasks:
    - {command: "true"}
    - {command: "true", delegate_to: localhost, run_once: true}
    - {command: "true", delegate_to: 10.9.9.9, run_once: true}
`)
	b.o.Forks = 1
	b.o.Defaults = Defaults{Connection: "ssh", User: "cli", KeyFile: "/cli", Timeout: 3 * time.Second}
	b.expect(ExitOK)
	want := []Target{
		{
			Host: "h1", Connection: "ssh", Address: "10.0.0.1", Port: 2222, User: "joe",
			Password: new(redact.Set).Secret("hunter22"),
			KeyFile:  "/key", SSHArgs: "-o A=b -q", Timeout: 7 * time.Second, HostKeyChecking: "False",
		},
		{Host: "h2", Connection: "ssh", Address: "h2", Port: 23, User: "play", KeyFile: "/cli", Timeout: 3 * time.Second},
		{Host: "localhost", Connection: "local"},
		{Host: "10.9.9.9", Connection: "ssh", Address: "10.9.9.9", Port: 23, User: "play", KeyFile: "/cli",
			Timeout: 3 * time.Second},
	}
	for i := range b.targets {
		b.targets[i].HostKeyChecking = strings.Replace(b.targets[i].HostKeyChecking, "false", "False", 1)
	}
	if diff := cmp.Diff(want, b.targets, cmp.Comparer(func(a, b redact.Secret) bool { return a.Reveal() == b.Reveal() })); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if strings.Contains(b.story(), "hunter22") {
		t.Error("the password is in the events")
	}
}

func TestBecome(t *testing.T) {
	b := newBench(t, `-- hosts --
h1
h2 ansible_become=false
h3 ansible_become_user=dba ansible_become_method=su
-- site.yml --
- hosts: all
  gather_facts: false
  become: true
  become_user: web
  tasks: [{command: "true"}]
`)
	b.run(context.Background()) // the fake connections do not answer as sudo does
	lines := map[string]string{}
	for _, f := range b.fakes {
		lines[f.Host] = strings.Join(f.Lines(), "\n")
	}
	if !strings.Contains(lines["h1"], "sudo") || !strings.Contains(lines["h1"], "web") {
		t.Errorf("h1 ran %q", lines["h1"])
	}
	if strings.Contains(lines["h2"], "sudo") {
		t.Errorf("h2 ran %q", lines["h2"])
	}
	if !strings.Contains(lines["h3"], "su ") || !strings.Contains(lines["h3"], "dba") {
		t.Errorf("h3 ran %q", lines["h3"])
	}
}

func TestKeywordsThatCannotBeEvaluated(t *testing.T) {
	for task, want := range map[string]string{
		`{command: x, timeout: "{{ 'soon' }}"}`:                                  "timeout must be a number of seconds, not 'soon'",
		`{command: x, timeout: "{{ nope }}"}`:                                    "'nope' is undefined",
		`{command: x, retries: "{{ 'many' }}"}`:                                  "retries must be a whole number",
		`{command: x, retries: "{{ nope }}"}`:                                    "'nope' is undefined",
		`{command: x, retries: 1, delay: "{{ 'long' }}"}`:                        "delay must be a number of seconds, not 'long'",
		`{command: x, retries: 1, delay: "{{ nope }}"}`:                          "'nope' is undefined",
		`{command: x, until: nope, delay: 0}`:                                    "until: nope failed",
		`{command: x, environment: "{{ 'text' }}"}`:                              "environment must be a mapping",
		`{command: x, environment: {A: "{{ nope }}"}}`:                           "'nope' is undefined",
		`{command: x, become: "{{ 'perhaps' }}"}`:                                "become must be true or false",
		`{command: x, become: true, become_user: "{{ nope }}"}`:                  "'nope' is undefined",
		`{command: x, check_mode: "{{ 'perhaps' }}"}`:                            "check_mode must be true or false",
		`{command: x, delegate_to: "{{ nope }}"}`:                                "'nope' is undefined",
		`{command: x, port: "{{ 'p' }}"}`:                                        `port must be a number from 1 to 65535`,
		`{command: x, throttle: "{{ 'few' }}"}`:                                  "throttle must be a whole number, not 'few'",
		`{debug: "{{ 'text' }}"}`:                                                "must be a mapping",
		`{command: x, loop: [1], loop_control: {pause: "{{ 'p' }}"}}`:            "loop_control: pause",
		`{command: x, loop: [1], loop_control: {forks: "{{ 'p' }}"}}`:            "loop_control: forks",
		`{command: x, loop: [1], register: r, loop_control: {break_when: nope}}`: "The conditional check 'nope' failed",
		`{command: x, notify: "{{ nope }}"}`:                                     "'nope' is undefined",
		`{include_tasks: "{{ nope }}"}`:                                          "'nope' is undefined",
		`{include_tasks: "{{ '' }}"}`:                                            "include_tasks needs the path of a file",
		`{include_role: {name: "{{ ['l'] }}"}}`:                                  "Expected a string for name",
		`{include_role: {tasks_from: x}}`:                                        "'name' is a required field",
		`{include_role: {name: x, public: "{{ 'perhaps' }}"}}`:                   "public must be true or false",
		`{include_role: {name: x, allow_duplicates: "{{ 'perhaps' }}"}}`:         "allow_duplicates must be true or false",
		`{include_role: {name: "{{ 'nope' }}"}}`:                                 "the role 'nope' was not found",
		`{copy: {content: x, dest: /x, mode: "{{ {} }}"}}`:                       "mode",
	} {
		t.Run(task, func(t *testing.T) {
			b := newBench(t, "-- site.yml --\n- hosts: h1\n  gather_facts: false\n  tasks: ["+task+"]\n")
			b.expect(ExitFailed).wants(want)
		})
	}
}

func TestPlaysThatCannotBegin(t *testing.T) {
	for play, want := range map[string]string{
		`hosts: "{{ nope }}"`:                                "'nope' is undefined",
		"hosts: all\n  serial: \"{{ 'x' }}\"":                "serial must be a number or a percentage",
		"hosts: all\n  max_fail_percentage: \"{{ 'x' }}\"":   "max_fail_percentage must be a number",
		"hosts: all\n  force_handlers: \"{{ 'x' }}\"":        "force_handlers must be true or false",
		"hosts: \"~[\"":                                      "hosts:",
		"hosts: all\n  vars_files: [\"{{ 'nope.yml' }}\"]":   "vars file nope.yml was not found",
		"hosts: all\n  vars_files: [\"{{ 'broken' }}.yml\"]": "Syntax Error",
		"hosts: all\n  vars_files: [\"{{ 1 / 0 }}\"]":        "zero",
		"hosts: all\n  order: \"{{ 'x' }}\"":                 `order "x" is not supported`,
		"hosts: all\n  strategy: \"{{ 'debug' }}\"":          `strategy "debug" is not supported`,
		"hosts: nobody":                                      "no host matched any play",
	} {
		t.Run(play, func(t *testing.T) {
			b := newBench(t, "-- broken.yml --\na: [\n-- site.yml --\n- "+play+"\n  gather_facts: false\n")
			b.expect(ExitError).wants(want)
		})
	}
}

func TestStartAtTask(t *testing.T) {
	const plays = `-- site.yml --
- {hosts: h1, gather_facts: false, tasks: [{name: one, debug: {}}]}
- hosts: h1
  gather_facts: false
  pre_tasks: [{name: pre, debug: {}}]
  tasks: [{block: [{name: one, debug: {}}], rescue: [{name: rescue, debug: {}}]}, {name: two tasks, debug: {}}, {debug: {}}]
- {hosts: h1, gather_facts: false, tasks: [{name: three, debug: {}}]}
`
	for start, found := range map[string]bool{"two tasks": true, "two*": true, "nope": false} {
		b := newBench(t, plays)
		b.o.StartAt = start
		b.expect(ExitOK)
		if found && (b.results("pre") != nil || b.results("one") != nil || len(b.results("two tasks")) != 1 ||
			len(b.results("three")) != 1) {
			t.Errorf("%s: %s", start, b.story())
		}
		if !found {
			b.wants(`No matching task "nope" found`)
		}
	}
}

func TestStep(t *testing.T) {
	b := newBench(t, `-- site.yml --
- hosts: h1
  gather_facts: false
  tasks: [{name: a, debug: {}}, {name: b, debug: {}}, {name: c, debug: {}}, {name: d, debug: {}}]
`)
	var asked []string
	b.o.Step = func(_ context.Context, task string) Answer {
		asked = append(asked, task)
		return map[string]Answer{"TASK: a": Yes, "TASK: b": No, "TASK: c": Continue}[task]
	}
	b.expect(ExitOK)
	if !slices.Equal(asked, []string{"TASK: a", "TASK: b", "TASK: c"}) || b.results("b") != nil || b.results("d") == nil {
		t.Errorf("asked %v; %s", asked, b.story())
	}
}

func TestMagicOfARun(t *testing.T) {
	b := newBench(t, `-- hosts/inv --
a.b.c
h2
-- site.yml --
- hosts: a.b.c
  gather_facts: false
  order: "{{ o }}"
  vars: {o: sorted}
  tasks:
    - assert:
        that:
          - ansible_check_mode and ansible_diff_mode and ansible_verbosity == 3 and ansible_forks == 9
          - "ansible_run_tags == ['t'] and ansible_skip_tags == ['s']"
          - ansible_limit == 'a.b.c' and ansible_version.major == 2
          - inventory_hostname_short == 'a'
          - "'h2' in hostvars and 'zz' not in hostvars and 'all' in groups and 'zz' not in groups"
          - "'groups' in vars and 'zz' not in vars"
          - inventory_file.endswith('/inv') and inventory_dir.endswith('/hosts')
          - ansible_playbook_python is string and ansible_config_file is none
          - hostvars['h2'].keys() | length > 5
          - ansible_inventory_sources | length == 1
    - result: {answer: 42}
`)
	b.o.Check, b.o.Diff, b.o.Verbosity, b.o.Forks = true, true, 3, 9
	b.o.Tags, b.o.SkipTags, b.o.Limit, b.o.LimitText = []string{"t"}, []string{"s"}, []string{"a.b.c"}, "a.b.c"
	b.expect(ExitOK)
	end, _ := b.events.Events[len(b.events.Events)-1].(event.RunEnded)
	if got := value.Repr(end.Results); got != "{'answer': 42}" {
		t.Errorf("the results are %s", got)
	}
}

func TestOrders(t *testing.T) {
	for order, want := range map[string]string{"sorted": "h1,h2,h3", "reverse_sorted": "h3,h2,h1",
		"reverse_inventory": "h3,h2,h1", "inventory": "h1,h2,h3"} {
		b := newBench(t, "-- site.yml --\n- hosts: all\n  gather_facts: false\n  order: "+order+
			"\n  tasks: [{debug: {msg: \"{{ ansible_play_hosts | join(',') }}\"}, run_once: true}]\n")
		b.expect(ExitOK).wants(want)
	}
	b := newBench(t, "-- site.yml --\n- hosts: all\n  gather_facts: false\n  order: shuffle\n  tasks: [{name: x, debug: {}}]\n")
	b.expect(ExitOK)
	if len(b.results("x")) != 3 {
		t.Error("a shuffled play lost hosts")
	}
}

func TestCheckModeSkips(t *testing.T) {
	b := newBench(t, `-- site.yml --
- hosts: h1
  gather_facts: false
  tasks:
    - {name: raw, raw: "true"}
    - {name: command, command: touch /x, register: r, until: r.nope, delay: 60}
    - {name: real, command: touch /x, check_mode: false}
`)
	b.o.Check = true
	b.expect(ExitOK)
	for task, want := range map[string]string{"raw": "h1 skipped", "command": "h1 skipped", "real": "h1 changed"} {
		if got := b.results(task); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %v", task, got)
		}
	}
}

func TestConnectorOfAView(t *testing.T) {
	b := newBench(t, "-- site.yml --\n- {hosts: all, tasks: []}\n")
	e := New(b.o)
	v := e.View(context.Background(), "h1", nil, b.dir)
	c, done, err := e.Connector(context.Background(), v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(context.Background(), connector.Command{Line: "true"}); err != nil {
		t.Error(err)
	}
	done()
	if !b.fakes[0].Closed() {
		t.Error("done leaves the connection open")
	}
	if play, ok, err := v.Lookup("ansible_play_name"); ok || err != nil {
		t.Errorf("ansible_play_name is %v, %v outside of plays", play, err)
	}
}

func TestSecretsStayOutOfEvents(t *testing.T) {
	b := newBench(t, `-- site.yml --
- hosts: h1
  gather_facts: false
  tasks:
    - {command: "echo {{ item }}", loop: [hunter22], no_log: true, register: r}
    - {command: echo, no_log: true, environment: {P: hunter22}, retries: 1, delay: 0, failed_when: true, ignore_errors: true}
    - {copy: {content: hunter22, dest: /x}, no_log: true, diff: true, ignore_errors: true}
    - {debug: {msg: "{{ r.results | length }} kept {{ r.results[0].stdout | length }}"}}
    - {assert: {that: "item == 'x'", fail_msg: hunter22}, loop: [hunter22], no_log: "{{ nope }}", ignore_errors: true}
    - {assert: {that: false, fail_msg: "{{ item }}"}, loop: [public, hunter22], no_log: "{{ item != 'public' }}"}
`)
	b.answer = func(_ context.Context, c connectortest.Call) connectortest.Answer {
		return connectortest.Answer{Stdout: "hunter22\n"}
	}
	b.run(context.Background())
	b.wants("1 kept 8")
	if strings.Contains(b.story(), "hunter22") {
		t.Errorf("a secret is in the events:\n%s", b.story())
	}
}

func TestErrorsAreWrapped(t *testing.T) {
	if err := undefinedOption(errors.New("x")); err.Error() != "x" {
		t.Error(err)
	}
	if undefinedOption(nil) != nil {
		t.Error("an error of nothing")
	}
}

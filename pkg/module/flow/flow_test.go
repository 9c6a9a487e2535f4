package flow_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/connector"
	"kubekey/pkg/expr"
	"kubekey/pkg/module"
	"kubekey/pkg/module/flow"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func run(t *testing.T, name string, o moduletest.Options, pairs ...any) module.Result {
	t.Helper()
	return moduletest.Run(t, moduletest.Find(t, flow.Modules(), name), value.NewDict(pairs...), o)
}

func try(t *testing.T, name string, o moduletest.Options, pairs ...any) (module.Result, error) {
	t.Helper()
	return moduletest.Try(t, moduletest.Find(t, flow.Modules(), name), value.NewDict(pairs...), o)
}

func get(r module.Result, key string) any {
	v, _ := r.Data.Get(key)
	return v
}

func TestSetFact(t *testing.T) {
	r := run(t, "set_fact", moduletest.Options{}, "a", "Yes", "b", "no ", "c", []any{1}, "d", "FALSE")
	if want := value.NewDict("a", true, "b", "no ", "c", []any{1}, "d", false); !value.Equal(r.Facts, want) ||
		r.FactKind != module.SetFact || r.Changed {
		t.Errorf("got %+v %s", r, value.Repr(r.Facts))
	}
	if r := run(t, "set_fact", moduletest.Options{}, "a", 1, "cacheable", true); r.FactKind != module.SetFactCacheable {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "set_fact", moduletest.Options{}, "a-b", 1); !r.Failed ||
		!strings.Contains(r.Msg, "'a-b' is not valid") {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "set_fact", moduletest.Options{}); !r.Failed {
		t.Errorf("got %+v", r)
	}
}

func TestAssert(t *testing.T) {
	vars := expr.Names{"n": 3, "cond": "n == 3", "conds": []any{"n > 1", "n > 5"}, "evil": "{{ n }}", "flag": false,
		"word": "False"}
	cases := []struct {
		name string
		that any
		want string // the failed assertion, "" for success
	}{
		{"one", "n == 3", ""},
		{"comma", "n in [1, 3]", ""},
		{"list", []any{"n > 1", "n < 3"}, "n < 3"},
		{"bools", []any{true, false}, "False"},
		{"template", "{{ n == 3 }}", ""},
		{"false template", "{{ flag }}", "{{ flag }}"},
		{"data that is a literal", "{{ word }}", "{{ word }}"},
		{"empty", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, "assert", moduletest.Options{Vars: vars}, "that", c.that)
			if r.Failed != (c.want != "") {
				t.Fatalf("got %+v", r)
			}
			if !r.Failed {
				if r.Msg != "All assertions passed" || !r.Verbose {
					t.Errorf("got %+v", r)
				}
				return
			}
			if got := value.Str(get(r, "assertion")); got != c.want || get(r, "evaluated_to") != false ||
				r.Msg != "Assertion failed" {
				t.Errorf("got %q in %+v", got, r)
			}
		})
	}
	_, err := try(t, "assert", moduletest.Options{}, "that", "none.such > 1")
	if err == nil || !strings.Contains(err.Error(), "The conditional check 'none.such > 1' failed. The error was:") {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{"a b c", "{{ 1 +", "{{ nope }}", "{{ cond }}", "{{ conds }}", "{{ evil }}",
		"{{ cond }} and n"} {
		if _, err := try(t, "assert", moduletest.Options{Vars: vars}, "that", bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	r := run(t, "assert", moduletest.Options{}, "that", "1 == 2", "msg", "no")
	if r.Msg != "no" {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "assert", moduletest.Options{}, "that", true, "quiet", true, "success_msg", "fine"); r.Verbose ||
		r.Msg != "fine" {
		t.Errorf("got %+v", r)
	}
}

func TestDebug(t *testing.T) {
	vars := expr.Names{"x": []any{1, value.NewDict("a", "b")}, "ansible_verbosity": 1}
	cases := []struct {
		args []any
		key  string
		want any
	}{
		{nil, "msg", "Hello world!"},
		{[]any{"msg", []any{1}}, "msg", []any{1}},
		{[]any{"var", "x[1].a"}, "x[1].a", "b"},
		{[]any{"var", "x"}, "x", []any{1, value.NewDict("a", "b")}},
		{[]any{"var", "{{ x[0] }}"}, "{{ x[0] }}", 1},
		{[]any{"var", "a{{ x[0] }}{{ x[0] }}"}, "a{{ x[0] }}{{ x[0] }}", "a11"},
		{[]any{"var", "nope"}, "nope", "VARIABLE IS NOT DEFINED!"},
		{[]any{"var", 5}, "5", 5},
		{[]any{"msg", "m", "verbosity", 1}, "msg", "m"},
	}
	for _, c := range cases {
		r := run(t, "debug", moduletest.Options{Vars: vars}, c.args...)
		if got := get(r, c.key); !value.Equal(got, c.want) || !r.Verbose {
			t.Errorf("%v: got %s, want %s", c.args, value.Repr(got), value.Repr(c.want))
		}
	}
	if r := run(t, "debug", moduletest.Options{Vars: vars}, "msg", "m", "verbosity", 2); !r.Skipped {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "debug", moduletest.Options{}, "msg", "m", "var", "x"); !r.Failed {
		t.Errorf("got %+v", r)
	}
	for _, bad := range []string{"a b", "x{{ nope }}", "1 // 0", "{{ a }}{% if %}"} {
		if _, err := try(t, "debug", moduletest.Options{}, "var", bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestFail(t *testing.T) {
	if r := run(t, "fail", moduletest.Options{}); !r.Failed || r.Msg != "Failed as requested from task" {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "fail", moduletest.Options{}, "msg", "why"); r.Msg != "why" {
		t.Errorf("got %+v", r)
	}
}

func TestInventoryModules(t *testing.T) {
	vars := expr.Names{"groups": value.NewDict("all", []any{"h1", "h2"}, "web", []any{"h1"})}
	o := moduletest.Options{Vars: vars}
	r := run(t, "add_host", o, "hostname", "h3:2222", "groups", "web,db", "x", 1)
	want := module.AddHost{Name: "h3", Groups: []string{"web", "db"}, Vars: value.NewDict("ansible_port", "2222", "x", 1)}
	got := r.Effect.(module.AddHost)
	if !r.Changed || got.Name != want.Name || !cmp.Equal(got.Groups, want.Groups) || !value.Equal(got.Vars, want.Vars) {
		t.Errorf("got %+v", r)
	}
	for _, c := range []struct {
		host, groups string
		changed      bool
	}{{"h1", "web", false}, {"h2", "web", true}, {"h2", "", false}, {"h9", "", true}} {
		if r := run(t, "add_host", o, "name", c.host, "groups", c.groups); r.Changed != c.changed {
			t.Errorf("%+v: got %+v", c, r)
		}
	}
	r = run(t, "group_by", o, "key", "os Debian 12", "parents", "os all,x")
	if diff := cmp.Diff(module.GroupBy{Group: "os-Debian-12", Parents: []string{"os-all", "x"}}, r.Effect); diff != "" ||
		!r.Changed {
		t.Errorf("%s %+v", diff, r)
	}
	if r := run(t, "group_by", o, "key", "web"); r.Changed {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "group_by", moduletest.Options{}, "key", "web"); !r.Changed {
		t.Errorf("got %+v", r)
	}
	hv := run(t, "add_hostvars", o, "hosts", "web", "vars", value.NewDict("a", 1)).Effect.(module.AddHostVars)
	if !cmp.Equal(hv.Hosts, []string{"web"}) || !value.Equal(hv.Vars, value.NewDict("a", 1)) {
		t.Errorf("got %+v", hv)
	}
	rr := run(t, "result", o, "endpoint", "x").Effect.(module.RunResult)
	if rr.Values.String("endpoint") != "x" {
		t.Errorf("got %+v", rr)
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestIncludeVars(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"vars/a.yml": "x: 1\nd: {k: 1}\n", "vars/all/1.yml": "x: 1\ny: 1\n", "vars/all/sub/2.json": `{"y": 2}`,
		"vars/all/sub/deep/3.yaml": "y: 3\n",
		"vars/bad.yml":             "- 1\n", "vars/broken.yml": "a: [\n", "vars/empty.yml": "---\n", "vars/mixed/a.yml": "m: 1\n",
		"vars/mixed/README.md": "# x\n",
	})
	o := moduletest.Options{Dir: dir, Vars: expr.Names{"d": value.NewDict("old", 1)}}
	cases := []struct {
		name string
		args []any
		want *value.Dict // nil is a failure
	}{
		{"file", []any{"file", "a.yml"}, value.NewDict("x", 1, "d", value.NewDict("k", 1))},
		{"name", []any{"file", "a.yml", "name", "n"}, value.NewDict("n", value.NewDict("x", 1, "d", value.NewDict("k", 1)))},
		{"merge", []any{"file", "a.yml", "hash_behaviour", "merge"},
			value.NewDict("x", 1, "d", value.NewDict("old", 1, "k", 1))},
		{"dir", []any{"dir", "all"}, value.NewDict("x", 1, "y", 3)},
		{"depth 1", []any{"dir", "all", "depth", 1}, value.NewDict("x", 1, "y", 1)},
		{"depth 2", []any{"dir", "all", "depth", 2}, value.NewDict("x", 1, "y", 2)},
		{"matching", []any{"dir", "all", "files_matching", "^1"}, value.NewDict("x", 1, "y", 1)},
		{"lookahead", []any{"dir", "all", "files_matching", `^1(?!2)`}, value.NewDict("x", 1, "y", 1)},
		{"ignore", []any{"dir", "mixed", "ignore_files", "README.md"}, value.NewDict("m", 1)},
		{"ignore extensions", []any{"dir", "mixed", "ignore_unknown_extensions", true}, value.NewDict("m", 1)},
		{"empty", []any{"file", "empty.yml"}, value.NewDict()},
		{"extension", []any{"dir", "mixed"}, nil},
		{"no dict", []any{"file", "bad.yml"}, nil},
		{"broken", []any{"file", "broken.yml"}, nil},
		{"missing", []any{"file", "none.yml"}, nil},
		{"missing dir", []any{"dir", "none"}, nil},
		{"a file as dir", []any{"dir", "a.yml"}, nil},
		{"both", []any{"file", "a.yml", "dir", "all"}, nil},
		{"neither", nil, nil},
		{"bad name", []any{"file", "a.yml", "name", "1-"}, nil},
		{"bad pattern", []any{"dir", "all", "files_matching", "("}, nil},
		{"bad ignore pattern", []any{"dir", "all", "ignore_files", "("}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, "include_vars", o, c.args...)
			if c.want == nil {
				if !r.Failed || r.Msg == "" || r.Data != nil && get(r, "message") != r.Msg {
					t.Errorf("got %+v", r)
				}
				return
			}
			if r.Failed || !value.Equal(r.Facts, c.want) || r.FactKind != module.IncludeVars {
				t.Errorf("got %s, want %s (%+v)", value.Repr(r.Facts), value.Repr(c.want), r)
			}
		})
	}
	r := run(t, "include_vars", o, "dir", "all", "depth", 1)
	if got := get(r, "ansible_included_var_files"); !value.Equal(got, []any{filepath.Join(dir, "vars/all/1.yml")}) {
		t.Errorf("got %s", value.Repr(got))
	}
}

func TestPause(t *testing.T) {
	now := time.Unix(0, 0).UTC()
	o := moduletest.Options{Now: func() time.Time { now = now.Add(1004 * time.Millisecond); return now }}
	r := run(t, "pause", o, "seconds", 0)
	if get(r, "stdout") != "Paused for 1.0 seconds" || get(r, "delta") != 1 || get(r, "rc") != 0 ||
		get(r, "start") != "1970-01-01 00:00:01.004000" {
		t.Errorf("got %s", value.Repr(r.Data))
	}
	if r := run(t, "pause", o, "minutes", "0"); get(r, "stdout") != "Paused for 0.02 minutes" {
		t.Errorf("got %s", value.Repr(r.Data))
	}
	if r := run(t, "pause", o, "minutes", 1, "seconds", 1); !r.Failed {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "pause", moduletest.Options{}, "prompt", "x"); len(r.Warnings) != 1 || r.Failed {
		t.Errorf("got %+v", r)
	}
	asked := ""
	ask := func(_ context.Context, prompt string, echo bool) (string, bool, error) {
		asked = prompt
		return "yes", !echo, nil
	}
	if r := run(t, "pause", moduletest.Options{Ask: ask}, "echo", false); get(r, "user_input") != "yes" || asked == "" ||
		len(r.Warnings) != 0 {
		t.Errorf("got %+v", r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := try(t, "pause", moduletest.Options{Context: ctx}, "seconds", 60); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestPing(t *testing.T) {
	count := moduletest.Count(connector.ReadOnly(moduletest.Shell()))
	if r := run(t, "ping", moduletest.Options{Conn: count}); get(r, "ping") != "pong" || len(count.Lines()) != 1 {
		t.Errorf("got %+v", r)
	}
	_, err := try(t, "ping", moduletest.Options{Conn: moduletest.Unreachable{}})
	var lost *connector.UnreachableError
	if !errors.As(err, &lost) {
		t.Errorf("got %v", err)
	}
}

func TestSetup(t *testing.T) {
	count := moduletest.Count(nil)
	r := run(t, "gather_facts", moduletest.Options{Conn: count, Check: true}, "gather_subset", "!all", "filter",
		"ansible_hostname")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if short, _, _ := strings.Cut(host, "."); r.Facts.String("ansible_hostname") != short || r.Facts.Len() != 1 ||
		len(count.Lines()) != 1 {
		t.Errorf("got %s", value.Repr(r.Facts))
	}
	if _, err := try(t, "setup", moduletest.Options{}, "gather_subset", "nope"); err == nil {
		t.Error("an unknown subset is taken")
	}
}

// flaky is a host that is away for some commands, and whose boot id changes
// when it comes back.
type flaky struct {
	connector.Connector
	away, runs, resets int
	boot               string
	lines              []string
}

func (f *flaky) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	f.runs++
	f.lines = append(f.lines, c.Line)
	if strings.Contains(c.Line, "nohup") {
		f.boot = "second"
		f.runs = 0
		return connector.Exit{}, &connector.UnreachableError{Host: "h", Reason: "gone"}
	}
	if f.boot != "first" && f.runs <= f.away {
		return connector.Exit{}, &connector.UnreachableError{Host: "h", Reason: "away"}
	}
	if strings.Contains(c.Line, "boot_id") {
		_, err := bytes.NewBufferString(f.boot).WriteTo(c.Stdout)
		return connector.Exit{}, err
	}
	return f.Connector.Run(ctx, c)
}

func TestWaitForConnection(t *testing.T) {
	f := &flaky{Connector: moduletest.Shell(), away: 2}
	o := moduletest.Options{Conn: f, Reset: func(context.Context) error { f.resets++; return errors.New("still away") }}
	r := run(t, "wait_for_connection", o, "sleep", 0)
	if r.Failed || get(r, "elapsed") != 0 || f.runs != 3 || f.resets != 2 {
		t.Errorf("got %+v after %d tries and %d resets", r, f.runs, f.resets)
	}
	r = run(t, "wait_for_connection", moduletest.Options{Conn: moduletest.Unreachable{}}, "timeout", "0.05", "sleep", 0)
	if !r.Failed || r.Msg != "timed out waiting for the connection: connection refused" {
		t.Errorf("got %+v", r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := try(t, "wait_for_connection",
		moduletest.Options{Conn: moduletest.Unreachable{}, Context: ctx}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestReboot(t *testing.T) {
	f := &flaky{Connector: moduletest.Shell(), away: 1, boot: "first"}
	o := moduletest.Options{Conn: f, Reset: func(context.Context) error { f.resets++; return nil }}
	r := run(t, "reboot", o, "reboot_command", "true", "test_command", "true")
	if r.Failed || !r.Changed || get(r, "rebooted") != true || f.resets != 1 {
		t.Errorf("got %+v %s", r, value.Repr(r.Data))
	}
	if line := f.lines[1]; !strings.Contains(line, "sleep 1; true") || !strings.Contains(line, "/usr/local/sbin") {
		t.Errorf("ran %q", line)
	}
	stays := run(t, "reboot", moduletest.Options{}, "reboot_command", "true", "boot_time_command", "echo same",
		"reboot_timeout", "0.05")
	if !stays.Failed || get(stays, "rebooted") != false || !strings.Contains(stays.Msg, "has not gone down") {
		t.Errorf("got %+v", stays)
	}
	local := moduletest.Options{Vars: expr.Names{"ansible_connection": "local"}}
	if r := run(t, "reboot", local); !r.Failed {
		t.Errorf("got %+v", r)
	}
	if _, err := try(t, "reboot", moduletest.Options{}, "boot_time_command", "false"); err == nil {
		t.Error("no boot id, and no error")
	}
	if r := run(t, "reboot", moduletest.Options{Check: true}); !r.Skipped ||
		r.Msg != "remote module (reboot) does not support check mode" {
		t.Errorf("got %+v", r)
	}
}

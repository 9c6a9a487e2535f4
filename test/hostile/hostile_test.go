package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/cli"
	"kubekey/pkg/connector"
	"kubekey/pkg/engine"
	"kubekey/pkg/event"
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/inventory"
	"kubekey/pkg/module"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
)

// code are texts that run a program on the control node when they are evaluated: as a template, as
// an expression, and as what ends a quoted text of an expression. Each is what one host says.
func code(mark string) map[string]string {
	call := fmt.Sprintf("lookup('pipe', 'touch %s')", mark)
	return map[string]string{
		"template":   "{{ " + call + " }}",
		"statement":  "{% if " + call + " %}{% endif %}",
		"expression": call,
		"condition":  call + " == ''",
		"quote":      "x' or " + call + " or 'x",
		"quotes":     `x" or ` + strings.ReplaceAll(call, "'", `"`) + ` or "x`,
		"path":       "a[" + call + "]",
		"arguments":  "('pipe', 'touch " + mark + "')",
		"list":       "[" + call + "]",
		"header":     "#jinja2: variable_start_string:'[['\n[[ " + call + " ]]",
	}
}

// says is a host that answers every command with a text, whatever it is sent.
type says string

func (s says) Run(_ context.Context, c connector.Command) (connector.Exit, error) {
	if c.Stdout != nil {
		if _, err := io.WriteString(c.Stdout, string(s)); err != nil {
			return connector.Exit{}, err
		}
	}
	return connector.Exit{}, nil
}

func (says) Close() error { return nil }

// site runs a playbook on hosts that answer every command with a text of their own. Problems that
// are known before the run are returned.
func site(t *testing.T, modules *module.Registry, texts map[string]string, plays string) source.Diagnostics {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	hosts := "[web]\n" + strings.Join(slices.Sorted(maps.Keys(texts)), "\n") + "\n"
	for name, content := range map[string]string{"site.yml": plays, "tasks.yml": "- debug: {msg: hi}\n", "hosts": hosts} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secrets := &redact.Set{}
	inv, ds := inventory.Load(context.Background(), []string{filepath.Join(dir, "hosts")},
		inventory.Options{Secrets: secrets})
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	var e *template.Engine
	e = template.New(expr.New(expr.Options{Seed: "test",
		Template: func(ctx context.Context, f expr.TemplateFile, s expr.Scope) (string, error) {
			return e.RenderFile(ctx, f, s)
		}}, library.Standard()), source.Tree{})
	linker := project.New(project.Options{Engine: e, Modules: modules})
	pb, ds := linker.Playbook(filepath.Join(dir, "site.yml"))
	if ds.Err() != nil {
		return ds
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	engine.New(engine.Options{
		Project: engine.Project{Inventory: inv, Linker: linker, Templates: e},
		Reach: engine.Reach{Connect: func(_ context.Context, t engine.Target) (connector.Connector, error) {
			return says(texts[t.Host]), nil
		}},
		Record: engine.Record{Sink: &event.Recorder{}, RunID: "test", Redact: secrets, WorkDir: dir},
	}).Run(ctx, []*project.Playbook{pb})
	return nil
}

// afterwards evaluates every variable of every host, those that the run added too.
const afterwards = `
- hosts: all
  gather_facts: false
  ignore_errors: true
  ignore_unreachable: true
  tasks:
    - debug: {msg: "{{ vars }} {{ hostvars[inventory_hostname] }}"}
    - debug: {msg: "{{ hostvars | string }}"}
      run_once: true
    - command: echo "{{ r }}"
      when: r is defined and out is defined
`

// start has a host say a text, and puts it into values of other shapes.
const start = `
- hosts: web
  gather_facts: false
  ignore_errors: true
  timeout: 1
  tasks:
    - command: say
      register: r
    - set_fact:
        said: "{{ r.stdout }}"
        nested: {a: ["{{ r.stdout }}", {b: "{{ r.stdout }}"}]}
        list: ["{{ r.stdout }}"]
`

func check(t *testing.T, mark string) {
	t.Helper()
	if _, err := os.Stat(mark); err == nil {
		t.Fatal("what a host said ran on the control node")
	}
}

func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// shapes are the ways in which an argument or keyword can get what a host said.
func shapes() []string {
	return []string{"{{ r.stdout }}", "{{ said }}", "{{ nested }}", "{{ list }}",
		"{{ hostvars[inventory_hostname].nested.a.0 }}", "{{ r.stdout }} == 'x'", "'{{ r.stdout }}' == 'x'",
		"lookup{{ r.stdout }}", `"{{ r.stdout }}" in ['x']`}
}

// tasksOf are tasks that pass what a host said to each argument of a module.
func tasksOf(t *testing.T, s *module.Spec) []string {
	t.Helper()
	var args []schema.Arg
	if s.New != nil {
		var err error
		if args, err = schema.Describe(s.New()); err != nil {
			t.Fatal(err)
		}
	}
	required := map[string]any{}
	for _, a := range args {
		if a.Required {
			required[a.Name] = "{{ r.stdout }}"
		}
	}
	var tasks []string
	add := func(args map[string]any) {
		tasks = append(tasks, quoted(map[string]any{s.Name: args, "register": "out"}))
	}
	with := func(name string, v any) {
		given := map[string]any{name: v}
		for n, r := range required {
			if n != name {
				given[n] = r
			}
		}
		add(given)
	}
	add(required)
	for _, a := range args {
		for _, shape := range []string{"{{ r.stdout }}", "{{ nested }}"} {
			with(a.Name, shape)
		}
		if len(s.RawArgs) > 0 {
			tasks = append(tasks, quoted(map[string]any{s.Name: "{{ {'" + a.Name + "': r.stdout} }}"}))
			for _, shape := range shapes() {
				with(a.Name, shape)
				with(a.Name, []any{shape})
			}
		}
	}
	if s.AnyArgs {
		for _, shape := range shapes()[:5] {
			with("name", "x")
			with("v", shape)
			with("ansible_host", shape)
		}
		add(map[string]any{"name": "x", "v": "{{ r.stdout }}", "ansible_user": "{{ r.stdout }}",
			"w": map[string]any{"a": []any{"{{ said }}"}}})
	}
	tasks = append(tasks, quoted(map[string]any{s.Name: "{{ dict(names | zip(values)) }}",
		"vars": map[string]any{"names": keys(args), "values": repeat("{{ r.stdout }}", len(args))}}))
	return tasks
}

func keys(args []schema.Arg) []any {
	out := []any{}
	for _, a := range args {
		out = append(out, a.Name)
	}
	return out
}

func repeat(v any, n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// TestModules passes what a host said through every argument of every module.
func TestModules(t *testing.T) {
	all, err := cli.Modules()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all.Specs() {
		if s.Action {
			continue // keywords, below
		}
		t.Run(s.Name, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "mark")
			tasks := tasksOf(t, s)
			plays := start
			for _, task := range tasks {
				plays += "    - " + task + "\n"
			}
			for _, texts := range rounds(s, code(mark)) {
				if ds := site(t, all, texts, plays+afterwards); ds != nil {
					eachAlone(t, all, texts, tasks)
				}
			}
			check(t, mark)
		})
	}
}

// rounds are the hosts of each run: all of them, or each alone for a module that runs once for all.
func rounds(s *module.Spec, texts map[string]string) []map[string]string {
	if s.Where != module.Once {
		return []map[string]string{texts}
	}
	var out []map[string]string
	for host, text := range texts {
		out = append(out, map[string]string{host: text})
	}
	return out
}

// eachAlone runs tasks one by one, where one of them is refused before the run.
func eachAlone(t *testing.T, all *module.Registry, texts map[string]string, tasks []string) {
	t.Helper()
	ran := false
	for _, task := range tasks {
		ran = site(t, all, texts, start+"    - "+task+"\n"+afterwards) == nil || ran
	}
	if !ran {
		t.Errorf("all tasks are refused before the run: %s", tasks)
	}
}

// TestKeywords gives every keyword what a host said, wherever it may stand.
func TestKeywords(t *testing.T) {
	all, err := cli.Modules()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range playbook.Keywords() {
		if k.Type == playbook.Steps {
			continue
		}
		name := strings.ReplaceAll(k.Name, "LOOKUP", "items")
		t.Run(name, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "mark")
			texts := code(mark)
			for _, plays := range places(k, name, slices.Sorted(maps.Keys(texts))) {
				site(t, all, texts, plays+afterwards)
			}
			check(t, mark)
		})
	}
}

// places are playbooks with the keyword on a task, an include, a block and a play.
func places(k playbook.Keyword, name string, hosts []string) []string {
	var values []any
	for _, s := range shapes() {
		values = append(values, s, []any{s}, map[string]any{"a": s})
	}
	if name == "loop_control" {
		for _, key := range []string{"label", "loop_var", "index_var", "pause", "break_when", "extended"} {
			values = append(values, map[string]any{key: "{{ r.stdout }}"}, map[string]any{key: "'{{ r.stdout }}' == 'x'"})
		}
	}
	if name == "vars_prompt" {
		values = nil
		for _, s := range shapes() {
			values = append(values, []any{map[string]any{"name": "a", "prompt": s, "default": s, "private": false}})
		}
	}
	if name == "module_defaults" {
		values = append(values, map[string]any{"debug": map[string]any{"var": "{{ r.stdout }}"}},
			map[string]any{"assert": map[string]any{"that": "{{ r.stdout }}"}},
			map[string]any{"assert": map[string]any{"that": []any{"{{ list }}"}}})
	}
	var out []string
	for _, v := range values {
		if k.On&(playbook.OnTask|playbook.OnInclude|playbook.OnBlock) != 0 {
			out = append(out, start+steps(k, name, v))
		}
		if k.On&playbook.OnPlay != 0 {
			play := map[string]any{"hosts": "all", "gather_facts": false,
				"tasks": []any{map[string]any{"debug": map[string]any{"msg": "{{ a | default('') }}"}}}}
			plays := ""
			for _, host := range hosts {
				hosted, _ := json.Marshal(v)
				play[name] = json.RawMessage(strings.NewReplacer("r.stdout", "hostvars."+host+".said", "{{ said", "{{ hostvars."+
					host+".said",
					"inventory_hostname", "'"+host+"'").Replace(string(hosted)))
				plays += "- " + quoted(play) + "\n"
			}
			out = append(out, start+plays)
		}
	}
	return out
}

// steps are a task, an include and a block with a keyword.
func steps(k playbook.Keyword, name string, v any) string {
	var b strings.Builder
	add := func(step map[string]any) {
		if name == "loop_control" {
			step["loop"] = []any{"{{ said }}", 2}
		}
		if name == "until" {
			step["retries"], step["delay"] = 1, 0
		}
		step[name] = v
		b.WriteString("    - " + quoted(step) + "\n")
	}
	if k.On&playbook.OnTask != 0 {
		for _, m := range []string{"debug", "assert", "command"} {
			step := map[string]any{m: map[string]any{"msg": "{{ item | default(a) | default(said) }}"}}
			switch m {
			case "assert":
				step[m] = map[string]any{"that": "{{ item | default(a) | default(said) }}"}
			case "command":
				step[m] = "say"
			}
			if name == "args" {
				step[m] = nil
			}
			if name == "action" || name == "local_action" {
				delete(step, m)
			}
			add(step)
		}
	}
	if k.On&playbook.OnInclude != 0 {
		add(map[string]any{"include_tasks": "tasks.yml"})
	}
	if k.On&playbook.OnBlock != 0 {
		add(map[string]any{"block": []any{map[string]any{"debug": map[string]any{"msg": "{{ a | default('') }}"}}}})
	}
	return b.String()
}

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// valueOf returns a value of a type; it differs for each n.
func valueOf(t playbook.Type, n int) any {
	switch t {
	case playbook.Port:
		return 1000 + n
	case playbook.Seconds:
		return time.Duration(100+n) * time.Second
	case playbook.Bool:
		return n%2 == 0
	case playbook.Connection:
		return []string{"ssh", "local"}[n%2]
	case playbook.BecomeMethod:
		return []string{"sudo", "su"}[n%2]
	}
	return fmt.Sprint("text", n)
}

// literal returns such a value as users write it.
func literal(v any) any {
	if d, ok := v.(time.Duration); ok {
		return int(d.Seconds())
	}
	return v
}

// TestConnectionVariables tests every row: each name overrides the names before it and the keyword, and the keyword
// overrides the default.
func TestConnectionVariables(t *testing.T) {
	for _, row := range playbook.ConnectionVariables() {
		t.Run(row.Name, func(t *testing.T) {
			tasks := "    - {debug: {}}\n"
			if row.Keyword != "" {
				tasks += fmt.Sprintf("    - {debug: {}, %s: %v}\n", row.Keyword, valueOf(row.Type, 1))
			}
			b := newBench(t, "-- site.yml --\n- hosts: h1\n  gather_facts: false\n  tasks:\n"+tasks)
			b.o.Defaults = Defaults{
				Connection: "local", User: "text7", KeyFile: "text7", Password: b.o.Redact.Secret("text7"), Become: true,
				BecomeMethod: "su", BecomeUser: "text7", BecomePass: b.o.Redact.Secret("text7"), BecomeExe: "text7",
				BecomeFlags: "text7", Timeout: 107 * time.Second, Port: 1007, SSHCommonArgs: "text7", SSHExtraArgs: "text7",
			}
			e := New(b.o)
			play := Tasks(b.books[0].Plays[0])
			nothing := value.NewDict()
			read := func(task *project.Task, set *value.Dict) any {
				t.Helper()
				v := e.TaskView(context.Background(), "h1", task)
				for name, val := range set.All() {
					v = v.With(name.(string), literal(val))
				}
				s := e.settings(v, &task.Attrs, v)
				got := s.value(row.Name)
				if s.err != nil {
					t.Fatal(s.err)
				}
				if secret, ok := got.(redact.Secret); ok {
					return secret.Reveal()
				}
				return got
			}
			if def := defaultOf(row); read(play[0], nothing) != def {
				t.Errorf("the default is %v, want %v", read(play[0], nothing), def)
			}
			if row.Keyword != "" {
				if got := read(play[1], nothing); got != valueOf(row.Type, 1) {
					t.Errorf("with the keyword it is %v, want %v", got, valueOf(row.Type, 1))
				}
			}
			set := value.NewDict()
			for i, name := range append([]string{row.Name}, row.Aliases...) {
				set.Set(name, valueOf(row.Type, i+2))
				if got := read(play[len(play)-1], set); got != valueOf(row.Type, i+2) {
					t.Errorf("with %v it is %v, want that of %s", set, got, name)
				}
			}
		})
	}
}

func defaultOf(row playbook.ConnectionVariable) any {
	switch {
	case row.Name == "ansible_host":
		return "h1"
	case row.Setting == "ssh_host_key", row.Setting == "" && row.Default == "":
		return "" // each connector has its own
	case row.Setting == "":
		return row.Default
	case row.Type == playbook.Bool:
		return true
	case row.Type == playbook.Connection || row.Type == playbook.BecomeMethod:
		return valueOf(row.Type, 1)
	}
	return valueOf(row.Type, 7)
}

// TestTargetReadsTheTable sets every connection variable by the name with the highest precedence.
func TestTargetReadsTheTable(t *testing.T) {
	hosts := "h1"
	for i, row := range playbook.ConnectionVariables() {
		for j, name := range row.Strongest() {
			n := 2 * (i*4 + len(row.Aliases) - j)
			if row.Type == playbook.Bool && name != row.Strongest()[0] {
				n++
			}
			hosts += fmt.Sprintf(" %s=%v", name, literal(valueOf(row.Type, n)))
		}
	}
	b := newBench(t, "-- hosts --\n"+hosts+"\n-- site.yml --\n- {hosts: h1, gather_facts: false, tasks: [{debug: {}}]}\n")
	e := New(b.o)
	task := Tasks(b.books[0].Plays[0])[0]
	v := e.TaskView(context.Background(), "h1", task)
	s := e.settings(v, &task.Attrs, v)
	target := e.target("h1", s)
	become, _ := e.become(s)
	if s.err != nil {
		t.Fatal(s.err)
	}
	shown := fmt.Sprintf("%+v %s %s %s %+v %s", target, target.Password.Reveal(), target.Passphrase.Reveal(),
		target.KeyContent.Reveal(),
		become, become.Password.Reveal())
	for i, row := range playbook.ConnectionVariables() {
		if row.Name == "ansible_shell_executable" {
			continue // it has no effect
		}
		if want := value.Str(valueOf(row.Type, 2*(i*4+len(row.Aliases)))); row.Type != playbook.Bool &&
			!strings.Contains(shown, want) {
			t.Errorf("%s does not reach the target: no %s in %s", row.Name, want, shown)
		}
	}
	if target.HostKeyChecking != "True" {
		t.Errorf("host key checking is %q", target.HostKeyChecking)
	}
}

// TestMagicVariablesAreTheTable compares the table with the variables of a run: in a role that another includes, in a
// delegated task, in a loop, after a failure, in a template.
func TestMagicVariablesAreTheTable(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(slices.Values(playbook.MagicNames())),
		slices.Sorted(maps.Keys(magicValues()))); diff != "" {
		t.Errorf("the engine's values and the table differ (-table +engine):\n%s", diff)
	}
	b := newBench(t, `-- hosts --
h1
h2 ansible_port=7 ansible_user=u ansible_private_key_file=k
-- site.yml --
- hosts: h1
  gather_facts: false
  tasks:
    - block: [{fail: {}}]
      rescue: [{include_role: {name: outer}}]
-- roles/outer/tasks/main.yml --
- include_role: {name: inner}
-- roles/inner/tasks/main.yml --
- set_fact: {seen: "{{ query('varnames', '.+') }}"}
  delegate_to: h2
  loop: [1]
  loop_control: {extended: true, index_var: i}
- template: {src: t.j2, dest: /t}
-- roles/inner/templates/t.j2 --
{{ template_host }}{{ template_path }}{{ template_fullpath }}{{ template_destpath }}{{ template_run_date }}
{{ template_mtime }}{{ template_uid }}{{ ansible_managed }}
`)
	b.o.LimitText = "h1"
	b.o.Defaults = Defaults{User: "u"}
	e := New(b.o)
	e.Run(context.Background(), b.books)
	seen, ok, err := e.View(context.Background(), "h1", b.books[0].Plays[0], b.dir).Lookup("seen")
	if err != nil || !ok {
		t.Fatal(ok, err, b.story())
	}
	got := map[string]bool{}
	for _, name := range seen.([]any) {
		got[name.(string)] = true
	}
	want := map[string]bool{"i": true} // the loop variable
	for _, m := range playbook.MagicVariables() {
		if m.Of != playbook.OfTemplate {
			for _, name := range m.Names() {
				want[name] = true
			}
		}
	}
	for _, c := range playbook.ConnectionVariables() {
		if c.Given {
			for _, name := range c.Strongest() {
				want[name] = true
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("the names in a run and the tables differ (-table +run):\n%s", diff)
	}
}

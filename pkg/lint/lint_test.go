package lint_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"kubekey/pkg/cli"
	"kubekey/pkg/lint"
)

// project writes the playbook of an example, with the files that follow it.
func project(t *testing.T, example string) string {
	t.Helper()
	a := txtar.Parse([]byte(example))
	playbook := string(a.Comment)
	if !strings.HasPrefix(playbook, "- hosts:") {
		playbook = "- hosts: all\n  tasks:\n    " + strings.ReplaceAll(strings.TrimSpace(playbook), "\n", "\n    ") + "\n"
	}
	dir := t.TempDir()
	for _, f := range append(a.Files, txtar.File{Name: "site.yml", Data: []byte(playbook)}) {
		name := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type finding struct {
	Rule, Severity, File, Message, Help string
	Line, Column                        int
}

// check runs kk lint on a project and returns what it finds.
func check(t *testing.T, dir string, args ...string) []finding {
	t.Helper()
	var out, errs bytes.Buffer
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
	cli.Program{}.Main(t.Context(), append([]string{"lint", "-o", "json", "--workdir", t.TempDir()}, args...), s)
	var found []finding
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		t.Fatalf("%s: %s%s", err, out.String(), errs.String())
	}
	return found
}

// Each rule finds its bad example, and nothing else does; its good example is
// found by none, and neither is the bad one with a comment that silences it.
func TestExamples(t *testing.T) {
	for _, r := range lint.Rules() {
		t.Run(r.ID, func(t *testing.T) {
			found := check(t, project(t, r.Bad), "-i", "h1,")
			if len(found) != 1 || found[0].Rule != r.ID {
				t.Errorf("bad: %+v", found)
			}
			if found := check(t, project(t, r.Good), "-i", "h1,"); len(found) != 0 {
				t.Errorf("good: %+v", found)
			}
			var silenced []string
			for _, line := range strings.Split(r.Bad, "\n") {
				if strings.HasPrefix(line, "-- ") {
					silenced = append(silenced, r.Bad[strings.Index(r.Bad, line):])
					break
				}
				if strings.HasPrefix(strings.TrimSpace(line), "- ") || strings.Contains(line, "vars:") {
					line += "  # noqa: other, " + r.ID
				}
				silenced = append(silenced, line)
			}
			if found := check(t, project(t, strings.Join(silenced, "\n")), "-i", "h1,"); len(found) != 0 {
				t.Errorf("silenced: %+v", found)
			}
		})
	}
}

// Names that something defines are not told, wherever it is.
func TestNamesAreKnown(t *testing.T) {
	dir := project(t, `- hosts: all
  vars: {a: 1}
  vars_files: [more.yml]
  vars_prompt: [{name: prompted}]
  roles: [r]
  tasks:
    - debug: {msg: "{{ a }}{{ prompted }}{{ from_file }}{{ from_group }}{{ role_default }}{{ role_var }}{{ given }}{{ ansible_anything }}{{ maybe | default(1) }}"}
    - debug: {msg: "{{ maybe }}{{ asked }}"}
      when: asked is defined
    - set_fact: {made: 1, b: "{{ made_by_words }}"}
    - set_fact: made_by_words=1
    - debug: {msg: "{{ made }}{{ outer }}{{ n }}{{ loop_index }}{{ b }}"}
      loop: [1]
      loop_control: {loop_var: outer, index_var: loop_index}
      vars: {n: "{{ outer }}"}
    - template: {src: t.j2, dest: /srv/t, mode: "0600"}
    - include_tasks: later.yml
      vars: {passed: 1}
-- later.yml --
- debug: {msg: "{{ passed }}{{ a }}"}
-- templates/t.j2 --
{% set x = 1 %}{% for k, v in {}.items() %}{{ k }}{{ v }}{{ loop.index }}{% endfor %}{% macro m(p) %}{{ p }}{% endmacro %}{{ m(x) }}{{ range(3) }}
-- more.yml --
from_file: 1
-- group_vars/all.yml --
from_group: 1
-- roles/r/defaults/main.yml --
role_default: 1
-- roles/r/vars/main.yml --
role_var: 1
-- roles/r/tasks/main.yml --
- debug: {msg: "{{ role_default }}{{ role_path }}"}
`)
	if found := check(t, dir, "-i", "h1,", "-e", "given=1"); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// Without an inventory only names like a known one are reported.
func TestNamesWithoutInventory(t *testing.T) {
	dir := project(t, "- debug: {msg: \"{{ colour }}{{ shaep }}\"}\n  vars: {shape: round}\n")
	var told []string
	for _, f := range check(t, dir) {
		told = append(told, f.Message)
	}
	if !slices.Equal(told, []string{"nothing defines 'shaep'"}) {
		t.Errorf("%q", told)
	}
}

// What a file notifies that is included by a templated name is not known: the
// handlers of its role are not checked, others are.
func TestHandlersOfTemplatedIncludes(t *testing.T) {
	const role = "-- roles/r/tasks/main.yml --\n- include_tasks: \"{{ ansible_os_family }}.yml\"\n" +
		"-- roles/r/tasks/Debian.yml --\n- ping:\n  notify: of the role\n" +
		"-- roles/r/handlers/main.yml --\n- {name: of the role, ping: }\n"
	for tasks, want := range map[string][]string{
		"  tasks: [{ping: }]\n": {"nothing notifies the handler 'of the play'"},
		"  tasks: [{include_tasks: \"{{ ansible_os_family }}.yml\"}]\n":         nil,
		"  tasks: [{include_role: {name: \"{{ ansible_os_family }}_role\"}}]\n": nil,
	} {
		dir := project(t, "- hosts: all\n  roles: [r]\n"+tasks+"  handlers: [{name: of the play, ping: }]\n"+role)
		var told []string
		for _, f := range check(t, dir) {
			told = append(told, f.Message)
		}
		if !slices.Equal(told, want) {
			t.Errorf("%s: %q", tasks, told)
		}
	}
}

// Conditions that are texts, those that linking warns of too.
func TestConditions(t *testing.T) {
	dir := project(t, `- hosts: all
  vars: {enabled: "no", on: "yes", off: false}
  tasks:
    - ping:
      when: enabled
    - ping:
      when: "{{ off }}"
    - ping:
      when: "{{ off }}"  # noqa: condition-on-text
    - ping:
      when: [on, off, enabled | bool]
    - ping:
      when: "false"
`)
	var told []string
	for _, f := range check(t, dir, "-i", "h1,") {
		told = append(told, fmt.Sprint(f.Line, " ", f.Rule))
	}
	if want := []string{"5 condition-on-text", "7 condition-on-text", "13 condition-on-text"}; !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
}

func TestSARIF(t *testing.T) {
	found := check(t, project(t, "- command: hostname\n- nosuchmodule: {}\n"), "-i", "h1,")
	if len(found) != 2 || found[0].Rule != "missing-changed-when" || found[1].Rule != "load" ||
		found[1].Severity != "error" {
		t.Fatalf("%+v", found)
	}
	var out bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &bytes.Buffer{}}
	if code := (cli.Program{}).Main(t.Context(), []string{"lint", "-o", "sarif", "-i", "h1,", "--workdir", t.TempDir()},
		s); code != 4 {
		t.Errorf("exit code %d", code)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID, Level string
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if log.Version != "2.1.0" || len(run.Tool.Driver.Rules) != len(lint.Rules())+1 || len(run.Results) != 2 {
		t.Fatalf("%s", out.String())
	}
	at := run.Results[0].Locations[0].PhysicalLocation
	if r := run.Results[0]; r.RuleID != "missing-changed-when" || r.Level != "warning" ||
		at.ArtifactLocation.URI != "site.yml" || at.Region.StartLine != 3 || at.Region.StartColumn != 7 {
		t.Errorf("%+v", r)
	}
}

// What kk carries follows its own rules.
func TestCarriedPlaybooks(t *testing.T) {
	books, err := filepath.Glob("../../builtin/playbooks/*.yaml")
	if err != nil || len(books) == 0 {
		t.Fatal(books, err)
	}
	for i := range books {
		if books[i], err = filepath.Abs(books[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range check(t, t.TempDir(), append(books, "-e", "delete_nodes=node1")...) {
		t.Errorf("%s:%d: %s [%s]", f.File, f.Line, f.Message, f.Rule)
	}
}

// Package peer compares kk with Ansible, where ansible-playbook is installed:
// what modules return for the same tasks, and what the same runs print.
package peer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// peerCase is a file of testdata: tasks that run in order in an empty folder,
// which they know as {{ dir }}.
type peerCase struct {
	Tasks []yaml.Node `yaml:"tasks"`
	// Differs says of keys, "KEY" or "KEY of task NUMBER" from 1, why kk does not tell them.
	Differs map[string]string `yaml:"differs"`
}

// asides are keys that say how a task was run, not what it did.
var asides = []string{"warnings", "deprecations", "diff", "invocation", "exception", "ansible_facts"}

func TestResultsAreThoseOfAnsible(t *testing.T) {
	ansible, err := exec.LookPath("ansible-playbook")
	if err != nil {
		t.Skip("needs ansible-playbook: install ansible-core")
	}
	kk := buildKK(t)
	cases, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			c := readCase(t, file)
			theirs := results(t, c, ansible, "-i", "localhost,")
			ours := results(t, c, kk, "run", "-i", "localhost,")
			for i := range c.Tasks {
				compare(t, c, i+1, theirs[i], ours[i])
			}
		})
	}
}

func readCase(t *testing.T, file string) peerCase {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c peerCase
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

// results runs the tasks with a program, in a folder of their own, and returns
// what each of them registered.
func results(t *testing.T, c peerCase, program string, args ...string) []map[string]any {
	t.Helper()
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	play := playbook(t, c, work, filepath.Join(dir, "results.json"))
	if err := os.WriteFile(filepath.Join(dir, "site.yml"), play, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append(args, "site.yml")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "ANSIBLE_REMOTE_TMP="+filepath.Join(dir, "remote"), "ANSIBLE_LOCAL_TEMP="+filepath.Join(dir, "local"), "ANSIBLE_LOCALHOST_WARNING=false", "ANSIBLE_NOCOLOR=true")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(program), err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		t.Fatalf("%s wrote no results: %v\n%s", filepath.Base(program), err, out)
	}
	var all []map[string]any
	if err := json.Unmarshal(text, &all); err != nil || len(all) != len(c.Tasks) {
		t.Fatalf("%d results, %v: %s", len(all), err, text)
	}
	return all
}

// playbook wraps the tasks: each registers its result, and failing is no end.
func playbook(t *testing.T, c peerCase, work, dest string) []byte {
	t.Helper()
	var tasks []any
	var names []string
	for i, n := range c.Tasks {
		task := map[string]any{}
		if err := n.Decode(&task); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("result_%d", i+1)
		task["register"], task["ignore_errors"] = name, true
		tasks, names = append(tasks, task), append(names, name)
	}
	write := map[string]any{"copy": map[string]any{"content": "{{ [" + strings.Join(names, ", ") + "] | to_json }}", "dest": dest}}
	text, err := yaml.Marshal([]any{map[string]any{
		"hosts": "localhost", "connection": "local", "gather_facts": false,
		"vars":  map[string]any{"dir": work, "ansible_python_interpreter": "/usr/bin/python3"},
		"tasks": append(tasks, write),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// compare fails the test where the two tell different things: whether the task
// changed something, failed or was skipped, or where a key of Ansible's is missing.
func compare(t *testing.T, c peerCase, number int, theirs, ours map[string]any) {
	t.Helper()
	for _, key := range []string{"changed", "failed", "skipped"} {
		if (theirs[key] == true) != (ours[key] == true) {
			t.Errorf("task %d: %s is %v in Ansible and %v here: %v / %v", number, key, theirs[key], ours[key], theirs["msg"], ours["msg"])
		}
	}
	excused := func(key string) bool {
		return slices.Contains(asides, key) || c.Differs[key] != "" || c.Differs[fmt.Sprintf("%s of task %d", key, number)] != ""
	}
	for key := range theirs {
		if _, there := ours[key]; !there && !excused(key) {
			t.Errorf("task %d: Ansible has %s=%v, which is missing here", number, key, theirs[key])
		}
	}
}

package peer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// peerCase is a file of testdata: tasks that run in order. They know an empty
// folder as {{ dir }}.
type peerCase struct {
	// Modes say how often each task runs: "check" in check mode, "run", and
	// "again", when there should be nothing left to do. Only "run" when empty.
	Modes   []string    `yaml:"modes"`
	Diff    bool        `yaml:"diff"`    // compare the diff too
	Cluster bool        `yaml:"cluster"` // tasks know the API server of their program as {{ kubeconfig }}
	Tasks   []yaml.Node `yaml:"tasks"`
	// What may differ, with the reason. It is said of a key (of a key in a key
	// as "stat.mode", of all as "*" and "stat.*"), everywhere or as "KEY of task NUMBER",
	// from 1, "KEY in MODE" or "KEY of task NUMBER in MODE".
	OnlyAnsible map[string]string `yaml:"only_ansible"`
	OnlyKK      map[string]string `yaml:"only_kk"`
	Other       map[string]string `yaml:"other"`     // both tell it, and not the same
	Sometimes   map[string]string `yaml:"sometimes"` // the same, but for chance

	name string
	text []byte          // of the file
	used map[string]bool // excuses that were needed
}

// step is one run of a task of a case.
type step struct {
	number int // from 1
	mode   string
}

func (s step) String() string { return fmt.Sprintf("task %d (%s)", s.number, s.mode) }

// variable is the name that the result of a step is registered as.
func (c *peerCase) variable(s step) string {
	return fmt.Sprintf("result_%s_%d_%s", strings.ReplaceAll(c.name, "-", "_"), s.number, s.mode)
}

func (c *peerCase) steps() []step {
	modes := c.Modes
	if len(modes) == 0 {
		modes = []string{"run"}
	}
	var steps []step
	for i := range c.Tasks {
		for _, mode := range modes {
			steps = append(steps, step{i + 1, mode})
		}
	}
	return steps
}

// readCases reads the cases of a folder of testdata whose names fit the pattern.
func readCases(t *testing.T, folder, pattern string) []*peerCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, pattern+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []*peerCase
	for _, file := range files {
		c := &peerCase{name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
		var err error
		if c.text, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		d := yaml.NewDecoder(bytes.NewReader(c.text))
		d.KnownFields(true)
		if err := d.Decode(c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		cases = append(cases, c)
	}
	return cases
}

// playbook is one play of all cases: each step registers its result, and
// failing is no end. The results are written to a file of the control node.
func playbook(t *testing.T, cases []*peerCase, work, dest string) []byte {
	t.Helper()
	var tasks []any
	var results []string
	for _, c := range cases {
		dir := filepath.Join(work, c.name)
		tasks = append(tasks, map[string]any{"file": map[string]any{"path": dir, "state": "directory"}})
		tasks = append(tasks, map[string]any{"block": c.block(t),
			"vars": map[string]any{"dir": dir, "files": testdata(t, "files")}})
		for _, s := range c.steps() {
			results = append(results, fmt.Sprintf("'%s': %[1]s | default({})", c.variable(s)))
		}
	}
	tasks = append(tasks, map[string]any{
		"copy":        map[string]any{"content": "{{ {" + strings.Join(results, ", ") + "} | to_json }}", "dest": dest},
		"delegate_to": "control",
		// Ansible keeps the arguments of include_role as templates
		"vars": map[string]any{"files": testdata(t, "files")},
	})
	text, err := yaml.Marshal([]any{map[string]any{"hosts": "peer", "gather_facts": false, "tasks": tasks}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (c *peerCase) block(t *testing.T) []any {
	t.Helper()
	var tasks []any
	for _, s := range c.steps() {
		task := map[string]any{}
		if err := c.Tasks[s.number-1].Decode(&task); err != nil {
			t.Fatal(err)
		}
		task["name"] = c.name + " " + s.String()
		task["register"], task["ignore_errors"] = c.variable(s), true
		if s.mode == "check" {
			task["check_mode"] = true
		}
		if c.Diff {
			task["diff"] = true
		}
		refuseLate(t, task)
		tasks = append(tasks, task)
	}
	return tasks
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

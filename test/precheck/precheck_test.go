package precheck_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"gopkg.in/yaml.v3"

	"kubekey/builtin"
	"kubekey/pkg/cli"
)

// scenario is one case: what differs from fit.yaml, and what comes of it.
type scenario struct {
	Tags     []string                  `yaml:"tags"`     // checks to run; all when empty
	Hosts    map[string]map[string]any `yaml:"hosts"`    // variables of hosts; replaces the host
	Groups   map[string][]string       `yaml:"groups"`   // replaces the groups it names
	Vars     map[string]any            `yaml:"vars"`     // facts, answers of probes and config; null takes one away
	Findings map[string][]string       `yaml:"findings"` // by host, as the report names them; no host has others
	Says     []string                  `yaml:"says"`     // what the reports contain
	Passes   []string                  `yaml:"passes"`   // checks that ran and found nothing
}

func read(t *testing.T, path string) scenario {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var s scenario
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s
}

// over is the scenario with what another says instead.
func (s scenario) over(fit scenario) scenario {
	s.Hosts = merged(fit.Hosts, s.Hosts)
	s.Groups = merged(fit.Groups, s.Groups)
	s.Vars = merged(fit.Vars, s.Vars)
	maps.DeleteFunc(s.Vars, func(_ string, v any) bool { return v == nil })
	return s
}

func merged[V any](under, over map[string]V) map[string]V {
	all := maps.Clone(under)
	maps.Copy(all, over)
	return all
}

// inventory is the scenario's hosts, all of them this machine.
func (s scenario) inventory() map[string]any {
	groups := map[string]any{}
	for name, hosts := range s.Groups {
		members := map[string]any{}
		for _, h := range hosts {
			members[h] = nil
		}
		groups[name] = map[string]any{"hosts": members}
	}
	groups["k8s_cluster"] = map[string]any{"children": map[string]any{"kube_control_plane": nil, "kube_worker": nil}}
	return map[string]any{"all": map[string]any{
		"hosts": s.Hosts, "children": groups, "vars": map[string]any{"ansible_connection": "local"},
	}}
}

// outcome is what a run told.
type outcome struct {
	code    int
	reports map[string]string   // by host
	passed  map[string][]string // checks that held, by host
	scripts map[string]string   // what tasks of the module shell ran, by task
	changed int
	text    string
}

// event is a line of the output json, as far as it is looked at.
type event struct {
	Type, Host, Status string
	Task               struct {
		Name, Action string
		At           struct{ File string }
	}
	Result struct{ Msg, Cmd any }
	Stats  map[string]struct{ Changed int }
}

func (s scenario) run(t *testing.T, more ...string) outcome {
	t.Helper()
	dir := t.TempDir()
	args := []string{"precheck", "-o", "json", "--workdir", dir, "-i", filepath.Join(dir, "inventory.yaml"), "-e", "@" +
		filepath.Join(dir, "vars.yaml")}
	write(t, filepath.Join(dir, "inventory.yaml"), s.inventory())
	write(t, filepath.Join(dir, "vars.yaml"), s.Vars)
	args = append(append(args, more...), s.Tags...)
	var out, errs bytes.Buffer
	code := cli.Main(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, builtin.FS())
	if code != 0 && code != 2 {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	o := outcome{code: code, reports: map[string]string{}, passed: map[string][]string{}, scripts: map[string]string{},
		text: errs.String()}
	for line := range strings.Lines(out.String()) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("read %q: %v", line, err)
		}
		o.take(e)
	}
	return o
}

func (o *outcome) take(e event) {
	for _, s := range e.Stats {
		o.changed += s.Changed
	}
	if e.Type != "host_result" {
		return
	}
	msg, _ := e.Result.Msg.(string)
	cmd, _ := e.Result.Cmd.(string)
	switch {
	case e.Task.Action == "fail" && e.Status == "failed":
		o.reports[e.Host] = msg
	case e.Task.Action == "shell" && cmd != "":
		o.scripts[key(e.Task.At.File, e.Task.Name)] = cmd
	case e.Task.Action == "assert" && e.Status == "ok":
		o.passed[e.Host] = append(o.passed[e.Host], key(e.Task.At.File, e.Task.Name))
	}
}

func write(t *testing.T, path string, v any) {
	t.Helper()
	text, err := json.Marshal(v) // which is YAML as well
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

var title = regexp.MustCompile(`(?m)^- (.+)$`)

// findings are the titles in a report.
func findings(report string) []string {
	var names []string
	for _, m := range title.FindAllStringSubmatch(report, -1) {
		names = append(names, m[1])
	}
	return names
}

// key tells a task by its file and name.
func key(file, name string) string { return path.Base(file) + ": " + name }

// checks maps the tasks of the role that are checks to their titles in reports.
func checks(t *testing.T) map[string]string {
	t.Helper()
	const dir = "roles/precheck/tasks"
	entries, err := fs.ReadDir(builtin.FS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	titles := map[string]string{}
	for _, e := range entries {
		text, err := fs.ReadFile(builtin.FS(), path.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var tasks []struct{ Name, Register string }
		if err := yaml.Unmarshal(text, &tasks); err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		for _, task := range tasks {
			if name, ok := strings.CutPrefix(task.Register, "check_"); ok {
				tag, rest, _ := strings.Cut(name, "_")
				titles[key(e.Name(), task.Name)] = tag + ": " + strings.ReplaceAll(rest, "_", " ")
			}
		}
	}
	return titles
}

// coverage collects over all cases which checks held and which did not.
type coverage struct {
	sync.Mutex
	held, broke map[string]bool
}

func (c *coverage) add(titles map[string]string, o outcome) {
	c.Lock()
	defer c.Unlock()
	for _, keys := range o.passed {
		for _, k := range keys {
			c.held[titles[k]] = true
		}
	}
	for _, report := range o.reports {
		for _, name := range findings(report) {
			c.broke[name] = true
		}
	}
}

func TestFindings(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fit := read(t, "testdata/fit.yaml")
	titles := checks(t)
	seen := &coverage{held: map[string]bool{}, broke: map[string]bool{}}
	t.Run("cases", func(t *testing.T) {
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
				t.Parallel()
				s := read(t, file).over(fit)
				o := s.run(t)
				s.check(t, o, titles)
				seen.add(titles, o)
			})
		}
	})
	for _, name := range titles {
		if !seen.held[name] {
			t.Errorf("no case in which %q holds", name)
		}
		if !seen.broke[name] {
			t.Errorf("no case in which %q is found", name)
		}
	}
}

// check fails the test unless the findings are those of the case, no more and no less.
func (s scenario) check(t *testing.T, o outcome, titles map[string]string) {
	t.Helper()
	code, all := 0, ""
	for host := range s.Hosts {
		want, got := slices.Sorted(slices.Values(s.Findings[host])), slices.Sorted(slices.Values(findings(o.reports[host])))
		if !slices.Equal(got, want) {
			t.Errorf("findings of %s: %q, want %q\n%s%s", host, got, want, o.reports[host], o.text)
		}
		if len(want) > 0 {
			code = 2
		}
		all += o.reports[host]
	}
	if o.code != code {
		t.Errorf("exit code %d, want %d\n%s", o.code, code, o.text)
	}
	if o.changed != 0 {
		t.Errorf("%d changes, want none", o.changed)
	}
	for _, text := range s.Says {
		if !strings.Contains(all, text) {
			t.Errorf("the reports do not say %q:\n%s", text, all)
		}
	}
	var held []string
	for _, keys := range o.passed {
		for _, k := range keys {
			held = append(held, titles[k])
		}
	}
	for _, name := range s.Passes {
		if !slices.Contains(held, name) {
			t.Errorf("%q did not hold, or did not run", name)
		}
	}
}

// TestEveryFindingSaysWhatToDo looks at the checks as they are written.
func TestEveryFindingSaysWhatToDo(t *testing.T) {
	err := fs.WalkDir(builtin.FS(), "roles/precheck/tasks", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(builtin.FS(), name)
		if err != nil {
			return err
		}
		var tasks []struct {
			Name, Register string
			Assert         struct {
				FailMsg string `yaml:"fail_msg"`
			}
		}
		if err := yaml.Unmarshal(text, &tasks); err != nil {
			return err
		}
		for _, task := range tasks {
			if !strings.HasPrefix(task.Register, "check_") {
				continue
			}
			for _, part := range []string{"found: ", "\nneeded: ", "\nfix: "} {
				if !strings.Contains(task.Assert.FailMsg, part) {
					t.Errorf("%s: %s does not tell %q", name, task.Name, strings.TrimSpace(part))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestThisMachine runs without an inventory and without given facts: whatever
// is found, nothing breaks.
func TestThisMachine(t *testing.T) {
	dir := t.TempDir()
	var out, errs bytes.Buffer
	args := []string{"run", "playbooks/precheck.yaml", "--workdir", dir}
	code := cli.Main(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, builtin.FS())
	if code != 0 && code != 2 {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	if strings.Contains(out.String(), "cannot be checked") {
		t.Errorf("a check could not be made:\n%s", out.String())
	}
	if !strings.Contains(out.String(), "changed=0") {
		t.Errorf("something changed:\n%s", out.String())
	}
}

// TestScripts reads the scripts as the hosts get them with a shell, and with
// shellcheck where the machine has it.
func TestScripts(t *testing.T) {
	o := read(t, "testdata/fit.yaml").run(t)
	if len(o.scripts) < 5 {
		t.Fatalf("only %d scripts ran: %v", len(o.scripts), o.scripts)
	}
	checkers := [][]string{{"sh", "-n"}}
	if _, err := exec.LookPath("shellcheck"); err == nil {
		checkers = append(checkers, []string{"shellcheck", "-s", "sh", "-e", "SC2043", "-"}) // a list may have one word
	} else {
		t.Log("the machine has no shellcheck: the scripts are parsed only")
	}
	for task, script := range o.scripts {
		for _, argv := range checkers {
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Stdin = strings.NewReader(script + "\n")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s\n%s", task, argv[0], err, out, script)
			}
		}
	}
}

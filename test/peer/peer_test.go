// Package peer compares what kk's modules return with what Ansible's return
// for the same tasks, where ansible-playbook is installed. Each program runs
// the tasks of all cases in one play; what Ansible answered before is remembered.
package peer

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var pattern = flag.String("cases", "*", "run the cases whose file names fit this pattern")

// program is Ansible or kk.
type program struct {
	name string
	args []string
	env  []string
}

// programs finds Ansible with its collections, and builds kk.
func programs(t *testing.T) (ansible, kk program) {
	t.Helper()
	path, err := exec.LookPath("ansible-playbook")
	if err != nil {
		t.Skip("needs ansible-playbook: install ansible-core")
	}
	collections, err := exec.Command("./collections.sh").Output()
	if err != nil {
		t.Skip("needs Ansible's collections, which collections.sh did not get: ", err)
	}
	ansible = program{name: path, env: []string{
		"ANSIBLE_COLLECTIONS_PATH=" + strings.TrimSpace(string(collections)),
		"ANSIBLE_PIPELINING=true", "ANSIBLE_NOCOLOR=true", "ANSIBLE_LOCALHOST_WARNING=false",
	}}
	return ansible, program{name: buildKK(t), args: []string{"run"}}
}

func TestResultsAreThoseOfAnsible(t *testing.T) {
	t.Parallel() // most of the time is Ansible's, in one process
	ansible, kk := programs(t)
	cases := withCluster(t, readCases(t, "local", *pattern))
	url := newServer(t)
	compareAll(t, cases, newMemory(t, ansible, here(t)), func(t *testing.T, theirs bool, cases []*peerCase) results {
		p := kk
		if theirs {
			p = ansible
		}
		p, kubeconfig := p.onCluster(t, cases)
		const text = "peer: {hosts: {peer1: {}}}\nall: {hosts: {control: {}}, vars: {url: %q, kubeconfig: %q, ansible_connection: local, ansible_python_interpreter: /usr/bin/python3}}\n"
		dir := t.TempDir()
		r := p.run(t, cases, fmt.Sprintf(text, url, kubeconfig), dir, filepath.Join(dir, "work"))
		address := strings.TrimPrefix(url, "http://")
		_, port, _ := strings.Cut(address, ":")
		return r.rename(t, address, "SERVER").rename(t, `"port":`+port, `"port":"PORT"`)
	})
}

// results are what steps returned, by the names they are registered as.
type results map[string]map[string]any

// compareAll runs the cases with kk, and with Ansible where it is not known what
// that answers, and compares what they tell of each case in a subtest.
func compareAll(t *testing.T, cases []*peerCase, known memory,
	run func(t *testing.T, theirs bool, cases []*peerCase) results) {
	t.Helper()
	var ours results
	if !t.Run("kk", func(t *testing.T) { ours = run(t, false, cases) }) {
		t.FailNow()
	}
	remembered, unknown := known.fitting(t, cases, ours)
	if len(unknown) > 0 {
		var theirs results
		if !t.Run("ansible", func(t *testing.T) { theirs = run(t, true, unknown) }) {
			t.FailNow()
		}
		maps.Copy(remembered, theirs)
	}
	for _, c := range unknown {
		t.Log("Ansible was asked about ", c.name)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, fault := range c.faults(remembered, ours) {
				t.Error(fault)
			}
			if !t.Failed() && slices.Contains(unknown, c) {
				known.keepCase(t, c, remembered)
			}
		})
	}
}

// rename puts a name for what is of one program's host.
func (r results) rename(t *testing.T, from, to string) results {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, bytes.ReplaceAll(text, []byte(from), []byte(to)))
}

// parse keeps numbers as they are written: some are beyond what a float holds.
func parse(t *testing.T, text []byte) results {
	t.Helper()
	var all results
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return all
}

// run runs the cases in the folder work of the hosts of an inventory. Files of
// the control node lie in dir; both folders are called DIR in the results.
func (p program) run(t *testing.T, cases []*peerCase, inventory, dir, work string) results {
	t.Helper()
	written := filepath.Join(dir, "results.json")
	for name, text := range map[string][]byte{"site.yml": playbook(t, cases, work, written),
		"hosts.yml": []byte(inventory)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), p.name, append(p.args, "-i", "hosts.yml", "site.yml")...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), p.env...), "HOME="+dir, "ANSIBLE_REMOTE_TMP="+filepath.Join(dir, "remote"),
		"ANSIBLE_LOCAL_TEMP="+filepath.Join(dir, "local"), "ANSIBLE_ASYNC_DIR="+filepath.Join(work, "async"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(p.name), err, out[max(0, len(out)-4000):])
	}
	text, err := os.ReadFile(written)
	if err != nil {
		t.Fatalf("%s wrote no results: %v\n%s", filepath.Base(p.name), err, out)
	}
	return parse(t, []byte(anonymous(strings.NewReplacer(work, "DIR", dir, "DIR").Replace(string(text)))))
}

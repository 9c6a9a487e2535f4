// Package peer compares what kk's modules return with what Ansible's return
// for the same tasks, where ansible-playbook is installed. Each program runs
// the tasks of all cases in one play.
package peer

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	ansible, kk := programs(t)
	cases := readCases(t, "local", *pattern)
	inventory := fmt.Sprintf("peer: {hosts: {peer1: {}}}\nall: {hosts: {control: {}}, vars: {url: %q, ansible_connection: local, ansible_python_interpreter: /usr/bin/python3}}\n", newServer(t))
	compareAll(t, cases, func(t *testing.T, theirs bool) results {
		p := kk
		if theirs {
			p = ansible
		}
		dir := t.TempDir()
		return p.run(t, cases, inventory, dir, filepath.Join(dir, "work"))
	})
}

// results are what steps returned, by the names they are registered as.
type results map[string]map[string]any

// compareAll runs both programs side by side, and compares what they tell of
// each case in a subtest.
func compareAll(t *testing.T, cases []*peerCase, run func(t *testing.T, theirs bool) results) {
	t.Helper()
	var theirs, ours results
	t.Run("run", func(t *testing.T) {
		t.Run("ansible", func(t *testing.T) { t.Parallel(); theirs = run(t, true) })
		t.Run("kk", func(t *testing.T) { t.Parallel(); ours = run(t, false) })
	})
	if theirs == nil || ours == nil {
		t.FailNow()
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, s := range c.steps() {
				v := c.variable(s)
				comparison{t, c, s}.results("", theirs[v], ours[v])
			}
			c.needless(t)
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
	var named results
	if err := json.Unmarshal(bytes.ReplaceAll(text, []byte(from), []byte(to)), &named); err != nil {
		t.Fatal(err)
	}
	return named
}

// run runs the cases in the folder work of the hosts of an inventory. Files of
// the control node lie in dir; both folders are called DIR in the results.
func (p program) run(t *testing.T, cases []*peerCase, inventory, dir, work string) results {
	t.Helper()
	written := filepath.Join(dir, "results.json")
	for name, text := range map[string][]byte{"site.yml": playbook(t, cases, work, written), "hosts.yml": []byte(inventory)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), p.name, append(p.args, "-i", "hosts.yml", "site.yml")...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), p.env...), "HOME="+dir, "ANSIBLE_REMOTE_TMP="+filepath.Join(dir, "remote"), "ANSIBLE_LOCAL_TEMP="+filepath.Join(dir, "local"), "ANSIBLE_ASYNC_DIR="+filepath.Join(work, "async"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(p.name), err, out[max(0, len(out)-4000):])
	}
	text, err := os.ReadFile(written)
	if err != nil {
		t.Fatalf("%s wrote no results: %v\n%s", filepath.Base(p.name), err, out)
	}
	var all results
	same := strings.NewReplacer(work, "DIR", dir, "DIR").Replace(string(text))
	if err := json.Unmarshal([]byte(same), &all); err != nil {
		t.Fatalf("results of %s: %v: %s", filepath.Base(p.name), err, text)
	}
	return all
}

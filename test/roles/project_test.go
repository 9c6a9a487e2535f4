package roles

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"kubekey/test/lab"

	"gopkg.in/yaml.v3"
)

// binary builds kk once for all tests and returns its path.
var binary = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../bin/kk-roles")
	if err != nil {
		return "", err
	}
	return path, lab.BuildKK(path)
})

// project is a folder with the builtin roles and a playbook of each that a
// test runs. Its config is the builtin one, but that the test says what the
// catalog comes to, so that it may name programs of this machine.
type project struct {
	dir string
	lab *lab.Lab
	cut bool // kk reaches the hosts alone
}

func newProject(t testing.TB) *project {
	t.Helper()
	if hosts == nil {
		t.Skip("needs the lab: " + skipReason)
	}
	p := &project{dir: t.TempDir(), lab: hosts}
	roles, err := filepath.Abs("../../builtin/roles")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(roles, p.path("roles")); err != nil {
		t.Fatal(err)
	}
	p.write(t, "config/schema.yaml", schema(t))
	return p
}

// schema is the builtin one with a catalog of any shape.
func schema(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("../../builtin/config/schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	tree["properties"].(map[string]any)["catalog"] = map[string]any{"type": "object", "default": map[string]any{}}
	out, err := yaml.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func (p *project) path(name string) string { return filepath.Join(p.dir, name) }

func (p *project) write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run is a run of kk.
type run struct {
	t      testing.TB
	code   int
	output string
}

// role runs a role, or the file tasks of it, on the hosts of a group. groups
// says which hosts of the lab are in which group.
func (p *project) role(t *testing.T, name, tasks, group, groups, config string, args ...string) run {
	t.Helper()
	p.write(t, "playbooks/run.yaml", fmt.Sprintf("- name: Run a role\n  hosts: %s\n  become: true\n  tasks:\n"+
		"    - name: Role\n      include_role: {name: %s, tasks_from: %s}\n", group, name, tasks))
	return p.kk(t, "run", groups, config, args...)
}

// kk runs a playbook of the project.
func (p *project) kk(t testing.TB, playbook, groups, config string, args ...string) run {
	t.Helper()
	p.write(t, "config.yaml", config)
	p.write(t, "inventory.yaml", p.inventory(groups))
	kk, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"run", p.path("playbooks/" + playbook + ".yaml"), "-i", p.path("inventory.yaml"), "-c",
		p.path("config.yaml"),
		"--workdir", p.path("work"), "--known-hosts", p.lab.KnownHosts()}, args...)
	cmd := exec.CommandContext(t.Context(), kk, args...)
	if p.cut {
		cmd = p.lab.Command(t.Context(), kk, args...)
	}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return run{t, cmd.ProcessState.ExitCode(), string(out)}
}

// inventory has all hosts of the lab, and groups of them.
func (p *project) inventory(groups string) string {
	var b strings.Builder
	b.WriteString("all:\n  hosts:\n")
	for _, h := range p.lab.Hosts {
		fmt.Fprintf(&b, "    %s: {ansible_host: %s, internal_ipv4: %s, ansible_user: root, ansible_ssh_private_key_file: %s}\n",
			h.Name, h.Address, h.Address, h.Key)
	}
	return b.String() + "  children:\n" + groups
}

// ok fails the test unless kk ended well.
func (r run) ok() run {
	r.t.Helper()
	if r.code != 0 {
		r.t.Fatalf("exit code %d\n%s", r.code, r.output)
	}
	return r
}

var changes = regexp.MustCompile(`(?m)^(\S+)\s+: ok=.* changed=(\d+) `)

// changedNothing fails the test unless every host's line in the recap says so.
func (r run) changedNothing() {
	r.t.Helper()
	r.ok()
	rows := changes.FindAllStringSubmatch(r.output, -1)
	if len(rows) == 0 || slices.ContainsFunc(rows, func(row []string) bool { return row[2] != "0" }) {
		r.t.Errorf("something changed\n%s", r.output)
	}
}

// on runs a script on a host and returns what it prints.
func on(t testing.TB, host int, script string) string {
	t.Helper()
	return onHost(t, hosts, host, script)
}

func onHost(t testing.TB, l *lab.Lab, host int, script string) string {
	t.Helper()
	out, err := l.Exec(t.Context(), host, script)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// upstream is the folder of a program's version on this machine.
func upstream(t testing.TB, program string) (dir, version string) {
	t.Helper()
	root := os.Getenv("KK_UPSTREAM")
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip("no cache folder: " + err.Error())
		}
		root = filepath.Join(cache, "kk-upstream")
	}
	found, err := filepath.Glob(filepath.Join(root, program+"-v*", "amd64"))
	if err != nil || len(found) == 0 {
		t.Skipf("needs %s-VERSION/amd64 in %s: the lab's mirror builds it", program, root)
	}
	version = strings.TrimPrefix(filepath.Base(filepath.Dir(found[0])), program+"-")
	return found[0], version
}

// archive packs files as they lie below dir into the cache of the project.
func (p *project) archive(t testing.TB, name, dir string, members ...string) {
	t.Helper()
	if err := os.MkdirAll(p.path("work/cache"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.command(t, "tar", append([]string{"-C", dir, "-czf", p.path("work/cache/" + name)}, members...)...)
}

// command runs a program of this machine in the project's folder.
func (p *project) command(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = p.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

package cluster

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

// groups are hosts of the lab, by number from 1, by the group of the inventory.
type groups map[string][]int

// controller is a work dir with an inventory and a config: a person's view of one cluster.
type controller struct {
	*machine
	dir       string
	inventory string
	config    string
	groups    groups
	file      string // the offline file of a cut lab
	user      string // whom kk logs in as; "" is root
	vars      string // extra vars of every run, a mapping in JSON
	logs      int
}

// newController describes a cluster: who does what, and what differs from the lab's config.
func newController(t testing.TB, g groups, config string) *controller {
	t.Helper()
	if rig == nil {
		t.Skip("needs the lab: " + skipReason)
	}
	dir := t.TempDir()
	c := &controller{machine: rig, dir: dir, inventory: filepath.Join(dir, "inventory.yaml"),
		config: filepath.Join(dir, "config.yaml")}
	c.regroup(t, g)
	base, err := c.mirror.WriteConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	writeYAML(t, c.config, readYAML(t, base))
	c.configure(t, config)
	t.Cleanup(func() {
		if t.Failed() { // the next test needs new hosts
			c.try(context.Background(), t, "delete", "cluster", "--yes", "--all", "--with-data")
		}
	})
	return c
}

// inTime skips a test that takes about as long as this on a busy machine, where
// less is left of the time of all: it would be killed in the middle of a cluster.
func inTime(t *testing.T, takes time.Duration) {
	t.Helper()
	if end, ok := t.Deadline(); ok && time.Until(end) < takes {
		t.Skipf("%s are left and this may take %s: run make e2e-cluster RUN=%s", time.Until(end).Round(time.Second), takes,
			t.Name())
	}
}

// step is a part of a test that it can do without.
type step struct {
	name  string
	takes time.Duration // on a machine that does nothing else
	do    func()
}

// asFarAsTimeGoes does steps in their order after what began at start and was to take as
// long as done. On a machine so busy that a step and ending, what must follow all of them, would
// not fit into what is left of the time of all, it stops and says so.
func asFarAsTimeGoes(t *testing.T, start time.Time, done, ending time.Duration, steps ...step) {
	t.Helper()
	for _, s := range steps {
		slow := max(1, time.Since(start).Seconds()/done.Seconds())
		need := time.Duration(slow * float64(s.takes+ending))
		if end, ok := t.Deadline(); ok && time.Until(end) < need {
			t.Logf("left out from here on: %s: %s are left, and at %.1f times the time of an idle machine it may take %s: run make e2e-cluster RUN=%s",
				s.name, time.Until(end).Round(time.Second), slow, need.Round(time.Second), t.Name())
			return
		}
		s.do()
		done += s.takes
	}
}

// configure lays settings over the config.
func (c *controller) configure(t testing.TB, settings string) {
	t.Helper()
	var own map[string]any
	if err := yaml.Unmarshal([]byte(settings), &own); err != nil {
		t.Fatal(err)
	}
	writeYAML(t, c.config, merge(readYAML(t, c.config), own))
}

// regroup writes the inventory.
func (c *controller) regroup(t testing.TB, g groups) {
	t.Helper()
	c.groups = g
	hosts, children := map[string]any{}, map[string]any{}
	user := cmp.Or(c.user, "root")
	for group, numbers := range g {
		members := map[string]any{}
		for _, n := range numbers {
			h := c.lab.Hosts[n-1]
			members[h.Name] = nil
			hosts[h.Name] = map[string]any{"ansible_host": h.Address, "internal_ipv4": h.Address,
				"ansible_ssh_private_key_file": h.Key}
		}
		children[group] = map[string]any{"hosts": members}
	}
	writeYAML(t, c.inventory, map[string]any{"all": map[string]any{"hosts": hosts, "children": children,
		"vars": map[string]any{
			"ansible_user": user, "ansible_ssh_common_args": "-o UserKnownHostsFile=" + c.lab.KnownHosts()}}})
}

// numbers are the hosts of the inventory.
func (c *controller) numbers() []int { return c.in("") }

// nodes are the hosts that are nodes of the cluster.
func (c *controller) nodes() []int { return c.in("kube_control_plane", "kube_worker") }

// in are the hosts of some groups, or of all when the first is "".
func (c *controller) in(names ...string) []int {
	var all []int
	for group, numbers := range c.groups {
		if names[0] == "" || slices.Contains(names, group) {
			all = append(all, numbers...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (c *controller) name(number int) string { return c.lab.Hosts[number-1].Name }

// result is one run of kk.
type result struct {
	out  string
	code int
	took time.Duration
	cpu  time.Duration // of kk and what it started here
}

// run runs kk with the inventory and config, and fails the test unless it exits 0.
func (c *controller) run(t testing.TB, args ...string) result {
	t.Helper()
	r := c.try(t.Context(), t, args...)
	if r.code != 0 {
		t.Fatalf("kk %s: exit code %d\n%s", strings.Join(args, " "), r.code, tail(r.out, 120))
	}
	return r
}

// try runs kk. Its output is kept in $KK_CLUSTER_LOGS when that is set.
func (c *controller) try(ctx context.Context, t testing.TB, args ...string) result {
	t.Helper()
	args = append(args, "-i", c.inventory, "-c", c.config, "--workdir", c.dir)
	if c.vars != "" {
		args = append(args, "-e", c.vars)
	}
	cmd := exec.CommandContext(ctx, c.kk, args...)
	if c.file != "" {
		if args[0] == "create" || args[0] == "add" {
			args = append(args, "-a", c.file)
		}
		cmd = c.lab.Command(ctx, c.kk, args...)
	}
	cmd.Dir = c.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	err := cmd.Run()
	state := cmd.ProcessState
	r := result{out: out.String(), code: state.ExitCode(), took: time.Since(began), cpu: state.UserTime() + state.SystemTime()}
	t.Logf("kk %s: exit code %d after %.0f s (%v)", strings.Join(args[:2], " "), r.code, r.took.Seconds(), err)
	if dir := os.Getenv("KK_CLUSTER_LOGS"); dir != "" {
		c.logs++
		file := fmt.Sprintf("%s-%d-%s.log", t.Name(), c.logs, strings.Join(args[:2], "-"))
		if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(file, "/", "-")), out.Bytes(), 0o600); err != nil {
			t.Error(err)
		}
	}
	return r
}

var recapLine = regexp.MustCompile(`(?m)^(\S+)\s+:?.*\bchanged=(\d+)`)

// unchanged fails the test unless no host was changed.
func (r result) unchanged(t *testing.T) {
	t.Helper()
	found := recapLine.FindAllStringSubmatch(r.out, -1)
	if len(found) == 0 {
		t.Errorf("no recap in the output:\n%s", tail(r.out, 40))
	}
	for _, m := range found {
		if n, _ := strconv.Atoi(m[2]); n != 0 {
			t.Errorf("%s: %d changes in a second run:\n%s", m[1], n, changes(r.out))
		}
	}
}

// changes are the tasks that changed something, with their names.
func changes(out string) string {
	var b strings.Builder
	task := ""
	for line := range strings.Lines(out) {
		switch {
		case strings.HasPrefix(line, "TASK"):
			task = line
		case strings.HasPrefix(line, "changed:"):
			b.WriteString(task + line)
		}
	}
	return b.String()
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// exec runs a script as root on a host.
func (c *controller) exec(t *testing.T, number int, script string) string {
	t.Helper()
	out, err := c.lab.Exec(t.Context(), number-1, script)
	if err != nil {
		t.Fatalf("%s: %v", c.name(number), err)
	}
	return out
}

// eventually repeats a script on a host until it succeeds.
func (c *controller) eventually(t *testing.T, number int, limit time.Duration, script string) string {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(time.Second) {
		out, err := c.lab.Exec(t.Context(), number-1, script)
		if err == nil {
			return out
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v after %s", c.name(number), err, limit)
		}
	}
}

// script puts a script of the user into the work dir.
func (c *controller) script(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(c.dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "scripts", name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func readYAML(t testing.TB, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func writeYAML(t testing.TB, path string, v any) {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// merge puts one mapping over another, key by key.
func merge(base, over map[string]any) map[string]any {
	for k, v := range over {
		below, ok := base[k].(map[string]any)
		if m, isMap := v.(map[string]any); ok && isMap {
			base[k] = merge(below, m)
			continue
		}
		base[k] = v
	}
	return base
}

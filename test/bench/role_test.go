package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"kubekey/test/lab"
)

// peer is a program that runs the playbook of the shop.
type peer struct {
	name string
	args []string
	env  []string
}

// spent is what runs took, the machines that they ran on included.
type spent struct{ wall, cpu time.Duration }

// BenchmarkRole is a role of 100 tasks on ten hosts of a lab, each with its own
// systemd, by kk, Ansible and Mitogen. The first run makes everything, the second
// finds it made. kk is to be 15 times faster than Ansible and 6 times faster
// than Mitogen in each. All must leave the same, and change nothing the second time.
func BenchmarkRole(b *testing.B) {
	l := roleLab(b)
	bin := program(b)
	dir := b.TempDir()
	inventory := roleInventory(b, l, dir)
	args := []string{"-i", inventory, "testdata/shop/site.yaml"}
	own := peer{name: "kk", args: append([]string{bin, "run"}, args...),
		env: []string{"KK_WORKDIR=" + filepath.Join(dir, "work")}}
	ansible := peer{name: "Ansible", args: append([]string{"ansible-playbook"}, args...), env: []string{
		"ANSIBLE_PIPELINING=1", "ANSIBLE_FORKS=10", "ANSIBLE_TIMEOUT=90",
		"ANSIBLE_SSH_ARGS=-o ControlMaster=auto -o ControlPersist=60s -o UserKnownHostsFile=" + l.KnownHosts(),
		"ANSIBLE_LOCAL_TEMP=" + filepath.Join(dir, "ansible"), "ANSIBLE_SSH_CONTROL_PATH_DIR=" + filepath.Join(dir, "cp"),
		"HOME=" + dir,
	}}
	mitogen := peer{name: "Mitogen", args: ansible.args,
		env: append(slices.Clone(ansible.env), "ANSIBLE_STRATEGY=mitogen_linear")}
	first, second := map[string]spent{}, map[string]spent{}
	made, turns := "", map[string]int{}
	for range b.N {
		// kk is measured before, between and after, so that a busy neighbour hits all.
		for _, p := range []peer{own, mitogen, own, ansible, own} {
			onAll(b, l, "testdata/clean.sh")
			turns[p.name]++
			first[p.name] = first[p.name].add(p.run(b, l, false))
			after := onAll(b, l, "testdata/look.sh")
			second[p.name] = second[p.name].add(p.run(b, l, true))
			if again := onAll(b, l, "testdata/look.sh"); again != after {
				b.Errorf("%s: the second run changed what the first made:\n%s", p.name, differ(after, again))
			}
			if made == "" {
				made = after
			}
			if made != after {
				b.Errorf("%s makes something else than kk:\n%s", p.name, differ(made, after))
			}
		}
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nprogram\tfirst run\tkk is faster\tof both ends' CPU\tkk takes less\tsecond run\tkk is faster\tof both ends' CPU\tkk takes less\t")
	for _, p := range []peer{own, mitogen, ansible} {
		fmt.Fprintln(w, p.name+first[p.name].row(turns[p.name], first["kk"], turns["kk"])+
			second[p.name].row(turns[p.name], second["kk"], turns["kk"])+"\t")
	}
	w.Flush()
	b.Log(table.String())
	for name, x := range map[string]map[string]spent{"first": first, "second": second} {
		for _, p := range []peer{mitogen, ansible} {
			times := x[p.name].wall.Seconds() / float64(turns[p.name]) * float64(turns["kk"]) / x["kk"].wall.Seconds()
			b.ReportMetric(times, fmt.Sprintf("x-%s-%s", p.name, name))
		}
	}
}

func (s spent) add(t spent) spent { return spent{s.wall + t.wall, s.cpu + t.cpu} }

// row is the mean of n runs, and how many times as much it is as kk's.
func (s spent) row(n int, kk spent, kkRuns int) string {
	wall, cpu := s.wall.Seconds()/float64(n), s.cpu.Seconds()/float64(n)
	return fmt.Sprintf("\t%.1f s\t%.1f ×\t%.1f s\t%.1f ×", wall, wall/kk.wall.Seconds()*float64(kkRuns), cpu,
		cpu/kk.cpu.Seconds()*float64(kkRuns))
}

// roleLab brings up ten hosts; python3 is there for the peers alone.
func roleLab(b *testing.B) *lab.Lab {
	if err := lab.Usable(); err != nil {
		b.Skipf("no lab: %v", err)
	}
	if _, err := exec.LookPath("ansible-playbook"); err != nil {
		b.Skip("ansible-playbook is not there: `make bench` installs Debian's ansible-core")
	}
	if out, err := exec.Command("/usr/bin/python3", "-c", "import ansible_mitogen").CombinedOutput(); err != nil {
		b.Skipf("Mitogen is not there: `make bench` installs Debian's ansible-mitogen: %s", out)
	}
	name := labName() + "-role"
	b.Cleanup(func() {
		if err := lab.Down(context.Background(), name); err != nil {
			b.Error(err)
		}
	})
	l, err := lab.Up(b.Context(), lab.Options{Name: name, N: 10, Packages: []string{"python3"}, Log: os.Stderr})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func roleInventory(b *testing.B, l *lab.Lab, dir string) string {
	text, err := os.ReadFile(l.Inventory())
	if err != nil {
		b.Fatal(err)
	}
	return write(b, dir, "inventory.yaml", strings.Replace(string(text), "\n  vars:\n",
		"\n  vars:\n    ansible_python_interpreter: /usr/bin/python3\n", 1))
}

var recapLine = regexp.MustCompile(`(?m)^(\S+)\s+: ok=\d+ +changed=(\d+) .*failed=(\d+) `)

// run runs the playbook, and checks that it went well on all hosts.
func (p peer) run(b *testing.B, l *lab.Lab, again bool) spent {
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	before, start := hostsCPU(b, l), time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(start)
	if err != nil {
		b.Fatalf("%s: %v\n%s", p.name, err, tail(string(out), 4000))
	}
	lines := recapLine.FindAllStringSubmatch(string(out), -1)
	if len(lines) != len(l.Hosts) {
		b.Fatalf("%s: a recap of %d hosts\n%s", p.name, len(lines), tail(string(out), 4000))
	}
	for _, m := range lines {
		if m[3] != "0" || again != (m[2] == "0") {
			b.Errorf("%s, again %v: %s", p.name, again, m[0])
		}
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	control := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	all := spent{wall: took, cpu: control + hostsCPU(b, l) - before}
	fmt.Fprintf(os.Stderr, "%s, again %v: %.1f s, %.1f s of both ends' CPU (%.1f here)\n", p.name, again, took.Seconds(),
		all.cpu.Seconds(), control.Seconds())
	return all
}

func hostsCPU(b *testing.B, l *lab.Lab) time.Duration {
	var sum time.Duration
	for _, h := range l.Hosts {
		t, err := h.CPUTime()
		if err != nil {
			b.Fatal(err)
		}
		sum += t
	}
	return sum
}

// onAll runs a script on all hosts, past sshd, and returns what it prints.
func onAll(b *testing.B, l *lab.Lab, script string) string {
	text, err := os.ReadFile(script)
	if err != nil {
		b.Fatal(err)
	}
	var all strings.Builder
	for i, h := range l.Hosts {
		out, err := l.Exec(b.Context(), i, string(text))
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(out) {
			fmt.Fprintf(&all, "%s: %s", h.Name, line)
		}
	}
	return all.String()
}

// differ is the lines that only one of two texts has.
func differ(a, b string) string {
	var out strings.Builder
	for sign, texts := range map[string][2]string{"-": {a, b}, "+": {b, a}} {
		has := map[string]bool{}
		for line := range strings.Lines(texts[1]) {
			has[line] = true
		}
		for line := range strings.Lines(texts[0]) {
			if !has[line] {
				out.WriteString(sign + line)
			}
		}
	}
	return out.String()
}

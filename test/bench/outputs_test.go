package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kubekey/test/lab"
)

// outputsBound is what kk may need while many hosts print much, in bytes.
const outputsBound = 300 << 20

// BenchmarkOutputs is 50 hosts which each print 200 MB that is registered, with lines and in one
// line: peak-MB, the most memory that kk had by the kernel's account, is to be below 300;
// of-bound is its share. The 19 MB on one host are what once took 737.
func BenchmarkOutputs(b *testing.B) {
	bin := program(b)
	for _, c := range []struct {
		name    string
		hosts   int
		bytes   int
		command string
	}{
		{"1x19MB", 1, 19 << 20, "yes ok"},
		{"50x200MB", 50, 200 << 20, "yes 'a line of some length, as programs print them when they are asked to be verbose'"},
		{"50x200MB-one-line", 50, 200 << 20, "cat /dev/zero"},
	} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				f := newFleet(b, c.hosts)
				start := time.Now()
				usage := printMuch(b, bin, f, fmt.Sprintf("%s | head -c %d", c.command, c.bytes), c.bytes)
				peak := usage.Maxrss << 10
				b.ReportMetric(time.Since(start).Seconds(), "s")
				b.ReportMetric(float64(peak)/(1<<20), "peak-MB")
				b.ReportMetric(float64(peak)/outputsBound, "of-bound")
				b.ReportMetric(float64(usage.Utime.Nano()+usage.Stime.Nano())/1e9, "kk-cpu-s")
			}
		})
	}
}

// printMuch has every host of a fleet run a command that prints so many bytes, and uses its lines.
func printMuch(tb testing.TB, bin string, f *fleet, command string, bytes int) *syscall.Rusage {
	tb.Helper()
	playbook := fmt.Sprintf(`
- hosts: all
  gather_facts: false
  tasks:
    - shell: %q
      register: r
      changed_when: false
    - assert:
        that:
          - r.stdout_truncated
          - r.stdout_bytes >= %d - 2
          - (r.stdout ~ r.stderr) | length > 700000
          - r.stdout_lines | type_debug == 'list'
          - r.stdout_lines | length == r.stdout.splitlines() | length
          - r.stdout_lines[-1] == r.stdout.splitlines()[-1]
        quiet: true
      throttle: 1
`, command, bytes)
	cmd := exec.Command(bin, "run", write(tb, f.dir, "site.yaml", playbook), "-i", f.inventory)
	cmd.Env = append(os.Environ(), "KK_WORKDIR="+filepath.Join(f.dir, "work"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("kk: %v\n%s", err, tail(string(out), 3000))
	}
	files, err := filepath.Glob(filepath.Join(f.dir, "work/runs/*/outputs/*.stdout"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no output is in the journal: %v", err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() != int64(bytes) || info.Mode().Perm() != 0o600 {
			tb.Errorf("%s: %v, want %d bytes and 0600: %v", file, info, bytes, err)
		}
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage)
}

// The same with a twentieth of it: what kk needs does not grow with what is printed. The hosts
// share this machine, so there are fewer of them, too.
func TestOutputsAreBounded(t *testing.T) {
	const hosts, bytes, bound = 8, 16 << 20, 160 << 20
	bin := filepath.Join(t.TempDir(), "kk")
	if err := lab.BuildKK(bin); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]string{
		"short lines": "yes short",
		"one line":    "cat /dev/zero",
		"both outputs": "yes 'an error that comes again and again' | head -c 4194304 >&2; " +
			"yes 'and a line of the other output'",
	} {
		t.Run(name, func(t *testing.T) {
			usage := printMuch(t, bin, newFleet(t, hosts), fmt.Sprintf("%s | head -c %d", command, bytes), bytes)
			if peak := usage.Maxrss << 10; peak > bound {
				t.Errorf("kk used %d MiB at its peak, want at most %d", peak>>20, bound>>20)
			}
		})
	}
}

// Package offline measures offline files: each figure next to its floor, in the same run, in turns, on the same disk.
// Everything that is measured is a program as people run it. It is a folder of its own because nothing in it needs
// hosts: what it needs are mirrors, registries and peers.
package offline

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kubekey/test/lab"
)

func TestMain(m *testing.M) {
	for name, work := range map[string]func(dir string) error{mirrorDir: serveMirror, releaseDir: writeRelease} {
		if dir := os.Getenv(name); dir != "" {
			if err := work(dir); err != nil {
				fmt.Fprintln(os.Stderr, name+":", err)
				os.Exit(1)
			}
			return
		}
	}
	os.Exit(m.Run())
}

// rounds is how often each side is measured; figures are medians.
const rounds = 3

// bench is a benchmark with the program and a folder.
type bench struct {
	*testing.B
	dir string
	kk  string
}

func newBench(b *testing.B) *bench {
	b.Helper()
	dir := b.TempDir()
	kk := filepath.Join(dir, "kk")
	if err := lab.BuildKK(kk); err != nil {
		b.Fatal(err)
	}
	return &bench{b, dir, kk}
}

// must fails the benchmark.
func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// need skips the benchmark if this machine lacks a program of a Debian package.
func (b *bench) need(program, debianPackage string) {
	b.Helper()
	if _, err := exec.LookPath(program); err != nil {
		b.Skipf("no %s: install the package %s", program, debianPackage)
	}
}

// cost is what a program took.
type cost struct {
	time time.Duration
	cpu  time.Duration // user and system
	peak float64       // MB of memory. The kernel counts what this process had when it started the program, too.
	out  string
}

// run runs a program with further variables of its environment.
func (b *bench) run(env []string, name string, args ...string) cost {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	if err != nil {
		b.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out.String(), problems.String())
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), float64(usage.Maxrss) / 1000, out.String()}
}

// own runs kk.
func (b *bench) own(args ...string) cost {
	b.Helper()
	return b.run([]string{"KK_WORKDIR=" + filepath.Join(b.dir, "work")}, b.kk, args...)
}

// shell runs commands of a shell, which has the arguments as $1 and so on.
func (b *bench) shell(commands string, args ...string) cost {
	b.Helper()
	return b.run(nil, "sh", append([]string{"-euc", commands, "sh"}, args...)...)
}

// side is one of two that are compared.
type side struct {
	name  string
	clear func() // before each round, not measured; may be nil
	run   func() cost
}

// compare measures a floor and kk in turns. It reports the medians, their ratio, the goal, and the most memory of kk.
func (b *bench) compare(goal float64, floor, own side) {
	b.Helper()
	times := map[string][]time.Duration{}
	var peak float64
	var cpu time.Duration
	for range rounds {
		for _, s := range []side{floor, own} {
			if s.clear != nil {
				s.clear()
			}
			c := s.run()
			times[s.name] = append(times[s.name], c.time)
			if s.name == own.name {
				peak, cpu = max(peak, c.peak), c.cpu
			}
		}
	}
	f, o := median(times[floor.name]), median(times[own.name])
	b.Logf("%s: %s %.3f s %v, %s %.3f s %v: %.2f times the floor (goal: at most %.2f); kk: %.1f s of CPU, %.0f MB", b.Name(),
		floor.name, f.Seconds(), times[floor.name], own.name, o.Seconds(), times[own.name], o.Seconds()/f.Seconds(), goal,
		cpu.Seconds(), peak)
	b.ReportMetric(f.Seconds(), "floor-s")
	b.ReportMetric(o.Seconds(), "kk-s")
	b.ReportMetric(o.Seconds()/f.Seconds(), "ratio")
	b.ReportMetric(goal, "goal")
	b.ReportMetric(peak, "peak-MB")
	b.ReportMetric(0, "ns/op") // says nothing here
}

func median(times []time.Duration) time.Duration {
	times = slices.Sorted(slices.Values(times))
	return times[len(times)/2]
}

// dropCaches makes the kernel forget what it read from disks.
func (b *bench) dropCaches() {
	b.Helper()
	syscall.Sync()
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		b.Skipf("the page cache cannot be dropped: %v", err)
	}
}

// size is the size of a file in bytes.
func (b *bench) size(path string) int64 {
	b.Helper()
	info, err := os.Stat(path)
	b.must(err)
	return info.Size()
}

// write writes a small file into the folder, and returns its path.
func (b *bench) write(name, text string) string {
	b.Helper()
	path := filepath.Join(b.dir, name)
	b.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Package plan measures what planning a cluster takes with offline files, on hosts that are simulated. It is a folder of
// its own because its tests need memory in this process, which the kernel counts as that of programs it starts.
package plan

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kubekey/builtin"
	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/artifacttest"
	"kubekey/pkg/cli"
	"kubekey/test/simulated"
)

const offlineVersion = "v1.34.4"

// asFleet makes the test binary a kk whose hosts are simulated, so that its memory is that of one run.
const asFleet = "KK_TEST_IS_FLEET"

func TestMain(m *testing.M) {
	if os.Getenv(asFleet) != "" {
		os.Exit(runAsFleet())
	}
	os.Exit(m.Run())
}

func runAsFleet() int {
	var f simulated.Fleet
	return f.Run(context.Background(), os.Stdout, os.Args[1:]...)
}

// offlineFiles makes the offline files that a cluster of simulated hosts is created from: made-up files and images
// under the names of real ones, and a repository of packages.
func offlineFiles(tb testing.TB) (kubernetes, packages string) {
	tb.Helper()
	dir := tb.TempDir()
	kk := func(args ...string) string {
		tb.Helper()
		var out, problems bytes.Buffer
		if code := cli.Main(tb.Context(), args, cli.Streams{Out: &out, Err: &problems}, builtin.FS()); code != 0 {
			tb.Fatalf("kk %s: exit code %d\n%s%s", strings.Join(args, " "), code, out.String(), problems.String())
		}
		return out.String()
	}
	u := artifacttest.NewUpstream(tb, []byte(kk("catalog", "show", offlineVersion, "-o", "json")))
	host, _ := u.Listen(tb, "127.0.0.1:0")
	write(tb, dir, "checksums.yaml", u.Checksums)
	write(tb, dir, "overlay.yaml", artifacttest.Mirrors(host))
	kubernetes = filepath.Join(dir, "kubernetes.tar")
	kk("artifact", "export", "-c", write(tb, dir, "config.yaml", artifacttest.Config(host)), "--kubernetes", offlineVersion,
		"--arch", "amd64", "--set", "cni.type=flannel", "--workdir", dir, "-o", kubernetes, "--kk", "none", "--no-sbom")
	return kubernetes, packageFile(tb, dir)
}

// packageFile writes an offline file with 100 packages for the simulated hosts, without some that they need.
func packageFile(tb testing.TB, dir string, without ...string) string {
	tb.Helper()
	const folder = "packages/debian-12/amd64/"
	b := artifact.NewBuilder(dir, artifact.Covers{}, nil)
	add := func(name, version, file, text string) {
		tb.Helper()
		path := write(tb, dir, "package", text)
		if err := b.AddFile(tb.Context(), artifact.Item{Kind: artifact.KindPackage, Name: name, Version: version,
			Architecture: "amd64", Distribution: "debian-12", File: folder + file}, path); err != nil {
			tb.Fatal(err)
		}
	}
	var list strings.Builder
	names := strings.Fields("conntrack ebtables ethtool ipset iptables kmod procps socat tar util-linux chrony")
	for i := range 100 - len(names) {
		names = append(names, fmt.Sprintf("lib%d", i))
	}
	for _, name := range names {
		if slices.Contains(without, name) {
			continue
		}
		add(name, "1.0", "pool/"+name+".deb", "package "+name)
		fmt.Fprintf(&list, "Package: %s\nVersion: 1.0\nArchitecture: amd64\nFilename: pool/%s.deb\n\n", name, name)
	}
	add("Packages", "", "Packages", list.String())
	path := filepath.Join(dir, "packages.tar")
	if _, err := b.Write(tb.Context(), path, artifact.Options{}); err != nil {
		tb.Fatal(err)
	}
	return path
}

// plan is a command line that plans a cluster: prechecks, the plan, everything that is needed, and what would change.
func plan(tb testing.TB, workers int) []string {
	tb.Helper()
	l := simulated.Layout{Family: "v4", ControlPlanes: 3, Workers: workers}
	dir := tb.TempDir()
	return []string{"create", "cluster", "--check", "--yes", "-i", write(tb, dir, "inventory.yaml", l.Inventory()),
		"--workdir", dir, "--set", "cni.type=flannel", "--set", "kubernetes.networking.pod_cidr=10.128.0.0/12",
		"--set", "kubernetes.kube_version=" + offlineVersion}
}

// BenchmarkPlanOffline500 compares what planning for 500 hosts takes with offline files and without: medians, with
// -benchtime 3x of three.
func BenchmarkPlanOffline500(b *testing.B) {
	kubernetes, packages := offlineFiles(b)
	without := plan(b, 497)
	with := append(slices.Clone(without), "-a", kubernetes, "-a", packages)
	type cost struct{ wall, cpu, memory []float64 }
	run := func(c *cost, args []string) {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), asFleet+"=1")
		start := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatalf("%v\n%s", err, tail(string(out), 4000))
		}
		c.wall = append(c.wall, time.Since(start).Seconds())
		usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		c.cpu = append(c.cpu, float64(usage.Utime.Nano()+usage.Stime.Nano())/1e9)
		c.memory = append(c.memory, float64(usage.Maxrss)/1024)
	}
	var plain, offline cost
	for range b.N {
		run(&plain, without)
		run(&offline, with)
	}
	middle := func(all []float64) float64 { slices.Sort(all); return all[len(all)/2] }
	b.ReportMetric(middle(offline.wall)/middle(plain.wall), "×time")
	b.ReportMetric(middle(offline.cpu)/middle(plain.cpu), "×cpu")
	b.ReportMetric(middle(offline.memory)/middle(plain.memory), "×memory")
	b.ReportMetric(middle(plain.cpu), "cpu-s")
	b.ReportMetric(middle(plain.memory), "MB")
}

// TestPlanReadsOfflineFilesOnce counts how often planning opens offline files: as often for many hosts as for few.
func TestPlanReadsOfflineFilesOnce(t *testing.T) {
	kubernetes, packages := offlineFiles(t)
	opened := func(workers int) int {
		t.Helper()
		watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(watch) }()
		for _, path := range []string{kubernetes, packages} {
			if _, err := unix.InotifyAddWatch(watch, path, unix.IN_OPEN); err != nil {
				t.Fatal(err)
			}
		}
		f := simulated.Fleet{Record: true}
		var out bytes.Buffer
		if code := f.Run(t.Context(), &out, append(plan(t, workers), "-a", kubernetes, "-a", packages)...); code != 0 {
			t.Fatalf("exit code %d\n%s", code, tail(out.String(), 4000))
		}
		asked := slices.DeleteFunc(f.Calls(), func(c simulated.Call) bool { return c.Module != "artifact_repository" })
		if want := workers + 3; len(asked) != want {
			t.Errorf("packages are planned for %d hosts, want %d: all of them lack packages", len(asked), want)
		}
		events := make([]byte, 1<<20)
		n, err := unix.Read(watch, events)
		if err != nil {
			t.Fatal(err)
		}
		return n / unix.SizeofInotifyEvent
	}
	few, many := opened(1), opened(40)
	t.Logf("opened %d and %d times", few, many)
	if many != few || many > 8 {
		t.Errorf("offline files are opened %d times for 4 hosts, and %d times for 43", few, many)
	}
}

// Before a host is changed, kk init os checks that the offline files have every package that hosts lack.
func TestInitOSChecksOfflineFiles(t *testing.T) {
	kubernetes, packages := offlineFiles(t)
	lacks := packageFile(t, t.TempDir(), "socat", "chrony")
	initOS := func(files ...string) (int, string, []simulated.Call) {
		t.Helper()
		dir := t.TempDir()
		l := simulated.Layout{Family: "v4", ControlPlanes: 1, Workers: 2}
		args := []string{"init", "os", "-i", write(t, dir, "inventory.yaml", l.Inventory()), "--workdir", dir}
		for _, path := range files {
			args = append(args, "-a", path)
		}
		f := simulated.Fleet{Record: true}
		var out bytes.Buffer
		code := f.Run(t.Context(), &out, args...)
		return code, out.String(), f.Calls()
	}
	for _, c := range []struct {
		files []string
		want  []string
	}{
		{[]string{kubernetes, lacks}, []string{"package chrony for debian-12 amd64, needed by n1, n2, n3: kk artifact export --os debian-12 " +
			"--arch amd64 --package chrony", "package socat for debian-12 amd64"}},
		{[]string{kubernetes}, []string{"packages for debian-12 amd64, needed by n1, n2, n3: kk artifact export --os debian-12 " +
			"--arch amd64"}},
	} {
		code, out, calls := initOS(c.files...)
		if code != 4 {
			t.Errorf("exit code %d, want 4\n%s", code, tail(out, 2000))
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, tail(out, 2000))
			}
		}
		for _, call := range calls {
			if !slices.Contains([]string{"setup", "gather_facts", "package", "assert", "set_fact", "artifact_check"}, call.Module) {
				t.Errorf("%s: %s ran before the check", call.Host, call.Module)
			}
		}
	}
	code, out, calls := initOS(kubernetes, packages)
	asked := slices.DeleteFunc(calls, func(c simulated.Call) bool { return c.Module != "artifact_repository" })
	if code != 0 || len(asked) != 3 {
		t.Errorf("exit code %d, packages are sent to %d hosts, want 0 and 3\n%s", code, len(asked), tail(out, 2000))
	}
}

func write(tb testing.TB, dir, name, text string) string {
	tb.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

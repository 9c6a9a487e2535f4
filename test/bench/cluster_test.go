package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kubekey/test/simulated"
)

// create_cluster on hosts that are not there: what kk itself takes for 3
// control planes and 497 workers, from reading the inventory to the summary.
func BenchmarkCreateCluster500(b *testing.B) {
	l := simulated.Layout{Family: "v4", ControlPlanes: 3, Workers: 497}
	dir := b.TempDir()
	inventory := write(b, dir, "inventory.yaml", l.Inventory())
	run := 0
	for b.Loop() {
		run++
		f := &simulated.Fleet{Nodes: l.Hosts()}
		var out bytes.Buffer
		resetPeak(b)
		begin := time.Now()
		code := f.Run(b.Context(), &out, "create", "cluster", "--yes", "-i", inventory, "--workdir",
			filepath.Join(dir, strconv.Itoa(run)),
			"--set", "cni.type=flannel", "--set", "kubernetes.networking.pod_cidr=10.128.0.0/12")
		b.ReportMetric(time.Since(begin).Seconds(), "s")
		b.ReportMetric(peak(b), "MB-peak")
		if code != 0 {
			b.Fatalf("exit code %d\n%s", code, tail(out.String(), 4000))
		}
	}
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// resetPeak makes the kernel forget the most memory that the process had.
func resetPeak(b *testing.B) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Skipf("the peak of memory cannot be measured: %v", err)
	}
}

// peak is the most memory that the process had, in MB.
func peak(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			return float64(kb) / 1024
		}
	}
	b.Fatal("the kernel does not tell VmHWM")
	return 0
}

package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// BenchmarkOfflineCreate holds creating a cluster of three nodes from an offline file against creating it from the mirror,
// on the same hosts, in turns: at most 1.1 times as long. With -benchtime 3x the figures are medians of three. CPU of kk is
// all of it, that for the bytes of files included: of the rest, kk's own share, at most 5 % of the time is to be its.
func BenchmarkOfflineCreate(b *testing.B) {
	c := newController(b, groups{"kube_control_plane": {1}, "kube_worker": {1, 2, 3}}, "")
	file := filepath.Join(b.TempDir(), "kubernetes.tar")
	c.run(b, "artifact", "export", "-o", file, "--except", "packages")
	remove := func() {
		c.run(b, "delete", "cluster", "--yes", "--all", "--with-data")
		if err := os.RemoveAll(filepath.Join(c.dir, "cache")); err != nil {
			b.Fatal(err)
		}
	}
	// The first one installs packages, which stay.
	c.run(b, "create", "cluster", "--yes")
	remove()
	var fromMirror, fromFile, share []float64
	for b.Loop() {
		m := c.run(b, "create", "cluster", "--yes")
		remove()
		f := c.run(b, "create", "cluster", "--yes", "-a", file)
		remove()
		fromMirror, fromFile = append(fromMirror, m.took.Seconds()), append(fromFile, f.took.Seconds())
		share = append(share, 100*f.cpu.Seconds()/f.took.Seconds())
	}
	b.Logf("from the mirror %.1f s, from the file %.1f s; CPU of kk %.1f %% of that", fromMirror, fromFile, share)
	b.ReportMetric(median(fromMirror), "mirror-s")
	b.ReportMetric(median(fromFile), "file-s")
	b.ReportMetric(median(fromFile)/median(fromMirror), "ratio")
	b.ReportMetric(1.1, "goal")
	b.ReportMetric(median(share), "CPU-%")
	b.ReportMetric(0, "ns/op")
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

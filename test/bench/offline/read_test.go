package offline

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fileOf imports a release, and returns the offline file.
func (b *bench) fileOf(version string) string {
	b.Helper()
	file, dir := filepath.Join(b.dir, version+".tar"), b.release(version)
	b.own("artifact", "import", dir+"/programs", dir+"/images", "-o", file, "--allow-unverified")
	b.must(os.RemoveAll(dir))
	return file
}

// BenchmarkOfflineVerify holds `kk artifact verify` against sha256sum of the same file: at most 1.2 times as long on one
// core, and 1.3/n on n cores, where sha256sum still uses one.
func BenchmarkOfflineVerify(b *testing.B) {
	own := newBench(b)
	file := own.fileOf("v1")
	cores := runtime.NumCPU()
	for _, c := range []struct {
		name string
		on   []string
		goal float64
	}{{"one-core", []string{"taskset", "-c", "0"}, 1.2}, {fmt.Sprint(cores, "-cores"), []string{"env"}, 1.3 / float64(cores)}} {
		b.Run(c.name, func(b *testing.B) {
			own := &bench{b, own.dir, own.kk}
			run := func(words ...string) func() cost {
				words = slices.Concat(c.on, words, []string{file})
				return func() cost { return own.run(nil, words[0], words[1:]...) }
			}
			for range b.N {
				own.compare(c.goal, side{"sha256sum", nil, run("sha256sum")}, side{"kk", nil, run(own.kk, "artifact", "verify")})
			}
			b.ReportMetric(float64(own.size(file))/1e6, "MB")
		})
	}
}

// BenchmarkOfflineList measures `kk artifact ls` of a small and of a large file: at most 100 ms, and 150 MB of memory.
func BenchmarkOfflineList(b *testing.B) {
	own := newBench(b)
	for _, megabytes := range []int{100, 4000} {
		b.Run(strconv.Itoa(megabytes)+"MB", func(b *testing.B) {
			own := &bench{b, own.dir, own.kk}
			file := own.sized(megabytes)
			var times []time.Duration
			var peak float64
			for range b.N {
				for range rounds {
					c := own.own("artifact", "ls", file)
					times, peak = append(times, c.time), max(peak, c.peak)
				}
			}
			b.ReportMetric(float64(median(times).Microseconds())/1000, "ms")
			b.ReportMetric(100, "goal-ms")
			b.ReportMetric(peak, "peak-MB")
			b.ReportMetric(float64(own.size(file))/1e6, "MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// sized makes an offline file of a hundred archives.
func (b *bench) sized(megabytes int) string {
	b.Helper()
	dir := filepath.Join(b.dir, "archives")
	b.must(os.Mkdir(dir, 0o755))
	for i := range 100 {
		path := filepath.Join(dir, fmt.Sprintf("item%d.tgz", i))
		b.must(os.WriteFile(path, append([]byte("\x1f\x8b"), byte(i)), 0o600))
		b.must(os.Truncate(path, int64(megabytes)*10_000))
	}
	file := filepath.Join(b.dir, "sized.tar")
	b.must(os.RemoveAll(file))
	b.own("artifact", "import", dir, "-o", file, "--allow-unverified")
	b.must(os.RemoveAll(dir))
	return file
}

// BenchmarkOfflineDelta holds the size of a delta for the next patch release against the bytes of the blobs that changed:
// at most 1.02 times as many. The delta and the old file make the new one again.
func BenchmarkOfflineDelta(b *testing.B) {
	own := newBench(b)
	old, next := own.fileOf("v1"), own.fileOf("v2")
	delta, merged := filepath.Join(own.dir, "delta.tar"), filepath.Join(own.dir, "merged.tar")
	before, after := own.blobs(old), own.blobs(next)
	var changed int64
	for name, size := range after {
		if _, has := before[name]; !has {
			changed += size
		}
	}
	for range b.N {
		b.Logf("delta: %.0f MB", own.own("artifact", "delta", old, next, "-o", delta).peak)
		b.Logf("merge: %.0f MB", own.own("artifact", "merge", old, delta, "-o", merged).peak)
	}
	own.shell(`cmp "$1" "$2"`, next, merged)
	b.ReportMetric(float64(changed)/1e6, "changed-MB")
	b.ReportMetric(float64(own.size(delta))/1e6, "delta-MB")
	b.ReportMetric(float64(own.size(delta))/float64(changed), "ratio")
	b.ReportMetric(1.02, "goal")
	b.ReportMetric(float64(own.size(next))/1e6, "MB")
}

// blobs lists the blobs of an offline file with their sizes, as tar sees them.
func (b *bench) blobs(file string) map[string]int64 {
	b.Helper()
	sizes := map[string]int64{}
	for line := range strings.Lines(b.run(nil, "tar", "--list", "--verbose", "--file", file).out) {
		words := strings.Fields(line)
		if len(words) < 6 || !strings.HasPrefix(words[5], "blobs/") {
			continue
		}
		size, err := strconv.ParseInt(words[2], 10, 64)
		b.must(err)
		sizes[words[5]] = size
	}
	if len(sizes) == 0 {
		b.Fatal("tar lists no blobs")
	}
	return sizes
}

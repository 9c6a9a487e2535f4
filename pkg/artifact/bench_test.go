package artifact

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// large writes a file of about the size and the mixture of a real one: programs that compress to less than half, and
// layers that do not compress.
func (r *rig) large(megabytes int) string {
	r.Helper()
	b := NewBuilder(r.dir, Covers{}, nil)
	random := rand.New(rand.NewSource(1))
	const each = 64 << 20
	text := make([]byte, each)
	for i := range megabytes << 20 / each {
		_, _ = random.Read(text)
		kind, prefix := KindExtra, "\x1f\x8b" // as if it was compressed
		if i%4 == 0 {
			kind, prefix = KindFile, "\x7fELF"
			for n := range text {
				text[n] &= 0x0f
			}
		}
		name := fmt.Sprint("item", i)
		r.must(b.AddFile(r.Context(), Item{Kind: kind, Name: name, File: name}, r.file(name, prefix+string(text))))
	}
	return r.write(b, "large.tar", Options{})
}

// median runs something three times.
func median(r *rig, run func()) time.Duration {
	r.Helper()
	var all []time.Duration
	for range 3 {
		start := time.Now()
		run()
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[1]
}

// BenchmarkVerify prints how long verifying takes beside sha256sum, on one core and on all, and how long opening takes.
func BenchmarkVerify(b *testing.B) {
	r := newRig(b)
	path := r.large(768)
	info, err := os.Stat(path)
	r.must(err)
	for b.Loop() {
		floor := median(r, func() { r.must(exec.Command("sha256sum", path).Run()) })
		opened := median(r, func() { r.must(r.open(path).Check()) })
		verify := func() { r.must(r.open(path).Verify(b.Context(), nil, nil)) }
		all := median(r, verify)
		before := runtime.GOMAXPROCS(1)
		one := median(r, verify)
		runtime.GOMAXPROCS(before)
		b.ReportMetric(one.Seconds()/floor.Seconds(), "×sha256sum/core")
		b.ReportMetric(all.Seconds()/floor.Seconds(), fmt.Sprintf("×sha256sum/%dcores", before))
		b.ReportMetric(float64(opened.Microseconds())/1000, "ms/open")
		b.ReportMetric(float64(info.Size())/(1<<20), "MiB")
	}
}

// BenchmarkWrite prints how long writing takes beside cat of the same bytes into one file, with fsync.
func BenchmarkWrite(b *testing.B) {
	r := newRig(b)
	path := r.large(768)
	f := r.open(path)
	build, err := f.builder()
	r.must(err)
	for b.Loop() {
		floor := median(r, func() {
			r.must(exec.Command("sh", "-c", `cat "$1" > "$2" && sync "$2"`, "sh", path, filepath.Join(r.dir, "floor")).Run())
			r.must(os.Remove(filepath.Join(r.dir, "floor")))
		})
		write := median(r, func() { r.must(os.Remove(r.write(build, "again.tar", Options{}))) })
		b.ReportMetric(write.Seconds()/floor.Seconds(), "×cat")
		b.ReportMetric(floor.Seconds(), "s/cat")
	}
}

package offline

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"kubekey/pkg/artifact"
)

// jobs is how many files are fetched at a time.
const jobs = 4

// export exports everything that a cluster of the lab needs but packages of distributions, which a peer cannot fetch.
func (b *bench) export(l link, file string) cost {
	b.Helper()
	return b.own("artifact", "export", "-c", l.config, "-o", file, "--except", "packages", "--jobs", strconv.Itoa(jobs))
}

// BenchmarkOfflineExportCached holds an export with everything in the cache against cat of the same bytes into one file,
// with fsync: at most 1.3 times as long. Warm has all of it in the page cache, and cold nothing.
func BenchmarkOfflineExportCached(b *testing.B) {
	own := newBench(b)
	l := own.startMirror().links["loopback"]
	file, again := filepath.Join(own.dir, "kubernetes.tar"), filepath.Join(own.dir, "again.tar")
	own.export(l, file)
	own.export(l, again)
	own.shell(`cmp "$1" "$2"`, file, again)
	for name, drop := range map[string]func(b *bench){"warm": nil, "cold": (*bench).dropCaches} {
		b.Run(name, func(b *testing.B) {
			own := &bench{b, own.dir, own.kk}
			clear := func() {
				own.must(os.RemoveAll(again))
				syscall.Sync() // what removing leaves to do is not the next one's
				if drop != nil {
					drop(own)
				}
			}
			for range b.N {
				own.compare(1.3,
					side{"cat", clear, func() cost { return own.shell(`cat "$1" >"$2"; sync "$2"`, file, again) }},
					side{"kk", clear, func() cost { return own.export(l, again) }})
			}
			b.ReportMetric(float64(own.size(file))/1e6, "MB")
		})
	}
}

// BenchmarkOfflineExportMirror holds an export from a mirror, with nothing in the cache, against curl of the same URLs, as
// many at a time: at most 1.25 times as long. The mirror is on this machine, behind a link of 1 Gbit/s and behind none.
func BenchmarkOfflineExportMirror(b *testing.B) {
	own := newBench(b)
	own.need("curl", "curl")
	m := own.startMirror()
	file, fetched := filepath.Join(own.dir, "kubernetes.tar"), filepath.Join(own.dir, "fetched")
	for name, l := range m.links {
		b.Run(name, func(b *testing.B) {
			own := &bench{b, own.dir, own.kk}
			clear := func() {
				for _, path := range []string{filepath.Join(own.dir, "work"), fetched, file} {
					own.must(os.RemoveAll(path))
				}
				syscall.Sync()
			}
			clear()
			own.export(l, file)
			list := own.curlList(l, file, fetched)
			for range b.N {
				own.compare(1.25,
					side{"curl", clear, func() cost {
						return own.run(nil, "curl", "--fail", "--no-progress-meter", "--create-dirs", "--parallel",
							"--parallel-immediate", "--parallel-max", strconv.Itoa(jobs), "--config", list)
					}},
					side{"kk", clear, func() cost { return own.export(l, file) }})
			}
			b.ReportMetric(float64(own.size(file))/1e6, "MB")
		})
	}
}

// curlList writes a config for curl that fetches what an export from the mirror fetches: files, and blobs of images.
func (b *bench) curlList(l link, file, dir string) string {
	b.Helper()
	f, err := artifact.Open(file)
	b.must(err)
	defer func() { _ = f.Close() }() // only read
	var list strings.Builder
	count := 0
	add := func(url string) {
		fmt.Fprintf(&list, "url = \"%s\"\noutput = \"%s\"\n", url, filepath.Join(dir, strconv.Itoa(count)))
		count++
	}
	seen := map[string]bool{}
	for _, i := range f.Manifest.Items {
		if i.Kind != artifact.KindImage {
			if path, ok := strings.CutPrefix(i.Source, "https://"); ok {
				add("http://" + l.address + "/" + path)
			}
			continue
		}
		repository, _, _ := strings.Cut(i.Name, ":")
		for _, blob := range i.Blobs {
			kind := "blobs"
			if blob == i.Blob {
				kind = "manifests" // images of the mirror have one each
			}
			if !seen[blob] {
				add(fmt.Sprintf("http://%s/v2/%s/%s/%s", l.address, repository, kind, blob))
			}
			seen[blob] = true
		}
	}
	return b.write("curl-"+filepath.Base(filepath.Dir(l.config)), list.String())
}

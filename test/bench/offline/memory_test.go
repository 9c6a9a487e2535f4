package offline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kubekey/pkg/artifact"
)

// goalMB is the memory that each command may use at most.
const goalMB = 150

// BenchmarkOfflineMemory measures the most memory that each command on an offline file of about 1 GB uses: at most
// 150 MB. The file is everything that a cluster of the lab needs; the older one has its files without the images. A file
// that is imported has as many items as there can be.
func BenchmarkOfflineMemory(b *testing.B) {
	own := newBench(b)
	own.need("docker-registry", "docker-registry")
	own.need("ssh-keygen", "openssh-client")
	l := own.startMirror().links["loopback"]
	at := func(name string) string { return filepath.Join(own.dir, name) }
	file, older, delta := at("kubernetes.tar"), at("older.tar"), at("delta.tar")
	export := func(file string, more ...string) func() cost {
		return func() cost {
			own.must(os.RemoveAll(at("work/sbom")))
			return own.own(append([]string{"artifact", "export", "-c", l.config, "-o", file, "--except", "packages"}, more...)...)
		}
	}
	own.shell(`ssh-keygen -q -t ed25519 -N "" -f "$1"`, at("key"))
	many := own.manyFiles()
	r := own.newRegistry()
	r.empty()
	run := func(args ...string) func() cost {
		return func() cost { return own.own(append([]string{"artifact"}, args...)...) }
	}
	export(older, "--except", "images")()
	for range b.N {
		for _, s := range []side{
			{name: "export", run: export(file)},
			{name: "export-cached", run: export(file)},
			{name: "ls", run: run("ls", file)},
			{name: "ls-json", run: run("ls", file, "-o", "json")},
			{name: "verify", run: run("verify", file)},
			{name: "verify-quick", run: run("verify", "--quick", file)},
			{name: "diff", run: run("diff", older, file)},
			{name: "delta", run: run("delta", older, file, "-o", delta)},
			{name: "merge", run: run("merge", older, delta, "-o", at("merged.tar"))},
			{name: "sbom-spdx", run: run("sbom", file)},
			{name: "sbom-cyclonedx", run: run("sbom", file, "--format", "cyclonedx")},
			{name: "sbom-made", run: run("sbom", at("plain.tar")), clear: func() { export(at("plain.tar"), "--no-sbom")() }},
			{name: "sign", run: run("sign", file, "--key", at("key"))},
			{name: "serve", run: func() cost { return own.serve(file) }},
			{name: "push", run: run("images", "push", file, "--to", "http://"+r.addr+"/all")},
			{name: "import-layout", run: run("import", at("layout.tar"), "--allow-unverified", "-o", at("imported.tar")),
				clear: func() {
					own.shell(`mkdir "$2"; tar -xf "$1" -C "$2"; rm -r "$2/kk"; tar -cf "$3" -C "$2" .; rm -r "$2"`, file,
						at("layout"), at("layout.tar"))
				}},
			{name: "import-many", run: run("import", many, "--allow-unverified", "-o", at("many.tar"))},
			{name: "import-again", run: run("import", many, "--allow-unverified", "-o", at("many.tar"))},
			{name: "ls-many", run: run("ls", at("many.tar"))},
			{name: "verify-many", run: run("verify", at("many.tar"))},
			{name: "prune", run: run("prune", "--keep", older, "--yes")},
		} {
			if s.clear != nil { // it makes what this command reads
				s.clear()
			}
			c := s.run()
			b.Logf("%-15s %4.0f MB, goal %d, %.1f s", s.name, c.peak, goalMB, c.time.Seconds())
			b.ReportMetric(c.peak, s.name+"-MB")
		}
	}
	b.ReportMetric(goalMB, "goal-MB")
	b.ReportMetric(float64(own.size(file))/1e6, "file-MB")
	b.ReportMetric(0, "ns/op")
}

// manyFiles makes a folder with as many small files as an import accepts.
func (b *bench) manyFiles() string {
	b.Helper()
	dir := filepath.Join(b.dir, "many")
	for i := range 20_000 {
		folder := filepath.Join(dir, fmt.Sprint(i%100))
		b.must(os.MkdirAll(folder, 0o755))
		b.must(os.WriteFile(filepath.Join(folder, fmt.Sprint("item", i)), fmt.Append(nil, "item ", i), 0o600))
	}
	return dir
}

// serve serves a file, and fetches everything that is in it, eight at a time.
func (b *bench) serve(file string) cost {
	b.Helper()
	cmd := exec.Command(b.kk, "artifact", "serve", file, "--listen", "127.0.0.1:0", "-o", "json")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	b.must(err)
	begin := time.Now()
	b.must(cmd.Start())
	defer func() { _ = cmd.Process.Kill() }() // unless it has exited
	line, err := bufio.NewReader(out).ReadBytes('\n')
	b.must(err)
	var at struct{ URL string }
	b.must(json.Unmarshal(line, &at))
	get := func(path string) error {
		response, err := http.Get(at.URL + path)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }() // only read
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", path, response.Status)
		}
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	paths := append(b.served(file), "", "overlay.yaml")
	problems := make(chan error, len(paths))
	limit := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for _, path := range paths {
		limit <- struct{}{}
		wg.Go(func() {
			problems <- get(path)
			<-limit
		})
	}
	wg.Wait()
	for range paths {
		b.must(<-problems)
	}
	b.must(cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 99 {
		b.Fatal(err)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{time: time.Since(begin), peak: float64(usage.Maxrss) / 1000}
}

// served lists what can be fetched: files by their paths upstream, manifests and blobs of images.
func (b *bench) served(file string) []string {
	b.Helper()
	f, err := artifact.Open(file)
	b.must(err)
	defer func() { _ = f.Close() }() // only read
	var paths []string
	for _, i := range f.Manifest.Items {
		if i.Kind != artifact.KindImage {
			if path, ok := strings.CutPrefix(i.Source, "https://"); ok {
				paths = append(paths, path)
			}
			continue
		}
		repository, tag, _ := strings.Cut(i.Name, ":")
		paths = append(paths, fmt.Sprintf("v2/%s/manifests/%s", repository, tag))
		for _, blob := range i.Blobs {
			if blob != i.Blob {
				paths = append(paths, fmt.Sprintf("v2/%s/blobs/%s", repository, blob))
			}
		}
	}
	return paths
}

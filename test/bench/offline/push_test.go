package offline

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// registry is Debian's docker-registry as a process of its own, with nothing in it at first.
type registry struct {
	b    *bench
	dir  string
	addr string
	cmd  *exec.Cmd
}

func (b *bench) newRegistry() *registry {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	r := &registry{b: b, dir: filepath.Join(b.dir, "registry"), addr: l.Addr().String()}
	b.must(l.Close())
	b.Cleanup(r.stop)
	return r
}

func (r *registry) stop() {
	if r.cmd != nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	}
	r.cmd = nil
}

// empty starts it again without images.
func (r *registry) empty() {
	r.b.Helper()
	r.stop()
	r.b.must(os.RemoveAll(r.dir))
	config := r.b.write("registry.yml", fmt.Sprintf("version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\n"+
		"storage: {filesystem: {rootdirectory: %s}, cache: {blobdescriptor: inmemory}}\nhttp: {addr: %q}\n", r.dir, r.addr))
	r.cmd = exec.Command("docker-registry", "serve", config)
	r.cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	r.b.must(r.cmd.Start())
	for range 500 {
		if response, err := http.Get("http://" + r.addr + "/v2/"); err == nil {
			_ = response.Body.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.b.Fatal("docker-registry does not answer")
}

// BenchmarkOfflineImagesPush holds `kk artifact images push` of 30 images against `skopeo sync` of the same ones to the
// same registry, which is empty before each: at most as long. The second push, to a registry that has them, is to take a
// second at most.
func BenchmarkOfflineImagesPush(b *testing.B) {
	own := newBench(b)
	own.need("skopeo", "skopeo")
	own.need("docker-registry", "docker-registry")
	r := own.newRegistry()
	file, synced := filepath.Join(own.dir, "images.tar"), filepath.Join(own.dir, "synced")
	own.own("artifact", "import", own.release("v1")+"/images", "-o", file, "--allow-unverified")
	r.empty()
	push := func() cost { return own.own("artifact", "images", "push", file, "--to", "http://"+r.addr+"/all") }
	push()
	own.sources(r, synced)
	skopeo := func() cost {
		return own.run(nil, "skopeo", "sync", "--src", "dir", "--dest", "docker", "--dest-tls-verify=false", synced, r.addr+"/all")
	}
	b.Run("first", func(b *testing.B) {
		own := &bench{b, own.dir, own.kk}
		for range b.N {
			own.compare(1, side{"skopeo", r.empty, skopeo}, side{"kk", r.empty, push})
		}
		b.ReportMetric(float64(own.size(file))/1e6, "MB")
	})
	b.Run("second", func(b *testing.B) {
		own := &bench{b, own.dir, own.kk}
		for range b.N {
			own.compare(1, side{"skopeo", nil, skopeo}, side{"kk", nil, push})
		}
	})
}

// sources fetches what a registry has into folders that skopeo sync reads.
func (b *bench) sources(r *registry, dir string) {
	b.Helper()
	b.must(os.MkdirAll(dir, 0o755))
	for i := range images {
		b.run(nil, "skopeo", "copy", "--src-tls-verify=false", "docker://"+r.addr+"/all/"+repository(i),
			"dir:"+filepath.Join(dir, filepath.Base(repository(i))))
	}
}

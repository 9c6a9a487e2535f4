package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Upstream is everything that the mirror offers, built.
type Upstream struct {
	cache        string
	built        map[string]built
	debian       string // layer of Debian's programs
	pause        string
	flannelChart string
	digests      map[string]string // of releases, by path
}

// CacheDir is where the built programs are kept: $KK_UPSTREAM or ~/.cache/kk-upstream.
func CacheDir() (string, error) {
	if dir := os.Getenv("KK_UPSTREAM"); dir != "" {
		return filepath.Abs(dir)
	}
	user, err := os.UserCacheDir()
	return filepath.Join(user, "kk-upstream"), err
}

// packages maps what building needs to the Debian packages that have it.
var packages = map[string]string{
	"/usr/bin/gcc": "gcc", "/usr/include/seccomp.h": "libseccomp-dev", "/usr/bin/pkg-config": "pkg-config",
	"/usr/bin/mmdebstrap": "mmdebstrap", "/usr/include/stdlib.h": "libc6-dev",
	// Not /bin/busybox: that of the package busybox needs libraries, which images do not have.
	"/usr/share/doc/busybox-static": "busybox-static",
}

// Build makes everything that the cache does not have, which takes some
// minutes the first time; src is the folder of this package's source.
func Build(ctx context.Context, src string, w io.Writer) (*Upstream, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, cache, w)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := install(ctx, w); err != nil {
		return nil, err
	}
	u := &Upstream{cache: cache, built: map[string]built{}, digests: map[string]string{}}
	for _, p := range programs() {
		if u.built[p.name], err = p.build(ctx, src, cache, w); err != nil {
			return nil, err
		}
	}
	if u.pause, err = buildPause(ctx, cache); err != nil {
		return nil, err
	}
	if u.debian, err = buildDebian(ctx, cache, w); err != nil {
		return nil, err
	}
	if u.flannelChart, err = flannelChart(ctx, src); err != nil {
		return nil, err
	}
	for _, r := range u.releases() {
		if u.digests[r.path], err = r.publish(u.files()); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func install(ctx context.Context, w io.Writer) error {
	var missing []string
	for _, path := range sorted(packages) {
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, packages[path])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintln(w, "install", strings.Join(missing, " "))
	for _, args := range [][]string{{"update", "-q"},
		append([]string{"install", "-q", "-y", "--no-install-recommends"}, missing...)} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// flannelChart is the folder of flannel's Helm chart, in its module.
func flannelChart(ctx context.Context, src string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/flannel-io/flannel")
	cmd.Dir = filepath.Join(src, "flannel")
	out, err := cmd.Output()
	return filepath.Join(strings.TrimSpace(string(out)), "chart/kube-flannel"), err
}

func (u *Upstream) files() string { return filepath.Join(u.cache, "files") }

// Mirror serves what was built.
type Mirror struct {
	Address string // HOST:PORT, plain HTTP
	u       *Upstream
	server  *http.Server
}

// Serve starts a mirror that listens at address and has all images.
func (u *Upstream) Serve(ctx context.Context, address string) (*Mirror, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	quiet := log.New(io.Discard, "", 0)
	if err := os.MkdirAll(filepath.Join(u.cache, "blobs"), 0o755); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	images := registry.New(registry.Logger(quiet),
		registry.WithBlobHandler(registry.NewDiskBlobHandler(filepath.Join(u.cache, "blobs"))))
	mux := http.NewServeMux()
	mux.Handle("/v2/", images)
	mux.Handle("/", http.FileServer(http.Dir(u.files())))
	m := &Mirror{Address: l.Addr().String(), u: u,
		server: &http.Server{Handler: mux, ErrorLog: quiet, ReadHeaderTimeout: 10 * time.Second}}
	go m.server.Serve(l) // ends with Close
	for _, i := range u.images() {
		if err := i.write(ctx, u, m.Address); err != nil {
			return nil, errors.Join(fmt.Errorf("push %s: %w", i.ref, err), m.Close())
		}
	}
	return m, nil
}

// Close ends the mirror.
func (m *Mirror) Close() error { return m.server.Close() }

// Overlay is the catalog of the mirror: its versions, digests and places.
func (m *Mirror) Overlay() []byte {
	var b strings.Builder
	b.WriteString("# The lab's mirror. Written by test/upstream.\nversions:\n  all:\n")
	versions := map[string]string{}
	for _, r := range m.u.releases() {
		name := r.component + r.chart
		if !strings.HasPrefix(name, "kube") {
			versions[name] = r.version
		}
	}
	for _, n := range []string{"coredns", "kube-vip", "local-path-provisioner", "metrics-server"} {
		versions[strings.ReplaceAll(n, "-", "_")] = m.u.built[n].version
	}
	versions["pause"], versions["flannel_cni_plugin"] = "3.10.1", cniPluginTag
	for _, n := range sorted(versions) {
		fmt.Fprintf(&b, "    %s: %q\n", n, versions[n])
	}
	m.digests(&b)
	b.WriteString("mirrors:\n  \"https://\": http://" + m.Address + "/\nregistries:\n")
	for _, r := range []string{"docker.io", "ghcr.io", "quay.io", "registry.k8s.io"} {
		fmt.Fprintf(&b, "  %s: %s/%s\n", r, m.Address, r)
	}
	return []byte(b.String())
}

func (m *Mirror) digests(b *strings.Builder) {
	var sums, charts strings.Builder
	for _, r := range m.u.releases() {
		digest := m.u.digests[r.path]
		if r.chart != "" {
			fmt.Fprintf(&charts, "  %s: {sha256: %s}\n", r.chart, digest)
			continue
		}
		fmt.Fprintf(&sums, "  %s: {%q: {%s: \"sha256:%s\"}}\n", r.component, r.version, runtime.GOARCH, digest)
	}
	b.WriteString("checksums:\n" + sums.String() + "charts:\n" + charts.String())
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Package upstream is the lab's mirror of what a cluster is made of: an HTTP
// server with the files under the paths of their projects, and a registry of
// images. All of it is built here, from Go modules that the folders beside
// this file pin and from Debian packages; what was built is kept in a cache.
//
// The files have digests of their own, so the mirror writes a catalog overlay,
// as an organisation with a mirror of its own would.
package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// program is what one upstream project builds to.
type program struct {
	name     string // folder below this one, and the beginning of the folder in the cache
	module   string // the module in its go.mod whose version names the release
	commands []command
	cgo      bool
	args     []string // further arguments of go build
	ldflags  string   // {v} is the version, {minor} its second number, {bare} without v
}

type command struct{ file, pkg string }

// programs lists what is built; each has a folder here with a go.mod.
func programs() []program {
	return []program{
		{name: "kubernetes", module: "k8s.io/kubernetes",
			ldflags: "-X k8s.io/component-base/version.gitVersion={v} -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor={minor} -X k8s.io/component-base/version.gitTreeState=clean -X k8s.io/client-go/pkg/version.gitVersion={v} -X k8s.io/client-go/pkg/version.gitMajor=1 -X k8s.io/client-go/pkg/version.gitMinor={minor}",
			commands: below("k8s.io/kubernetes/cmd/", "kubeadm", "kubelet", "kubectl", "kube-apiserver",
				"kube-controller-manager", "kube-scheduler", "kube-proxy")},
		{name: "etcd", module: "go.etcd.io/etcd/server/v3",
			commands: []command{{"etcd", "go.etcd.io/etcd/server/v3"}, {"etcdctl", "go.etcd.io/etcd/etcdctl/v3"},
				{"etcdutl", "go.etcd.io/etcd/etcdutl/v3"}}},
		{name: "cni-plugins", module: "github.com/containernetworking/plugins", commands: cniPlugins()},
		{name: "flannel-cni", module: "", commands: []command{{"flannel", "."}}},
		{name: "containerd", module: "github.com/containerd/containerd/v2",
			ldflags:  "-X github.com/containerd/containerd/v2/version.Version={v}",
			commands: below("github.com/containerd/containerd/v2/cmd/", "containerd", "containerd-shim-runc-v2", "ctr")},
		// Static, and with seccomp: Kubernetes asks for the runtime's default profile.
		{name: "runc", module: "github.com/opencontainers/runc", cgo: true, args: []string{"-tags", "seccomp netgo osusergo"},
			ldflags:  "-X main.version={bare} -extldflags -static",
			commands: []command{{"runc", "github.com/opencontainers/runc"}}},
		{name: "crictl", module: "k8s.io/cri-api", commands: []command{{"crictl", "."}}},
		{name: "helm", module: "helm.sh/helm/v3", ldflags: "-X helm.sh/helm/v3/internal/version.version={v}",
			commands: []command{{"helm", "helm.sh/helm/v3/cmd/helm"}}},
		{name: "coredns", module: "github.com/coredns/coredns",
			commands: []command{{"coredns", "github.com/coredns/coredns"}}},
		{name: "flannel", module: "github.com/flannel-io/flannel", cgo: true,
			ldflags: "-X github.com/flannel-io/flannel/pkg/version.Version={v} -extldflags -static",
			args:    []string{"-tags", "netgo osusergo"}, commands: []command{{"flanneld", "github.com/flannel-io/flannel"}}},
		{name: "registry", module: "github.com/distribution/distribution/v3",
			commands: []command{{"registry", "github.com/distribution/distribution/v3/cmd/registry"}}},
		{name: "local-path-provisioner", module: "github.com/rancher/local-path-provisioner", ldflags: "-X main.VERSION={v}",
			commands: []command{{"local-path-provisioner", "github.com/rancher/local-path-provisioner"}}},
		{name: "metrics-server", module: "sigs.k8s.io/metrics-server",
			commands: []command{{"metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server"}}},
		{name: "kube-vip", module: "github.com/kube-vip/kube-vip", ldflags: "-X main.Version={v}",
			commands: []command{{"kube-vip", "github.com/kube-vip/kube-vip"}}},
	}
}

func below(path string, names ...string) []command {
	var out []command
	for _, n := range names {
		out = append(out, command{n, path + n})
	}
	return out
}

func cniPlugins() []command {
	const root = "github.com/containernetworking/plugins/plugins/"
	out := below(root+"main/", "bridge", "host-device", "ipvlan", "loopback", "macvlan", "ptp", "vlan")
	out = append(out, below(root+"ipam/", "dhcp", "host-local", "static")...)
	return append(out, below(root+"meta/", "bandwidth", "firewall", "portmap", "sbr", "tuning", "vrf")...)
}

// built is a program in the cache.
type built struct {
	version string // v1.2.3, as its go.mod pins it
	dir     string
}

func (b built) bare() string { return strings.TrimPrefix(b.version, "v") }

func (b built) path(file string) string { return filepath.Join(b.dir, file) }

// keyFile keeps the key of what a folder of the cache was built from.
const keyFile = ".key"

// key is the digest of all that went into it.
func (b built) key() (string, error) {
	text, err := os.ReadFile(b.path(keyFile))
	return string(text), err
}

// build returns the program from the cache, building it when the cache has
// none of the same key.
func (p program) build(ctx context.Context, src, cache string, log io.Writer) (built, error) {
	pins, err := os.ReadFile(filepath.Join(src, p.name, "go.mod"))
	if err != nil {
		return built{}, err
	}
	b := built{version: p.version(string(pins))}
	b.dir = filepath.Join(cache, p.name+"-"+b.version, runtime.GOARCH)
	key, err := p.key(src)
	if err != nil {
		return built{}, err
	}
	if have, err := b.key(); err == nil && have == key {
		return b, nil
	}
	began := time.Now()
	fmt.Fprintf(log, "build %s %s\n", p.name, b.version)
	if err := p.compile(ctx, src, b); err != nil {
		return built{}, fmt.Errorf("build %s %s: %w", p.name, b.version, err)
	}
	fmt.Fprintf(log, "built %s %s (%.0f s)\n", p.name, b.version, time.Since(began).Seconds())
	return b, os.WriteFile(b.path(keyFile), []byte(key), 0o644)
}

// key is a digest of all that goes into the program: the compiler and its
// flags, the modules and their sums, and source of our own.
func (p program) key(src string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %t %q %q %q\n", runtime.Version(), p.cgo, p.args, p.ldflags, p.commands)
	own, err := filepath.Glob(filepath.Join(src, p.name, "*.go"))
	if err != nil {
		return "", err
	}
	for _, f := range append([]string{"go.mod", "go.sum"}, own...) {
		name := filepath.Base(f)
		text, err := os.ReadFile(filepath.Join(src, p.name, name))
		if errors.Is(err, fs.ErrNotExist) && name == "go.sum" {
			continue // of a module that requires none
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// version is what go.mod requires of the program's module; a program of our own has v1.0.0.
func (p program) version(pins string) string {
	m := regexp.MustCompile(`(?m)^(?:require)?\s*` + regexp.QuoteMeta(p.module) + ` (v\S+)`).FindStringSubmatch(pins)
	if p.module == "" || m == nil {
		return "v1.0.0"
	}
	return m[1]
}

func (p program) compile(ctx context.Context, src string, b built) error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	minor := strings.SplitN(b.version, ".", 3)
	ldflags := strings.NewReplacer("{v}", b.version, "{bare}", b.bare(), "{minor}", minor[1]).Replace("-s -w " + p.ldflags)
	for _, c := range p.commands {
		tmp := b.path(c.file + ".building")
		args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", tmp}, p.args...)
		cmd := exec.CommandContext(ctx, "go", append(args, c.pkg)...)
		cmd.Dir = filepath.Join(src, p.name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED="+map[bool]string{true: "1", false: "0"}[p.cgo], "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", c.file, err, strings.TrimSpace(string(out)))
		}
		if err := os.Rename(tmp, b.path(c.file)); err != nil {
			return err
		}
	}
	return nil
}

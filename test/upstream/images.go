package upstream

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// debian are the packages of the layer below the images that run programs of a distribution.
var debian = []string{"conntrack", "haproxy", "ipset", "iproute2", "iptables", "kmod", "nftables"}

// image is one image of the mirror.
type image struct {
	ref        string // as upstream names it
	files      map[string]string
	onDebian   bool // above the layer of Debian's programs
	entrypoint []string
	command    []string
}

// images lists them by what upstream calls them.
func (u *Upstream) images() []image {
	k8s, etcd, dns, fl := u.built["kubernetes"], u.built["etcd"], u.built["coredns"], u.built["flannel"]
	var out []image
	for _, n := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		out = append(out, image{ref: "registry.k8s.io/" + n + ":" + k8s.version, onDebian: n == "kube-proxy",
			files: map[string]string{"usr/local/bin/" + n: k8s.path(n)}, command: []string{n}})
	}
	local, metrics, reg := u.built["local-path-provisioner"], u.built["metrics-server"], u.built["registry"]
	vip := u.built["kube-vip"]
	busybox := map[string]string{"bin/busybox": "/bin/busybox"}
	return append(out,
		image{ref: "registry.k8s.io/etcd:" + etcd.bare() + "-0", command: []string{"etcd"}, files: map[string]string{
			"usr/local/bin/etcd": etcd.path("etcd"), "usr/local/bin/etcdctl": etcd.path("etcdctl"),
			"usr/local/bin/etcdutl": etcd.path("etcdutl")}},
		image{ref: "registry.k8s.io/pause:3.10.1", entrypoint: []string{"/pause"},
			files: map[string]string{"pause": u.pause}},
		image{ref: "registry.k8s.io/coredns/coredns:" + dns.version, entrypoint: []string{"/coredns"},
			files: map[string]string{"coredns": dns.path("coredns")}},
		image{ref: "docker.io/flannel/flannel:" + fl.version, onDebian: true, entrypoint: []string{"/opt/bin/flanneld"},
			files: map[string]string{"opt/bin/flanneld": fl.path("flanneld")}},
		// The chart copies /flannel out of it, with cp.
		image{ref: "docker.io/flannel/flannel-cni-plugin:" + cniPluginTag,
			files: merged(busybox, map[string]string{"flannel": u.built["flannel-cni"].path("flannel")})},
		image{ref: "docker.io/library/haproxy:3.2.19-alpine", onDebian: true,
			command: []string{"haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"}},
		image{ref: "docker.io/rancher/local-path-provisioner:" + local.version,
			files:      map[string]string{"usr/bin/local-path-provisioner": local.path("local-path-provisioner")},
			entrypoint: []string{"local-path-provisioner"}},
		image{ref: "registry.k8s.io/metrics-server/metrics-server:" + metrics.version,
			entrypoint: []string{"/metrics-server"},
			files:      map[string]string{"metrics-server": metrics.path("metrics-server")}},
		image{ref: "ghcr.io/kube-vip/kube-vip:" + vip.version, entrypoint: []string{"/kube-vip"},
			files: map[string]string{"kube-vip": vip.path("kube-vip")}},
		image{ref: "docker.io/library/registry:" + reg.bare(), entrypoint: []string{"/bin/registry"},
			files: map[string]string{"bin/registry": reg.path("registry")}},
		image{ref: "docker.io/library/busybox:1.37.0", files: busybox, command: []string{"/bin/sh"}},
	)
}

// cniPluginTag is what the catalog calls the image of flannel's CNI plugin.
const cniPluginTag = "v1.7.1-flannel1"

func merged(maps ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// applets are busybox's commands that images and tests use.
var applets = []string{"awk", "cat", "chmod", "cp", "date", "echo", "env", "grep", "head", "hostname", "httpd", "id",
	"ip", "ln", "ls", "mkdir",
	"mount", "mv", "nc", "nslookup", "ping", "ps", "rm", "sed", "sh", "sleep", "tar", "test", "touch", "true", "umount",
	"wget"}

// write pushes the image to the registry at addr, unless it has it.
func (i image) write(ctx context.Context, u *Upstream, addr string) error {
	ref, err := name.ParseReference(addr+"/"+i.ref, name.Insecure)
	if err != nil {
		return err
	}
	img, err := i.make(u)
	if err != nil {
		return fmt.Errorf("make the image %s: %w", i.ref, err)
	}
	return remote.Write(ref, img, remote.WithContext(ctx))
}

func (i image) make(u *Upstream) (v1.Image, error) {
	var layers []v1.Layer
	if i.onDebian {
		text, err := os.ReadFile(u.debian)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer(text))
	}
	if len(i.files) > 0 {
		text, err := i.tar()
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer(text))
	}
	img, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON), layers...)
	if err != nil {
		return nil, err
	}
	c, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", runtime.GOARCH
	c.Config = v1.Config{Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin"},
		Entrypoint: i.entrypoint, Cmd: i.command}
	return mutate.ConfigFile(img, c)
}

// layer is not compressed: it travels over a bridge of this machine.
func layer(text []byte) v1.Layer { return static.NewLayer(text, types.OCIUncompressedLayer) }

// tar is the image's own files, with busybox's commands where it has busybox.
func (i image) tar() ([]byte, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, dir := range []string{"tmp/", "etc/", "var/"} {
		mode := int64(0o755)
		if dir == "tmp/" {
			mode = 0o1777
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: mode}); err != nil {
			return nil, err
		}
	}
	for _, path := range sorted(i.files) {
		if err := add(t, path, i.files[path], 0o755); err != nil {
			return nil, err
		}
	}
	if i.files["bin/busybox"] != "" {
		for _, a := range applets {
			if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + a, Linkname: "busybox",
				Mode: 0o777}); err != nil {
				return nil, err
			}
		}
	}
	return b.Bytes(), t.Close()
}

// buildDebian makes the layer of Debian's programs, once.
func buildDebian(ctx context.Context, cache string, log io.Writer) (string, error) {
	sum := sha256.Sum256([]byte(strings.Join(debian, "\n")))
	path := filepath.Join(cache, "debian-"+hex.EncodeToString(sum[:6])+".tar")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	fmt.Fprintln(log, "build a layer of Debian's programs")
	cmd := exec.CommandContext(ctx, "mmdebstrap", "--variant=minbase", "--include="+strings.Join(debian, ","),
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
		"--customize-hook=rm -rf $1/var/lib/apt/lists/*",
		"bookworm", path+".building.tar")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mmdebstrap: %w: %s", err, out)
	}
	return path, os.Rename(path+".building.tar", path)
}

// pauseSource waits for signals, as the first process of a Pod does.
const pauseSource = `#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void leave(int s) { _exit(0); }
static void reap(int s) { while (waitpid(-1, NULL, WNOHANG) > 0); }
int main(void) {
	signal(SIGINT, leave); signal(SIGTERM, leave); signal(SIGCHLD, reap);
	for (;;) pause();
}
`

func buildPause(ctx context.Context, cache string) (string, error) {
	path := filepath.Join(cache, "pause")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.CommandContext(ctx, "gcc", "-Os", "-static", "-s", "-x", "c", "-", "-o", path+".building")
	cmd.Stdin = strings.NewReader(pauseSource)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc: %w: %s", err, out)
	}
	return path, os.Rename(path+".building", path)
}

package upstream

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// release is one file of the mirror: what a component's URL leads to.
type release struct {
	component string // of the catalog; "" for a chart
	chart     string
	version   string // as the catalog calls it
	path      string // below the mirror's root: the URL without https://
	from      built  // what is in it
	write     func(w io.Writer) error
}

// releases lists the files, under the paths that the catalog's URLs have.
func (u *Upstream) releases() []release {
	arch := runtime.GOARCH
	k8s, etcd, cni, ctrd := u.built["kubernetes"], u.built["etcd"], u.built["cni-plugins"], u.built["containerd"]
	runc, helm, reg, fl, cri := u.built["runc"], u.built["helm"], u.built["registry"], u.built["flannel"],
		u.built["crictl"]
	var out []release
	for _, name := range []string{"kubeadm", "kubelet", "kubectl"} {
		out = append(out, release{component: name, version: k8s.version, from: k8s,
			path: fmt.Sprintf("dl.k8s.io/release/%s/bin/linux/%s/%s", k8s.version, arch, name), write: plain(k8s.path(name))})
	}
	dir := fmt.Sprintf("etcd-%s-linux-%s", etcd.version, arch)
	return append(out,
		release{component: "etcd", version: etcd.version, from: etcd, path: "github.com/etcd-io/etcd/releases/download/" +
			etcd.version + "/" + dir + ".tar.gz",
			write: archive(etcd, dir+"/", "etcd", "etcdctl", "etcdutl")},
		release{component: "cni_plugins", version: cni.version, from: cni,
			path: fmt.Sprintf("github.com/containernetworking/plugins/releases/download/%s/cni-plugins-linux-%s-%s.tgz",
				cni.version, arch, cni.version),
			write: archive(cni, "./", files(cniPlugins())...)},
		release{component: "containerd", version: ctrd.version, from: ctrd,
			path: fmt.Sprintf("github.com/containerd/containerd/releases/download/%s/containerd-%s-linux-%s.tar.gz",
				ctrd.version, ctrd.bare(), arch),
			write: archive(ctrd, "bin/", "containerd", "containerd-shim-runc-v2", "ctr")},
		// The programs are built without cgo, so that they are static.
		release{component: "containerd_static", version: ctrd.version, from: ctrd,
			path: fmt.Sprintf("github.com/containerd/containerd/releases/download/%s/containerd-static-%s-linux-%s.tar.gz",
				ctrd.version, ctrd.bare(), arch),
			write: archive(ctrd, "bin/", "containerd", "containerd-shim-runc-v2", "ctr")},
		release{component: "runc", version: runc.version, from: runc,
			path:  fmt.Sprintf("github.com/opencontainers/runc/releases/download/%s/runc.%s", runc.version, arch),
			write: plain(runc.path("runc"))},
		release{component: "crictl", version: cri.version, from: cri,
			path: fmt.Sprintf("github.com/kubernetes-sigs/cri-tools/releases/download/%s/crictl-%s-linux-%s.tar.gz",
				cri.version, cri.version, arch),
			write: archive(cri, "", "crictl")},
		release{component: "helm", version: helm.version, from: helm,
			path:  fmt.Sprintf("get.helm.sh/helm-%s-linux-%s.tar.gz", helm.version, arch),
			write: archive(helm, "linux-"+arch+"/", "helm")},
		release{component: "registry", version: reg.bare(), from: reg,
			path: fmt.Sprintf("github.com/distribution/distribution/releases/download/%s/registry_%s_linux_%s.tar.gz",
				reg.version, reg.bare(), arch),
			write: archive(reg, "", "registry")},
		release{chart: "flannel", version: fl.version, from: fl, path: "github.com/flannel-io/flannel/releases/download/" +
			fl.version + "/flannel.tgz",
			write: folder(u.flannelChart, "flannel/")},
	)
}

func files(commands []command) []string {
	var out []string
	for _, c := range commands {
		out = append(out, c.file)
	}
	return out
}

func plain(path string) func(io.Writer) error {
	return func(w io.Writer) error { return copyFile(w, path) }
}

func copyFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// archive is a compressed tar of a program's files below a folder. It has no
// times, so that the same files always make the same archive.
func archive(b built, below string, names ...string) func(io.Writer) error {
	return func(w io.Writer) error {
		return packed(w, func(t *tar.Writer) error {
			for _, n := range names {
				if err := add(t, below+n, b.path(n), 0o755); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// folder is a compressed tar of a folder's files.
func folder(dir, below string) func(io.Writer) error {
	return func(w io.Writer) error {
		return packed(w, func(t *tar.Writer) error {
			return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				return add(t, below+strings.TrimPrefix(path, dir+"/"), path, 0o644)
			})
		})
	}
}

func packed(w io.Writer, fill func(*tar.Writer) error) error {
	// The mirror is on the same machine as its clients: speed counts, size does not.
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	if err := fill(t); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

func add(t *tar.Writer, name, path string, mode int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: mode}); err != nil {
		return err
	}
	return copyFile(t, path)
}

// publish writes the file into the mirror's folder, unless it is there already,
// and returns its sha256.
func (r release) publish(root string) (string, error) {
	key, err := r.from.key()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, r.path)
	mark := path + ".from"
	if have, err := os.ReadFile(mark); err == nil {
		if from, digest, ok := strings.Cut(string(have), " "); ok && from == key {
			return digest, nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	f, err := os.Create(path + ".new")
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if err := r.write(io.MultiWriter(f, h)); err != nil {
		return "", fmt.Errorf("pack %s: %w", r.path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return "", err
	}
	digest := hex.EncodeToString(h.Sum(nil))
	return digest, os.WriteFile(mark, []byte(key+" "+digest), 0o644)
}

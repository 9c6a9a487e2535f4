package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"kubekey/pkg/catalog"
	"kubekey/pkg/value"
)

// TestDigests compares what is found by digest with what a cluster gets.
func TestDigests(t *testing.T) {
	c := mustLoad(t, `charts: {flannel: {sha256: "sha256:`+strings.Repeat("a", 64)+`"}}`)
	digests := c.Digests()
	files, compared := filesOf(t, resolve(t, c, catalog.Request{KubeVersion: "v1.34.4", Offline: true})), 0
	for _, f := range files {
		if f.SHA256 == "" {
			continue
		}
		compared++
		got := digests[f.SHA256]
		if f.Kubernetes = slices.Contains([]string{"kubeadm", "kubelet", "kubectl"}, f.Name); got != f {
			t.Errorf("got %+v, want %+v", got, f)
		}
	}
	if compared < 20 {
		t.Errorf("%d of %d files have a digest", compared, len(files))
	}
}

// filesOf lists the files of a variable catalog.
func filesOf(t testing.TB, resolved *value.Dict) (files []catalog.File) {
	t.Helper()
	add := func(path string, arch string) {
		files = append(files, catalog.File{Name: at(t, resolved, path+".name"), Version: at(t, resolved, path+".version"),
			Arch: arch, File: at(t, resolved, path+".file"), Upstream: at(t, resolved, path+".upstream"),
			SHA256: at(t, resolved, path+".sha256"), Chart: arch == ""})
	}
	for _, name := range keysOf(resolved, "components") {
		add("components."+name+".arch.amd64", "amd64")
		add("components."+name+".arch.arm64", "arm64")
	}
	for _, name := range keysOf(resolved, "charts") {
		add("charts."+name, "")
	}
	return files
}

func keysOf(d *value.Dict, key string) (keys []string) {
	v, _ := d.Get(key)
	for k := range v.(*value.Dict).All() {
		keys = append(keys, k.(string))
	}
	return keys
}

// TestFileNames has the paths of KubeKey 3 and 4, and of the cache.
func TestFileNames(t *testing.T) {
	names := mustLoad(t).FileNames()
	for _, row := range [][2]string{
		{"kube/v1.22.17/amd64/kubeadm", "kubeadm/v1.22.17/amd64/kubeadm"},
		{"kube/v1.34.4/amd64/kubeadm", ""}, // its digest is known
		{"kubeadm", ""},
		{"docker/24.0.9/arm64/docker-24.0.9.tgz", "docker/24.0.9/arm64/docker-24.0.9.tgz"},
		{"docker-24.0.9.tgz", ""},
		{"containerd/v9.9.9/amd64/containerd-9.9.9-linux-amd64.tar.gz",
			"containerd/v9.9.9/amd64/containerd-9.9.9-linux-amd64.tar.gz"},
		{"image-registry/harbor/v2.10.2/amd64/harbor-offline-installer-v2.10.2.tgz",
			"harbor/v2.10.2/amd64/harbor-offline-installer-v2.10.2.tgz"},
		{"image-registry/docker-compose/v2.20.3/arm64/docker-compose-linux-aarch64",
			"docker_compose/v2.20.3/arm64/docker-compose-linux-aarch64"},
		{"cni/calico/tigera-operator-v3.31.3.tgz", "charts/calico-v3.31.3.tgz"},
		{"cni/flannel/flannel-v0.28.4.tgz", "charts/flannel-v0.28.4.tgz"},
		{"flannel/v0.28.4/flannel.tgz", "charts/flannel-v0.28.4.tgz"},
		{"flannel.tgz", ""},
		{"cni/kubeovn/kube-ovn-v1.15.0.tgz", "charts/kubeovn-v1.15.0.tgz"},
		{"storageclass/nfs/nfs-subdir-external-provisioner-4.0.18.tgz", "charts/nfs_subdir_provisioner-4.0.18.tgz"},
		{"charts/nfs_subdir_provisioner-4.0.18.tgz", "charts/nfs_subdir_provisioner-4.0.18.tgz"},
		{"cilium-linux-amd64.tar.gz", ""},
		{"repository/ubuntu-22.04-amd64.iso", ""},
		{"helm/v3.14.3/amd64/helm", ""},
		{"registry/compose/v2.2.2/amd64/docker-compose-linux-x86_64",
			"docker_compose/v2.2.2/amd64/docker-compose-linux-x86_64"},
		{"registry/compose/v2.2.2/arm64/docker-compose-linux-x86_64", ""}, // KubeKey 3 names both so
	} {
		file, want := row[0], row[1]
		f, ok := names.Find(file)
		if ok != (want != "") || f.File != want {
			t.Errorf("%s: got %+v %v, want %q", file, f, ok, want)
		}
	}
}

func TestImageNames(t *testing.T) {
	c := mustLoad(t)
	for path, want := range map[string]string{"pause": "registry.k8s.io/pause", "calico/node": "quay.io/calico/node",
		"nosuch": "", "library/registry": "docker.io/library/registry"} {
		if got, ok := c.Repository(path); got != want || ok != (want != "") {
			t.Errorf("%s: got %q %v, want %q", path, got, ok, want)
		}
	}
	for ref, want := range map[string]string{"docker.io/kubesphere/pause:3.9": "registry.k8s.io/pause:3.9",
		"localhost:5000/calico/node:v1": "quay.io/calico/node:v1", "registry.k8s.io/pause:3.9": "",
		"docker.io/a/nosuch:1": "", "docker.io/a/pause@sha256:00": ""} {
		if got, ok := c.Namesake(ref); ok != (want != "") || ok && got != want {
			t.Errorf("%s: got %q %v, want %q", ref, got, ok, want)
		}
	}
	for ref, want := range map[string]string{"registry.k8s.io/pause:9": "kubernetes", "quay.io/calico/node:v1": "calico",
		"registry.k8s.io/pause": "kubernetes", "quay.io/pause:3.9": "", "localhost:5000/pause": ""} {
		if got := c.Group(ref); got != want {
			t.Errorf("%s: got %q, want %q", ref, got, want)
		}
	}
}

package rendered

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/test/simulated"
)

// plain is a cluster of the newest kubeadm API, without anything special.
func plain(minor string) cluster {
	return cluster{"minor": minor, "cni": "flannel", "runtime": "containerd", "endpoint": "local", "family": "v4",
		"etcd": "internal", "registry": "none", "proxy": "iptables", "more": "no"}
}

// withConfig are the arguments of a further config.
func withConfig(t *testing.T, text string) []string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "further.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"-c", name}
}

// content is what a file of a host holds; the last one that was written.
func content(fleet *simulated.Fleet, host, path string) (text, mode string) {
	for _, f := range fleet.Files() {
		if f.Host == host && f.Path == path {
			text, mode = f.Content, f.Mode
		}
	}
	return text, mode
}

const patches = `
kubernetes:
  patches:
  - {target: kube-apiserver, patch: {metadata: {annotations: {owner: me}}}}
  - {target: kubeletconfiguration, type: merge, patch: {maxPods: 42}}
  - {target: kube-apiserver, type: json, patch: [{op: add, path: /metadata/labels/a, value: b}]}
`

// kubeadm gets the patches of a node on that node, in their order, in both of its APIs.
func TestPatchesOfKubeadm(t *testing.T) {
	for _, minor := range []string{"1.30", "1.34"} {
		t.Run(minor, func(t *testing.T) {
			t.Parallel()
			fleet := created(t, plain(minor), withConfig(t, patches)...)
			const dir = "/etc/kubernetes/patches"
			for _, c := range []struct{ host, name, want string }{
				{"n1", "kube-apiserver001+strategic.yaml", "owner: me"},
				{"n1", "kubeletconfiguration002+merge.yaml", "maxPods: 42"},
				{"n2", "kube-apiserver003+json.yaml", "path: /metadata/labels/a"},
				{"n4", "kubeletconfiguration001+merge.yaml", "maxPods: 42"},
			} {
				text, mode := content(fleet, c.host, dir+"/"+c.name)
				if !strings.Contains(text, c.want) || mode != "0600" {
					t.Errorf("%s of %s, mode %s: %q, want %q", c.name, c.host, mode, text, c.want)
				}
			}
			for _, f := range fleet.Files() {
				if f.Host == "n4" && strings.HasPrefix(f.Path, dir+"/kube-apiserver") {
					t.Errorf("a worker has %s", f.Path)
				}
			}
			for _, c := range []struct{ host, file string }{
				{"n1", "/etc/kubernetes/kubeadm.yaml"}, {"n2", "/etc/kubernetes/kubeadm-join.yaml"},
				{"n4", "/etc/kubernetes/kubeadm-join.yaml"},
			} {
				if text, _ := content(fleet, c.host, c.file); !strings.Contains(text, "\npatches:\n  directory: "+dir+"\n") {
					t.Errorf("%s of %s does not name the patches:\n%s", c.file, c.host, text)
				}
			}
		})
	}
}

// The real kubeadm finds the files, reads their types from the names, and applies them in order.
func TestKubeadmAppliesPatches(t *testing.T) {
	kubeadm, err := builtKubeadm()
	if err != nil {
		t.Skip(err)
	}
	if os.Getuid() != 0 {
		t.Skip("only root can change the root directory")
	}
	fleet := created(t, plain(builtMinor), withConfig(t, patches)...)
	root := t.TempDir()
	for _, f := range fleet.Files() {
		if f.Host == "n1" && strings.HasPrefix(f.Path, "/etc/kubernetes/") {
			name := filepath.Join(root, f.Path)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(f.Content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := exec.CommandContext(t.Context(), kubeadm, "init", "phase", "control-plane", "apiserver", "--rootfs", root,
		"--config", "/etc/kubernetes/kubeadm.yaml").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	manifest, err := os.ReadFile(filepath.Join(root, "etc/kubernetes/manifests/kube-apiserver.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n    owner: me\n", "\n    a: b\n"} {
		if !strings.Contains(string(manifest), want) {
			t.Errorf("no %q in\n%s", want, manifest)
		}
	}
}

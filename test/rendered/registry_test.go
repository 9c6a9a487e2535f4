package rendered

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kubekey/test/simulated"
)

// What nodes pull from the cluster's own registry was pushed there before.
func TestImagesThatArePulledWerePushed(t *testing.T) {
	c := cluster{"minor": "1.34", "cni": "flannel", "runtime": "containerd", "endpoint": "kube_vip", "family": "v4",
		"etcd": "internal", "registry": "registry", "proxy": "iptables", "more": "yes"}
	dir := t.TempDir()
	c.write(t, dir)
	fleet := &simulated.Fleet{Record: true, Nodes: c.layout().Hosts()}
	var out bytes.Buffer
	args := []string{"run", "playbooks/create_cluster.yaml", "-i", filepath.Join(dir, "inventory.yaml"), "-c",
		filepath.Join(dir, "config.yaml"), "-e", "kk_yes=true", "--workdir", filepath.Join(dir, "work")}
	if code := fleet.Run(t.Context(), &out, args...); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out.String())
	}
	var pushed []string
	for _, call := range fleet.Calls() {
		if call.Module == "image" {
			pushed = append(pushed, pushedBy(call)...)
		}
	}
	pulled := 0
	for _, f := range fleet.Files() {
		for _, line := range strings.Split(f.Content, "\n") {
			_, ref, isImage := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), "image: ")
			ref = strings.Trim(ref, `"'`)
			rest, own := strings.CutPrefix(ref, "registry.kk.local/")
			if !isImage || !own {
				continue
			}
			pulled++
			if !slices.Contains(pushed, rest) {
				t.Errorf("%s pulls %s, which was not pushed: %q", f.Path, ref, pushed)
			}
		}
	}
	if pulled == 0 || len(pushed) == 0 {
		t.Errorf("%d images are pulled, %d were pushed", pulled, len(pushed))
	}
}

// The registry is a service of its host: its data is in a folder there, whose
// owner it is, and which survives it. Harbor mounts its folder.
func TestRegistryKeepsItsDataOnTheHost(t *testing.T) {
	for kind, file := range map[string]string{"registry": "/etc/kk-registry/config.yaml",
		"harbor": "/opt/harbor/harbor.yml"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			inventory := simulated.Layout{Family: "v4", ControlPlanes: 1, Registries: 1}
			write(t, filepath.Join(dir, "inventory.yaml"), inventory.Inventory())
			fleet := &simulated.Fleet{Record: true, Nodes: inventory.Hosts()}
			var out bytes.Buffer
			args := []string{"run", "playbooks/init_registry.yaml", "-i", filepath.Join(dir, "inventory.yaml"), "-e",
				"kk_yes=true", "--workdir", filepath.Join(dir, "work"),
				"--set", "image_registry.type=" + kind, "--set", "image_registry.data_dir=/srv/images"}
			if code := fleet.Run(t.Context(), &out, args...); code != 0 {
				t.Fatalf("exit code %d\n%s", code, out.String())
			}
			i := slices.IndexFunc(fleet.Files(), func(f simulated.File) bool { return f.Path == file })
			if i < 0 {
				t.Fatalf("%s was not made", file)
			}
			text := fleet.Files()[i].Content
			if !strings.Contains(text, `rootdirectory: "/srv/images"`) && !strings.Contains(text, `data_volume: "/srv/images"`) {
				t.Errorf("%s does not keep its data in /srv/images:\n%s", file, text)
			}
		})
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The report when the cluster does not become healthy: a node is missing.
func TestReportOfHealth(t *testing.T) {
	c := cluster{"minor": "1.34", "cni": "flannel", "runtime": "containerd", "endpoint": "local", "family": "v4",
		"etcd": "internal", "registry": "none", "proxy": "iptables", "more": "no"}
	dir := t.TempDir()
	c.write(t, dir)
	fleet := &simulated.Fleet{Nodes: c.layout().Hosts()[1:]}
	var out bytes.Buffer
	args := []string{"run", "playbooks/create_cluster.yaml", "-i", filepath.Join(dir, "inventory.yaml"), "-c",
		filepath.Join(dir, "config.yaml"), "-e", "kk_yes=true",
		"--set", "health.timeout=1", "-e", "health_pause=1", "--set", "cni.type=none", "--workdir",
		filepath.Join(dir, "work")}
	if code := fleet.Run(t.Context(), &out, args...); code != 2 {
		t.Fatalf("exit code %d\n%s", code, out.String())
	}
	_, report, _ := strings.Cut(out.String(), "TASK [health : Fail with health report]")
	if !strings.Contains(report, "n1") || leftover.MatchString(report) {
		t.Errorf("the report is\n%s", report)
	}
}

// pushedBy are the images of a call without the address of the registry.
func pushedBy(call simulated.Call) []string {
	var out []string
	for _, dest := range call.Texts("images", "dest") {
		_, rest, _ := strings.Cut(dest, "/")
		out = append(out, rest)
	}
	return out
}

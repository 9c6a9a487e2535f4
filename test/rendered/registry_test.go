package rendered

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kubekey/test/simulated"
)

// What nodes pull from the cluster's own registry was pushed there before.
func TestImagesThatArePulledWerePushed(t *testing.T) {
	c := cluster{"minor": "1.34", "cni": "flannel", "runtime": "containerd", "endpoint": "kube_vip", "family": "v4", "etcd": "internal", "registry": "registry", "proxy": "iptables", "more": "yes"}
	dir := t.TempDir()
	c.write(t, dir)
	fleet := &simulated.Fleet{Record: true, Nodes: c.layout().Hosts()}
	var out bytes.Buffer
	args := []string{"run", "playbooks/create_cluster.yaml", "-i", filepath.Join(dir, "inventory.yaml"), "-c", filepath.Join(dir, "config.yaml"), "-e", "kk_yes=true", "--workdir", filepath.Join(dir, "work")}
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

// What is told when the cluster does not get well: a node is missing.
func TestReportOfHealth(t *testing.T) {
	c := cluster{"minor": "1.34", "cni": "flannel", "runtime": "containerd", "endpoint": "local", "family": "v4", "etcd": "internal", "registry": "none", "proxy": "iptables", "more": "no"}
	dir := t.TempDir()
	c.write(t, dir)
	fleet := &simulated.Fleet{Nodes: c.layout().Hosts()[1:]}
	var out bytes.Buffer
	args := []string{"run", "playbooks/create_cluster.yaml", "-i", filepath.Join(dir, "inventory.yaml"), "-c", filepath.Join(dir, "config.yaml"), "-e", "kk_yes=true",
		"--set", "health.timeout=1", "-e", "health_pause=1", "--set", "cni.type=none", "--workdir", filepath.Join(dir, "work")}
	if code := fleet.Run(t.Context(), &out, args...); code != 2 {
		t.Fatalf("exit code %d\n%s", code, out.String())
	}
	_, report, _ := strings.Cut(out.String(), "TASK [health : The cluster is not healthy]")
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

package rendered

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/test/simulated"
)

// TestConvertedConfigsCreateClusters creates a cluster with each config of KubeKey that `kk convert` converts.
func TestConvertedConfigsCreateClusters(t *testing.T) {
	files, err := filepath.Glob("../../pkg/convert/testdata/config/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	created := 0
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			dir := t.TempDir()
			in := func(name string) string { return filepath.Join(dir, name) }
			var out bytes.Buffer
			code := new(simulated.Fleet).Run(t.Context(), &out, "convert", "config", file, "-o", in("config.yaml"))
			if code != 0 {
				t.Skip("it is rejected")
			}
			text, err := os.ReadFile(in("config.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			pairOf(t, dir, "ca", nil)
			text = bytes.ReplaceAll(text, []byte("/etc/corporate/"), []byte(dir+"/"))
			if err := os.WriteFile(in("config.yaml"), text, 0o600); err != nil {
				t.Fatal(err)
			}
			has := func(line string) bool { return strings.Contains(string(text), "\n"+line) }
			l := simulated.Layout{Family: "v4", ControlPlanes: 1, Workers: 1, NFS: has("  nfs:\n    enabled: true")}
			if has("  deployment_type: external") {
				l.Etcd = 1
			}
			if has("image_registry:") {
				l.Registries = 1
			}
			if err := os.WriteFile(in("inventory.yaml"), []byte(l.Inventory()), 0o600); err != nil {
				t.Fatal(err)
			}
			// Simulated hosts have one time zone only, and the catalog lacks old releases.
			args := []string{"run", "playbooks/create_cluster.yaml", "-i", in("inventory.yaml"), "-c", in("config.yaml"),
				"-e", "kk_yes=true", "--set", "system.timezone=Europe/Berlin", "--workdir", in("work"), "-o", "json"}
			if has("  kube_version: v1.23.") {
				args = append(args, "--set", "kubernetes.kube_version=v1.34.4")
			}
			out.Reset()
			if code := (&simulated.Fleet{Nodes: l.Hosts()}).Run(t.Context(), &out, args...); code != 0 {
				t.Fatalf("exit code %d\n%s", code, strings.Join(failures(out.String()), "\n"))
			}
			created++
		})
	}
	if created < 8 {
		t.Errorf("only %d clusters were created", created)
	}
}

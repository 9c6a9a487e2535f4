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

// Nodes that are added and deleted enter and leave the inventory that `kk create inventory` wrote: in the end its file
// is as before.
func TestNodesEnterAndLeaveTheInventory(t *testing.T) {
	dir := t.TempDir()
	inventory := filepath.Join(dir, "inventory.yaml")
	fleet := &simulated.Fleet{Record: true, Nodes: []string{"n1", "n2", "n3"}}
	kk := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if code := fleet.Run(t.Context(), &out, args...); code != 0 {
			t.Fatalf("kk %s: exit code %d\n%s", strings.Join(args, " "), code, out.String())
		}
		return out.String()
	}
	run := func(args ...string) string {
		t.Helper()
		return kk(append(args, "-i", inventory, "--set", "cni.type=none", "--yes",
			"--workdir", filepath.Join(dir, "work"))...)
	}
	text := func() string {
		t.Helper()
		b, err := os.ReadFile(inventory)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	kk("create", "inventory", "--nodes", "n1=10.0.0.1,n2=10.0.0.2", "-o", inventory)
	before := text()
	run("create", "cluster")
	if out := run("add", "nodes", "--worker", "n3=10.0.0.3"); !strings.Contains(out, "inventory.yaml: added n3") {
		t.Errorf("the edit is not reported:\n%s", out)
	}
	const line = `    n3: {ansible_host: "10.0.0.3", internal_ipv4: "10.0.0.3"}` + "\n"
	if !strings.Contains(text(), line) || !strings.Contains(text(), "            n2:\n            n3:\n") {
		t.Fatalf("the inventory is\n%s", text())
	}
	rendered := func(c simulated.Call) bool { return c.Target == "n3" && c.Module == "template" }
	if !slices.ContainsFunc(fleet.Calls(), rendered) {
		t.Error("nothing was done on n3")
	}
	run("delete", "nodes", "n3", "--check")
	run("delete", "nodes", "n3", "--tags", "none-has-this")
	if !strings.Contains(text(), line) {
		t.Fatal("a host left the inventory that was not deleted")
	}
	run("delete", "nodes", "n3")
	if text() != before {
		t.Errorf("the inventory is not as before:\n%s", text())
	}
}

package rendered

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kubekey/test/simulated"
)

// On hosts that are not set up, check mode ends where the next task would need a program that is not installed
// yet. No play begins after that. On hosts that are set up it goes through all that a run goes through.
func TestCheckModeEndsOnce(t *testing.T) {
	inventory := simulated.Layout{Family: "v4", ControlPlanes: 1, Workers: 1, Etcd: 1, Registries: 1}
	for playbook, last := range map[string]string{
		"create_cluster": "Prepare operating systems",
		"init_registry":  "Prepare operating systems",
	} {
		t.Run(playbook, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "inventory.yaml"), inventory.Inventory())
			fleet := &simulated.Fleet{Record: true, Nodes: inventory.Hosts()}
			plays := func(playbook string, args ...string) []string {
				args = append([]string{"run", "playbooks/" + playbook + ".yaml",
					"-i", filepath.Join(dir, "inventory.yaml"), "-e", "kk_yes=true",
					"--set", "etcd.deployment_type=external", "--workdir", filepath.Join(dir, "work"), "-o", "json"}, args...)
				var out bytes.Buffer
				if code := fleet.Run(t.Context(), &out, args...); code != 0 {
					t.Fatalf("exit code %d\n%s", code, out.String())
				}
				return begun(t, out.String())
			}
			const end = "End check mode on fresh hosts"
			bare := plays(playbook, "--check")
			if want := []string{last, end}; len(bare) < 2 || !slices.Equal(bare[len(bare)-2:], want) {
				t.Errorf("on new hosts the last plays are not %q: %q", want, bare)
			}
			plays("create_cluster")
			whole := plays(playbook)
			if i := slices.Index(whole, end); i < 0 || i == len(whole)-1 {
				t.Errorf("a run that changes hosts ends early: %q", whole)
			}
			if set := plays(playbook, "--check"); !slices.Equal(set, whole) {
				t.Errorf("on hosts that are set up check mode begins %q, and a run %q", set, whole)
			}
		})
	}
}

// begun are the plays of a run that began, in order.
func begun(t *testing.T, out string) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(out) {
		var e struct{ Type, Name string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if e.Type == "play_started" {
			names = append(names, e.Name)
		}
	}
	return names
}

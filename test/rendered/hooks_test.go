package rendered

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kubekey/test/simulated"
)

// The scripts of groups run in the order of the config, then those of other groups.
func TestHooksOfGroupsRunInOrder(t *testing.T) {
	for _, phase := range []string{"pre", "post"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			scripts := filepath.Join(dir, "work/scripts")
			if err := os.MkdirAll(scripts, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"", "_k8s_cluster", "_kube_control_plane", "_kube_worker", "_n1"} {
				file := filepath.Join(scripts, phase+"_install"+name+".sh")
				if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			inventory := filepath.Join(dir, "inventory.yaml")
			text := "k8s_cluster: {children: {kube_control_plane: {hosts: {n1: {}}}, kube_worker: {hosts: {n1: {}}}}}\n"
			if err := os.WriteFile(inventory, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			fleet := &simulated.Fleet{Record: true, Nodes: []string{"n1"}}
			var out bytes.Buffer
			args := append([]string{"run", "playbooks/" + phase + "_hook.yaml", "-i", inventory,
				"--workdir", filepath.Join(dir, "work")},
				withConfig(t, phase+"_install_groups: [kube_worker, kube_control_plane]\n")...)
			if code := fleet.Run(t.Context(), &out, args...); code != 0 {
				t.Fatal(out.String())
			}
			var ran []string
			for _, call := range fleet.Calls() {
				if call.Module == "command" {
					ran = append(ran, filepath.Base(call.Args.String("_raw_params")+call.Args.String("cmd")))
				}
			}
			var want []string
			for _, name := range []string{"", "_kube_worker", "_kube_control_plane", "_k8s_cluster", "_n1"} {
				want = append(want, phase+"_install"+name+".sh")
			}
			if !slices.Equal(ran, want) {
				t.Errorf("%q ran, want %q\n%s", ran, want, out.String())
			}
		})
	}
}

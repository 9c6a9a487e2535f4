package rendered

import (
	"testing"

	"kubekey/test/simulated"
)

// kubeadm of 1.25 cannot validate a config; those of later releases do before kk uses it.
func TestKubeadmValidatesItsConfig(t *testing.T) {
	for minor, validates := range map[string]bool{"1.25": false, "1.26": true} {
		t.Run(minor, func(t *testing.T) {
			t.Parallel()
			fleet := created(t, cluster{"minor": minor, "cni": "flannel", "runtime": "containerd", "endpoint": "local",
				"family": "v4", "etcd": "internal", "registry": "none", "proxy": "iptables", "more": "no"})
			checked := map[string]bool{}
			for _, call := range fleet.Calls() {
				if dest := call.Args.String("dest"); call.Module == "template" && call.Args.String("src") != "" {
					checked[dest] = validatesWithKubeadm(call)
				}
			}
			for _, file := range []string{"/etc/kubernetes/kubeadm.yaml", "/etc/kubernetes/kubeadm-join.yaml"} {
				if got, written := checked[file]; !written || got != validates {
					t.Errorf("%s: written %t, validated %t, want %t", file, written, got, validates)
				}
			}
		})
	}
}

func validatesWithKubeadm(call simulated.Call) bool {
	return call.Args.String("validate") == "/usr/local/bin/kubeadm config validate --config %s"
}

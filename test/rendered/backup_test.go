package rendered

import (
	"strings"
	"testing"
)

// Each etcd member is saved on its host, whether it is a service or a Pod of the control plane.
func TestEveryEtcdMemberIsSaved(t *testing.T) {
	for _, c := range []struct{ etcd, family, member string }{
		{"internal", "v4", "https://127.0.0.1:2379"}, {"internal", "v6", "https://[::1]:2379"},
		{"internal", "dual", "https://127.0.0.1:2379"}, {"external", "v4", "https://10.0.0."},
	} {
		t.Run(c.etcd+" "+c.family, func(t *testing.T) {
			t.Parallel()
			kind := cluster{"minor": "1.34", "cni": "flannel", "runtime": "containerd", "endpoint": "local", "family": c.family,
				"etcd": c.etcd, "registry": "none", "proxy": "iptables", "more": "no"}
			saved := map[string]bool{}
			for _, f := range created(t, kind).Files() {
				text := strings.ReplaceAll(f.Content, "'", "")
				if f.Path == "/usr/local/bin/kk-etcd-backup" && strings.Contains(text, "ETCDCTL_ENDPOINTS="+c.member) {
					saved[f.Host] = true
				}
			}
			if len(saved) != 3 || !saved["n1"] || !saved["n3"] {
				t.Errorf("etcd is saved on %v, want the three control planes", saved)
			}
		})
	}
}

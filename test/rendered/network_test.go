package rendered

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kubekey/pkg/value"
	"kubekey/test/simulated"
)

// created is what the creation of a cluster hands to hosts and modules.
func created(t *testing.T, c cluster, args ...string) *simulated.Fleet {
	t.Helper()
	dir := t.TempDir()
	c.write(t, dir)
	fleet := &simulated.Fleet{Record: true, Nodes: c.layout().Hosts()}
	var out bytes.Buffer
	args = append([]string{"run", "playbooks/create_cluster.yaml", "-i", filepath.Join(dir, "inventory.yaml"), "-c",
		filepath.Join(dir, "config.yaml"), "-e", "kk_yes=true", "--workdir", filepath.Join(dir, "work")}, args...)
	if code := fleet.Run(t.Context(), &out, args...); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out.String())
	}
	return fleet
}

// Without kube-proxy, Calico reaches the API server at an address, for its Pods do not know the name
// that is in /etc/hosts of the nodes.
func TestCalicoGetsAnAddress(t *testing.T) {
	for _, c := range []struct{ endpoint, family, want string }{
		{"local", "v4", "10.0.0.1"}, {"local", "v6", "fd00::1"}, {"haproxy", "dual", "10.0.0.1"},
		{"kube_vip", "v4", "10.0.9.9"}, {"external", "v4", "10.0.8.8"},
	} {
		t.Run(c.endpoint+" "+c.family, func(t *testing.T) {
			t.Parallel()
			fleet := created(t, cluster{"minor": "1.34", "cni": "calico", "runtime": "containerd", "endpoint": c.endpoint, "family": c.family,
				"etcd": "internal", "registry": "none", "proxy": "off", "more": "no"}, "--set", "kubernetes.control_plane_endpoint.external.address=10.0.8.8")
			if got := serviceHost(fleet); got != c.want {
				t.Errorf("the API server is at %q, want %q", got, c.want)
			}
		})
	}
}

// serviceHost is the address of the API server that Calico's operator reads.
func serviceHost(fleet *simulated.Fleet) string {
	for _, call := range fleet.Calls() {
		if strings.HasSuffix(call.Task, "Create Calico API server endpoint") {
			definition, _ := call.Args.Get("definition")
			data, _ := definition.(*value.Dict).Get("data")
			return data.(*value.Dict).String("KUBERNETES_SERVICE_HOST")
		}
	}
	return ""
}

// cri-dockerd hands Pods one address unless it is asked for two.
func TestDockerHandsOutBothAddresses(t *testing.T) {
	for family, want := range map[string]bool{"v4": false, "v6": false, "dual": true} {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			fleet := created(t, cluster{"minor": "1.34", "cni": "flannel", "runtime": "docker", "endpoint": "local",
				"family": family, "etcd": "internal", "registry": "none", "proxy": "iptables", "more": "no"})
			i := slices.IndexFunc(fleet.Files(), func(f simulated.File) bool {
				return f.Path == "/etc/systemd/system/cri-docker.service"
			})
			if i < 0 {
				t.Fatal("cri-dockerd has no unit")
			}
			if text := fleet.Files()[i].Content; strings.Contains(text, " --ipv6-dual-stack\n") != want {
				t.Errorf("dual stack should be %v:\n%s", want, text)
			}
		})
	}
}

package rendered

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kubekey/pkg/value"
	"kubekey/test/simulated"
)

var opened = regexp.MustCompile(`<(?:port port="([^"]+)" protocol="([^"]+)"|protocol value="([^"]+)")/>`)

// What firewalld lets in with system.firewall: open, by the roles of a host and by network plugin: of anyone, and of
// hosts of the cluster.
func TestFirewallLetsInWhatIsNeeded(t *testing.T) {
	const anyone, members = "/etc/firewalld/services/kubekey-anyone.xml", "/etc/firewalld/services/kubekey-members.xml"
	const nodes = "30000-32767/tcp 30000-32767/udp 10256/tcp"
	for name, c := range map[string]struct {
		set  string
		want map[string]string // by host and file
	}{
		"stacked": {"cni.type=none etcd.deployment_type=internal", map[string]string{
			"n1 " + anyone: "6443/tcp " + nodes, "n1 " + members: "2379/tcp 2380/tcp 10250/tcp",
			"n2 " + anyone: nodes, "n2 " + members: "10250/tcp", "registry1 " + anyone: "443/tcp", "registry1 " + members: "",
			"nfs1 " + anyone: "", "nfs1 " + members: "2049/tcp",
		}},
		"ports of the config": {"cni.type=none kubernetes.control_plane_endpoint.port=7443 image_registry.port=5000 " +
			`kubernetes.apiserver.extra_args={"service-node-port-range":"20000-20100"} ` +
			`kubernetes.scheduler.extra_args={"bind-address":"0.0.0.0"}`, map[string]string{
			"n1 " + anyone:  "7443/tcp 20000-20100/tcp 20000-20100/udp 10256/tcp",
			"n1 " + members: "2379/tcp 2380/tcp 10250/tcp 10259/tcp", "registry1 " + anyone: "5000/tcp",
		}},
		"own load balancer": {"cni.type=none kubernetes.control_plane_endpoint.type=external " +
			"kubernetes.control_plane_endpoint.port=7443 kubernetes.control_plane_endpoint.external.address=10.0.9.1",
			map[string]string{"n1 " + anyone: "6443/tcp " + nodes}},
		"keepalived":        {"cni.type=none image_registry.vip.address=10.0.9.9", map[string]string{"registry1 " + members: "vrrp"}},
		"flannel":           {"cni.type=flannel", map[string]string{"n2 " + members: "10250/tcp 8472/udp"}},
		"flannel host-gw":   {"cni.type=flannel cni.flannel.backend=host-gw", map[string]string{"n2 " + members: "10250/tcp"}},
		"flannel wireguard": {"cni.type=flannel cni.flannel.backend=wireguard", map[string]string{"n2 " + members: "10250/tcp 51820-51821/udp"}},
		"calico":            {"cni.type=calico", map[string]string{"n2 " + members: "10250/tcp 5473/tcp 4789/udp"}},
		"calico with BGP":   {"cni.type=calico cni.calico.encapsulation=None", map[string]string{"n2 " + members: "10250/tcp 5473/tcp 179/tcp"}},
		"calico with IPIP":  {"cni.type=calico cni.calico.encapsulation=IPIP", map[string]string{"n2 " + members: "10250/tcp 5473/tcp 179/tcp ipip"}},
		"cilium":            {"cni.type=cilium", map[string]string{"n2 " + members: "10250/tcp 4240/tcp 8472/udp"}},
		"cilium with its values": {`cni.type=cilium cni.cilium.values={"tunnelProtocol":"geneve","hubble":{"enabled":true},"encryption":{"enabled":true,"type":"wireguard"}}`,
			map[string]string{"n2 " + members: "10250/tcp 4240/tcp 6081/udp 4244/tcp 51871/udp"}},
		"kubeovn": {"cni.type=kubeovn", map[string]string{
			"n1 " + members: "2379/tcp 2380/tcp 10250/tcp 6081/udp 6641/tcp 6642/tcp 6643/tcp 6644/tcp",
			"n2 " + members: "10250/tcp 6081/udp",
		}},
		"hybridnet": {"cni.type=hybridnet", map[string]string{
			"n1 " + members: "2379/tcp 2380/tcp 10250/tcp 8472/udp 5473/tcp 9898/tcp", "n2 " + members: "10250/tcp 8472/udp 5473/tcp",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inventory := simulated.Layout{Family: "v4", ControlPlanes: 1, Workers: 1, Etcd: 1, Registries: 1, NFS: true}
			dir := t.TempDir()
			write(t, filepath.Join(dir, "inventory.yaml"), inventory.Inventory())
			fleet := &simulated.Fleet{Record: true, Nodes: inventory.Hosts()}
			args := []string{"run", "playbooks/init_os.yaml", "-i", filepath.Join(dir, "inventory.yaml"), "--workdir",
				filepath.Join(dir, "work"), "--set", "system.firewall=open"}
			for _, set := range strings.Fields(c.set) {
				args = append(args, "--set", set)
			}
			var out bytes.Buffer
			if code := fleet.Run(t.Context(), &out, args...); code != 0 {
				t.Fatalf("exit code %d\n%s", code, out.String())
			}
			got := map[string]string{}
			for _, f := range fleet.Files() {
				var all []string
				for _, m := range opened.FindAllStringSubmatch(f.Content, -1) {
					all = append(all, strings.Trim(m[1]+"/"+m[2]+m[3], "/"))
				}
				got[f.Host+" "+f.Path] = strings.Join(all, " ")
			}
			for at, want := range c.want {
				if ports, ok := got[at]; !ok || ports != want {
					t.Errorf("%s has %q, not %q", at, ports, want)
				}
			}
		})
	}
}

// A firewall is stopped, and started again when the hosts get their previous settings back.
func TestFirewallIsStopped(t *testing.T) {
	inventory := simulated.Layout{Family: "v4", ControlPlanes: 1}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "inventory.yaml"), inventory.Inventory())
	fleet := &simulated.Fleet{Record: true, Nodes: inventory.Hosts()}
	for _, playbook := range []string{"init_os", "delete_cluster"} {
		var out bytes.Buffer
		if code := fleet.Run(t.Context(), &out, "run", "playbooks/"+playbook+".yaml", "-i", filepath.Join(dir, "inventory.yaml"),
			"--workdir", filepath.Join(dir, "work"), "--set", "system.firewall=stop", "-e", "kk_yes=true", "-e",
			"delete_all=true"); code != 0 {
			t.Fatalf("exit code %d\n%s", code, out.String())
		}
	}
	var got []string
	for _, c := range fleet.Calls() {
		if c.Module == "systemd" && c.Args.String("name") == "firewalld" {
			enabled, _ := c.Args.Get("enabled")
			got = append(got, c.Args.String("state")+" "+value.Str(enabled))
		}
	}
	if want := "stopped False, started True"; strings.Join(got, ", ") != want {
		t.Errorf("firewalld is %s, not %s", strings.Join(got, ", "), want)
	}
}

// A host that is deleted is no longer among the addresses that the others let in, also where it was the last one.
func TestFirewallClosesForDeletedNodes(t *testing.T) {
	const addresses = "/etc/firewalld/ipsets/kubekey-ipv4.xml"
	for name, c := range map[string]struct {
		workers int
		delete  string
		want    map[string]string // entries by host, in the end
	}{
		"one of three": {2, `["n3"]`, map[string]string{"n1": "10.0.0.2", "n2": "10.0.0.1"}},
		"the last one": {1, `["n2"]`, map[string]string{"n1": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inventory := simulated.Layout{Family: "v4", ControlPlanes: 1, Workers: c.workers}
			dir := t.TempDir()
			write(t, filepath.Join(dir, "inventory.yaml"), inventory.Inventory())
			fleet := &simulated.Fleet{Record: true, Nodes: inventory.Hosts()}
			for _, args := range [][]string{{"create_cluster"}, {"delete_nodes", "-e", `{"delete_nodes": ` + c.delete + `}`}} {
				args = append([]string{"run", "playbooks/" + args[0] + ".yaml", "-i", filepath.Join(dir, "inventory.yaml"),
					"--workdir", filepath.Join(dir, "work"), "--set", "system.firewall=open", "--set", "cni.type=none",
					"-e", "kk_yes=true"}, args[1:]...)
				var out bytes.Buffer
				if code := fleet.Run(t.Context(), &out, args...); code != 0 {
					t.Fatalf("exit code %d\n%s", code, out.String())
				}
			}
			got := map[string]string{}
			for _, f := range fleet.Files() {
				if f.Path == addresses {
					var all []string
					for _, m := range regexp.MustCompile(`<entry>(.*)</entry>`).FindAllStringSubmatch(f.Content, -1) {
						all = append(all, m[1])
					}
					got[f.Host] = strings.Join(all, " ")
				}
			}
			for host, want := range c.want {
				if got[host] != want {
					t.Errorf("%s lets in %q, not %q", host, got[host], want)
				}
			}
		})
	}
}

package roles

import (
	"strings"
	"testing"
)

const allNodes = `
    kube_control_plane: {hosts: {node1: }}
    kube_worker: {hosts: {node2: , node3: }}
    k8s_cluster: {children: {kube_control_plane: , kube_worker: }}
`

// listing tells what could be left behind: files of /etc with their contents,
// the host name, and the kernel's settings.
const listing = `find /etc -xdev -type f ! -name 'ld.so.cache*' ! -path '/etc/ssl/*' ! -path '/etc/.pwd.lock' | sort | xargs sha256sum
find /etc -xdev ! -type f -printf '%p %y %l\n' | sort
hostname
sysctl net.ipv4.ip_forward net.ipv4.ip_local_reserved_ports net.bridge.bridge-nf-call-iptables`

// The packages are there before, since they stay; so does the folder that all roles share.
const osPackages = `rmdir /etc/kubekey/os /etc/kubekey 2>/dev/null
export DEBIAN_FRONTEND=noninteractive
{ apt-get update -q && apt-get install -q -y --no-install-recommends conntrack ebtables ethtool ipset iptables kmod procps socat tar util-linux tzdata; } >/tmp/apt.log 2>&1 || cat /tmp/apt.log`

func TestOSIsPreparedAndUndone(t *testing.T) {
	p := newProject(t)
	config := "kubernetes: {control_plane_endpoint: {type: haproxy}}\nsystem: {timezone: Europe/Vienna, sysctls: {net.ipv4.tcp_keepalive_time: 600}}\n"
	groups := strings.Replace(allNodes, "node2: , ", "node2: {node_name: worker-two}, ", 1)
	before := make([]string, len(hosts.Hosts))
	for i := range hosts.Hosts {
		on(t, i, osPackages)
		before[i] = on(t, i, listing)
	}

	p.role(t, "os", "main", "k8s_cluster", groups, config).ok()
	for i, want := range []string{hosts.Hosts[0].Address, "127.0.0.1", "127.0.0.1"} {
		got := on(t, i, "getent ahostsv4 lb.kk.local | head -n 1 | cut -d' ' -f1; getent ahostsv4 worker-two | head -n 1 | cut -d' ' -f1; readlink /etc/localtime; sysctl -n net.ipv4.ip_forward net.ipv4.tcp_keepalive_time")
		if want += "\n" + hosts.Hosts[1].Address + "\n/usr/share/zoneinfo/Europe/Vienna\n1\n600"; got != want {
			t.Errorf("node%d:\n%s\nwant\n%s", i+1, got, want)
		}
	}
	if got := on(t, 1, "hostname; cat /etc/hostname"); got != "worker-two\nworker-two" {
		t.Errorf("host name %q", got)
	}
	p.role(t, "os", "main", "k8s_cluster", groups, config).changedNothing()
	p.role(t, "os", "main", "k8s_cluster", groups, config, "--check").changedNothing()

	p.role(t, "os", "delete", "k8s_cluster", groups, config).ok()
	for i := range hosts.Hosts {
		on(t, i, "rmdir /etc/kubekey")
		if after := on(t, i, listing); after != before[i] {
			t.Errorf("node%d differs from before:\n%s", i+1, difference(before[i], after))
		}
	}
	p.role(t, "os", "delete", "k8s_cluster", groups, config).changedNothing()
}

func TestOSRefusesAnUnknownDistribution(t *testing.T) {
	p := newProject(t)
	r := p.role(t, "os", "main", "k8s_cluster", allNodes, "", "-e", "ansible_distribution=Plan9", "-e",
		"ansible_os_family=Plan9", "--limit", "node1")
	if r.code != 2 || !strings.Contains(r.output, "unsupported distribution, its package names are unknown") {
		t.Errorf("exit code %d\n%s", r.code, r.output)
	}
}

// difference is the lines that one of two texts has alone.
func difference(a, b string) string {
	var out []string
	for _, side := range [][3]string{{"-", a, b}, {"+", b, a}} {
		other := map[string]bool{}
		for line := range strings.Lines(side[2] + "\n") {
			other[strings.TrimSpace(line)] = true
		}
		for line := range strings.Lines(side[1] + "\n") {
			if line = strings.TrimSpace(line); !other[line] {
				out = append(out, side[0]+line)
			}
		}
	}
	return strings.Join(out, "\n")
}

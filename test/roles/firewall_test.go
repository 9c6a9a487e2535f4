package roles

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// firewalls has one on node1 and node2: both let in SSH, and node1 a port of the host's own.
var firewalls = []string{
	`apt-get install -q -y --no-install-recommends firewalld nftables socat >/tmp/apt.log 2>&1 || cat /tmp/apt.log
firewall-cmd -q --permanent --add-port=8888/tcp; firewall-cmd -q --reload`,
	`apt-get install -q -y --no-install-recommends ufw socat >/tmp/apt.log 2>&1 || cat /tmp/apt.log
ufw allow 22/tcp >/dev/null; ufw --force enable >/dev/null`,
	`apt-get install -q -y --no-install-recommends socat >/tmp/apt.log 2>&1 || cat /tmp/apt.log`,
}

// listeners answer on ports of a host.
const listeners = `for port in 6443 2379 10250 8888 9999; do
  systemd-run -q --unit="listen-$port" socat "TCP-LISTEN:$port,fork,reuseaddr" EXEC:true
done`

// pod is an address of the Pod range on a host, in a namespace of its own, with routes to those of the others. The
// range is in the subnet of the lab: packets to other addresses get that of this machine, and come from no host of the
// cluster.
const pod = `base=%[1]s i=%[2]d
ip netns add pod; ip link add cali0 type veth peer name eth0 netns pod
ip -n pod address add $base.$((96 + 32 * i + 2))/27 dev eth0; ip -n pod link set eth0 up; ip -n pod link set lo up
ip address add $base.$((96 + 32 * i + 1))/27 dev cali0; ip link set cali0 up
ip -n pod route add default via $base.$((96 + 32 * i + 1))
for to in 1 2 3; do [ $i = $to ] || ip route add $base.$((96 + 32 * to))/27 via $base.1$to; done
ip netns exec pod setsid socat TCP-LISTEN:80,fork,reuseaddr EXEC:true >/dev/null 2>&1 &`

// state is what the firewalls of hosts let in, now and after a boot.
const firewalldState = `for when in "" --permanent; do
  for what in --list-all-zones --list-all-policies --get-services --get-ipsets; do firewall-cmd $when $what; done
done; systemctl is-active firewalld; systemctl is-enabled firewalld; ls /etc/firewalld/*/kubekey* 2>/dev/null || :`
const ufwState = `ufw status verbose; ufw show added; iptables -S ufw-before-input; cat /etc/ufw/before*.rules`

// An active firewall is found. open lets in what the cluster needs and nothing else, and Pods; stop stops it. Deletion
// restores both.
func TestFirewalls(t *testing.T) {
	p := newProject(t)
	subnet := hosts.Hosts[0].Address[:strings.LastIndex(hosts.Hosts[0].Address, ".")]
	pods := subnet + ".128/25"
	for i, script := range firewalls {
		on(t, i, osPackages+"\n"+script)
		on(t, i, listeners)
		on(t, i, fmt.Sprintf(pod, subnet, i+1))
	}
	t.Cleanup(func() {
		for i := range firewalls {
			_, err := hosts.Exec(context.Background(), i, `ip netns pids pod | xargs -r kill; ip netns delete pod; systemctl stop 'listen-*'
ip route | grep -o '^[0-9.]*/27' | while read -r net; do ip route delete "$net"; done; ip link delete cali0
{ ufw --force disable; apt-get purge -q -y firewalld ufw; rm -rf /etc/firewalld /etc/ufw; } >/dev/null 2>&1; :`)
			if err != nil {
				t.Error(err)
			}
		}
	})
	states := []string{firewalldState, ufwState}
	before := []string{on(t, 0, firewalldState), on(t, 1, ufwState)}
	same := func(when string) {
		t.Helper()
		for i, want := range before {
			if after := on(t, i, states[i]); after != want {
				t.Errorf("%s, node%d differs from before:\n%s", when, i+1, difference(want, after))
			}
		}
	}
	config := "kubernetes: {networking: {pod_cidr: " + pods + "}}\ncni: {calico: {encapsulation: IPIP}}\nsystem: {firewall: %s, manage_hostname: false}\n"
	keep, open, stop := fmt.Sprintf(config, "keep"), fmt.Sprintf(config, "open"), fmt.Sprintf(config, "stop")

	found := p.role(t, "precheck", "main", "k8s_cluster", allNodes, keep).output
	for _, want := range []string{
		"firewalld is active (zone public) and does not let in 6443/tcp, 2379/tcp, 2380/tcp, 10250/tcp, 5473/tcp, 179/tcp, ipip, everything from Pods: " + pods,
		"ufw is active and does not let in 10250/tcp, 5473/tcp, 179/tcp, everything from Pods: " + pods,
	} {
		if !strings.Contains(found, want) {
			t.Errorf("no finding %q\n%s", want, found)
		}
	}
	if got := strings.Count(found, "- os: firewall"); got != 2 {
		t.Errorf("%d findings\n%s", got, found)
	}
	for i := range firewalls[:2] {
		if reaches(t, 2, i, 10250) || machineReaches(i, 10250) {
			t.Errorf("node%d lets in 10250 before", i+1)
		}
	}
	p.role(t, "firewall", "set", "k8s_cluster", allNodes, open, "--check").ok()
	same("after check mode")

	p.role(t, "os", "main", "k8s_cluster", allNodes, open).ok()
	for _, c := range []struct {
		host, port       int
		members, machine bool
	}{
		{0, 6443, true, true}, {0, 2379, true, false}, {0, 10250, true, false}, {0, 8888, true, true}, {0, 9999, false, false},
		{1, 6443, false, false}, {1, 2379, false, false}, {1, 10250, true, false}, {1, 9999, false, false},
	} {
		if got := reaches(t, 2, c.host, c.port); got != c.members {
			t.Errorf("node3 reaches port %d of node%d: %v", c.port, c.host+1, got)
		}
		if got := machineReaches(c.host, c.port); got != c.machine {
			t.Errorf("a machine that is no member reaches port %d of node%d: %v", c.port, c.host+1, got)
		}
	}
	for from := range firewalls {
		for to := range firewalls {
			dial := fmt.Sprintf(`bash -c '</dev/tcp/%s.%d/80'`, subnet, 128+32*to+2)
			if out := on(t, from, "ip netns exec pod timeout 3 "+dial+" 2>&1 || :"); out != "" {
				t.Errorf("the Pod of node%d does not reach that of node%d: %s", from+1, to+1, out)
			}
			if out := on(t, from, "timeout 3 "+dial+" 2>&1 || echo fails"); out != "" {
				t.Errorf("node%d does not reach the Pod of node%d: %s", from+1, to+1, out)
			}
		}
	}
	if out := on(t, 1, "iptables -S ufw-before-input | grep -c -e '-p ipencap' -e '-p 4' -e '-p ipv4'"); out != "2" {
		t.Errorf("%s rules for IP in IP in ufw, not 2", out)
	}
	p.role(t, "firewall", "set", "k8s_cluster", allNodes, open).changedNothing()
	p.role(t, "firewall", "set", "k8s_cluster", allNodes, open, "--check").changedNothing()
	if found := p.role(t, "precheck", "main", "k8s_cluster", allNodes, keep).output; strings.Contains(found, "- os: firewall") {
		t.Errorf("ports that are open are a finding\n%s", found)
	}

	// A worker leaves: its rules are removed.
	two := strings.Replace(allNodes, ", node3: ", "", 1)
	p.role(t, "firewall", "set", "k8s_cluster", two, open).ok()
	for i := range firewalls[:2] {
		if reaches(t, 2, i, 10250) || !reaches(t, 1-i, i, 10250) {
			t.Errorf("node%d lets in 10250 from a host that left, or not from one that is a member", i+1)
		}
	}
	p.role(t, "firewall", "set", "k8s_cluster", two, open).changedNothing()

	// The last other host leaves, and is still in the inventory: a set of addresses remains that has none.
	alone := []string{"--limit", "node1", "-e", `{"firewall_gone": ["node2", "node3"]}`}
	p.role(t, "firewall", "set", "k8s_cluster", allNodes, open, alone...).ok()
	if reaches(t, 1, 0, 10250) || !reaches(t, 1, 0, 6443) {
		t.Error("node1 lets in 10250 from a host that left, or does not let in everyone at 6443")
	}
	p.role(t, "firewall", "set", "k8s_cluster", allNodes, open, alone...).changedNothing()
	p.role(t, "os", "delete", "k8s_cluster", allNodes, open).ok()
	same("after deletion")
	p.role(t, "firewall", "delete", "k8s_cluster", allNodes, open).changedNothing()

	for i := range firewalls {
		on(t, i, "mkdir -p /etc/kubekey/os")
	}
	p.role(t, "firewall", "set", "k8s_cluster", allNodes, stop).ok()
	for i := range firewalls[:2] {
		if !reaches(t, 2, i, 9999) {
			t.Errorf("node%d has a firewall that was stopped", i+1)
		}
	}
	p.role(t, "firewall", "set", "k8s_cluster", allNodes, stop).changedNothing()
	p.role(t, "firewall", "delete", "k8s_cluster", allNodes, stop).ok()
	same("after deletion of what was stopped")
}

// reaches says whether a host connects to a port of another.
func reaches(t *testing.T, from, to, port int) bool {
	t.Helper()
	dial := fmt.Sprintf("timeout 2 bash -c '</dev/tcp/%s/%d' 2>/dev/null && echo yes || echo no", hosts.Hosts[to].Address, port)
	return on(t, from, dial) == "yes"
}

// machineReaches says whether this machine, which is no member of the cluster, connects to a port of a host.
func machineReaches(to, port int) bool {
	c, err := net.DialTimeout("tcp", net.JoinHostPort(hosts.Hosts[to].Address, fmt.Sprint(port)), 2*time.Second)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

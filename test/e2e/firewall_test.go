package e2e

import (
	"strings"
	"testing"

	"kubekey/pkg/value"
)

// newFirewallTarget is a host without rules, before the test and after it: what one firewall
// leaves behind, as ufw does with its chains, the test of another would find.
func newFirewallTarget(t *testing.T) target {
	t.Helper()
	g := newTarget(t)
	const bare = `
for program in iptables ip6tables; do
  for table in filter nat mangle raw; do
    $program -t $table -F
    $program -t $table -X
  done
  for chain in INPUT FORWARD OUTPUT; do
    $program -P $chain ACCEPT
  done
done 2>/dev/null
true`
	g.sh(bare)
	t.Cleanup(func() { g.sh(bare) })
	return g
}

func TestIptables(t *testing.T) {
	g := newFirewallTarget(t)
	web := []any{"chain", "INPUT", "protocol", "tcp", "destination_ports", []any{"80", "443"}, "ctstate", "NEW", "jump",
		"ACCEPT", "comment", "it's the web"}
	first, _ := g.twice("iptables", web...)
	g.sees("iptables -S INPUT | tail -n 1", `-A INPUT -p tcp -m multiport --dports 80,443 -m conntrack --ctstate NEW -m comment --comment "it\'s the web" -j ACCEPT`)
	if dataOf(first, "chain") != "INPUT" || len(first.Diff) != 1 {
		t.Errorf("got %s, diff %+v", value.Repr(first.Data), first.Diff)
	}
	g.twice("iptables", "chain", "INPUT", "source", "!10.77.0.0/16", "protocol", "udp", "destination_port", 53, "jump",
		"DROP", "action", "insert", "rule_num", 1)
	g.sees("iptables -S INPUT | sed -n 2p", "-A INPUT ! -s 10.77.0.0/16 -p udp -m udp --dport 53 -j DROP")
	g.twice("iptables", append(web, "state", "absent")...)
	g.sees("iptables -S INPUT | grep -c web", "0")
	g.twice("iptables", "table", "nat", "chain", "PREROUTING", "protocol", "tcp", "destination_port", "80", "jump",
		"REDIRECT", "to_ports", 8080)
	g.twice("iptables", "chain", "APP", "chain_management", true, "ip_version", "both")
	g.sees("iptables -S APP; ip6tables -S APP", "-N APP\n-N APP")
	g.twice("iptables", "chain", "APP", "jump", "RETURN")
	if r := g.run("iptables", "chain", "APP", "flush", true); !r.Changed {
		t.Errorf("a flush did not count: %+v", r)
	}
	g.twice("iptables", "chain", "APP", "chain_management", true, "ip_version", "both", "state", "absent")
	g.twice("iptables", "chain", "FORWARD", "policy", "DROP")
	g.sees("iptables -S FORWARD", "-P FORWARD DROP")
	g.same("iptables", "chain", "INPUT", "jump", "NOSUCH", "state", "absent")
	g.fails("rejects the rule", "iptables", "chain", "INPUT", "protocol", "nonsense", "jump", "ACCEPT")
	g.fails("append the rule", "iptables", "chain", "NOSUCH", "jump", "ACCEPT")
	g.twice("iptables", "chain", "APP", "chain_management", true, "jump", "RETURN")
	g.fails("policy", "iptables", "chain", "NOSUCH", "policy", "DROP")
}

func TestUFW(t *testing.T) {
	g := newFirewallTarget(t)
	g.needs("ufw")
	t.Cleanup(func() { g.sh("ufw --force reset >/dev/null; rm -f /etc/ufw/*.20*; true") })
	first, _ := g.twice("ufw", "rule", "limit", "port", "22", "proto", "tcp", "comment", "our SSH")
	if value.Repr(dataOf(first, "commands")) == "[]" {
		t.Errorf("got %s", value.Repr(first.Data))
	}
	g.twice("ufw", "rule", "allow", "proto", "tcp", "src", "10.77.0.0/16", "port", "2379,2380")
	g.sees("ufw show added | tail -n +2", "ufw limit 22/tcp comment 'our SSH'\nufw allow from 10.77.0.0/16 to any port 2379,2380 proto tcp")
	g.twice("ufw", "rule", "allow", "proto", "tcp", "src", "10.77.0.0/16", "port", "2379,2380", "delete", true)
	g.twice("ufw", "route", true, "rule", "allow", "interface_in", "host0", "interface_out", "lo")
	g.twice("ufw", "rule", "limit", "port", "22", "proto", "tcp", "delete", true) // the lab's kernel cannot count for it
	g.twice("ufw", "rule", "allow", "port", "22", "proto", "tcp")
	g.twice("ufw", "default", "reject", "direction", "outgoing") // while it is off
	g.twice("ufw", "default", "allow", "direction", "outgoing", "logging", "medium")
	g.fails("Bad port", "ufw", "rule", "allow", "port", "none-such/xyz")
	if out := g.sh("ufw --force enable 2>&1; ufw --force disable >/dev/null 2>&1; true"); strings.Contains(out, "ERROR") {
		t.Skip("the host's kernel does not take the rules that ufw itself has: " + out)
	}
	_, second := g.twice("ufw", "state", "enabled", "default", "deny", "logging", "low")
	if !strings.Contains(second.Msg, "Status: active") || !strings.Contains(second.Msg, "Logging: on (low)") {
		t.Errorf("msg is %q", second.Msg)
	}
	g.twice("ufw", "default", "reject", "direction", "outgoing")
	g.twice("ufw", "default", "allow", "direction", "outgoing")
	if r := g.run("ufw", "state", "reloaded"); !r.Changed {
		t.Error("reloading the rules is no change")
	}
	g.twice("ufw", "rule", "deny", "port", "8080", "insert", 1)
	g.twice("ufw", "rule", "deny", "port", "8080", "delete", true)
	g.twice("ufw", "state", "disabled")
}

func TestFirewalld(t *testing.T) {
	g := newFirewallTarget(t)
	g.needs("firewalld")
	t.Cleanup(func() { g.sh("systemctl stop firewalld; apt-get purge -q -y firewalld >/dev/null 2>&1; true") })
	g.sh("systemctl start firewalld")
	first, _ := g.twice("firewalld", "service", "https", "zone", "public", "permanent", true, "immediate", true, "state",
		"enabled")
	if first.Msg != "Permanent and Non-Permanent(immediate) operation, Changed service https to enabled" ||
		len(first.Diff) != 1 {
		t.Errorf("got %+v", first)
	}
	g.sees("firewall-cmd --query-service=https; firewall-cmd --permanent --query-service=https", "yes\nyes")
	g.twice("firewalld", "service", "https", "permanent", true, "state", "disabled")
	g.sees("firewall-cmd --query-service=https; firewall-cmd --permanent --query-service=https", "yes\nno")
	g.twice("firewalld", "port", "8081/tcp", "state", "enabled")
	g.twice("firewalld", "rich_rule", `rule family="ipv4" source address="192.0.2.0/24" drop`, "permanent", true, "state",
		"enabled")
	g.twice("firewalld", "port_forward", []any{value.NewDict("port", 80, "proto", "tcp", "toport", 8080)}, "state",
		"enabled")
	g.twice("firewalld", "masquerade", true, "state", "enabled", "permanent", true)
	g.twice("firewalld", "masquerade", false, "state", "enabled", "permanent", true)
	g.twice("firewalld", "zone", "cluster", "state", "present")
	g.twice("firewalld", "zone", "cluster", "target", "DROP", "state", "present")
	g.twice("firewalld", "zone", "cluster", "source", "10.88.0.0/16", "permanent", true, "state", "enabled")
	g.twice("firewalld", "zone", "cluster", "state", "absent")
	g.fails("INVALID_SERVICE", "firewalld", "service", "no-such-service", "state", "enabled")
	g.fails("INVALID_ZONE", "firewalld", "zone", "nowhere", "service", "http", "state", "enabled")
	g.sh("systemctl stop firewalld")
	g.fails("firewall is not currently running", "firewalld", "service", "http", "state", "enabled")
	g.twice("firewalld", "service", "http", "state", "enabled", "offline", true)
}

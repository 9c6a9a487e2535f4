package apps_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// leftovers are what the network plugins make, beside what a host has of its own.
const leftovers = `
set -eu
ip link set lo up
ip link add cni0 type bridge
ip link add br-own type bridge
ip link add cali0123456789a type bridge
ip link add calico-own type bridge
iptables -t nat -N FLANNEL-POSTRTG
iptables -t nat -A POSTROUTING -s 192.0.2.0/24 -j MASQUERADE
iptables -t nat -A POSTROUTING -m comment --comment "flanneld masq $(true)" -j FLANNEL-POSTRTG
iptables -t nat -A POSTROUTING -s 198.51.100.0/24 -j FLANNEL-POSTRTG
iptables -t nat -A POSTROUTING -s 203.0.113.0/24 -j MASQUERADE
iptables -t nat -A FLANNEL-POSTRTG -s 10.0.0.0/8 -j RETURN
iptables -N OWN-FLANNEL-
iptables -A FORWARD -j OWN-FLANNEL-
iptables -N CNI-A
iptables -N CNI-B
iptables -A CNI-A -j CNI-B
iptables -A FORWARD -j CNI-A
`

const listing = `
ls /sys/class/net
iptables -t nat -S
iptables -S
`

// inNamespace runs a script in a network namespace of its own.
func inNamespace(t *testing.T, script string, env ...string) string {
	t.Helper()
	cmd := exec.Command("unshare", "--net", "--mount", "sh", "-c", "mount -t sysfs sys /sys\n"+script)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestOnlyWhatThePluginMadeIsRemoved(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making network namespaces takes root")
	}
	for _, name := range []string{"unshare", "iptables", "ip"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s", name)
		}
	}
	const script = "../../builtin/roles/cni/files/remove_network.sh"
	env := []string{"INTERFACES=flannel.1 cni0 cali???????????", "CHAINS=FLANNEL- CNI-", "TABLES="}
	out := inNamespace(t, leftovers+"sh "+script+" > /dev/null; sh "+script+"; echo ---"+listing, env...)
	second, left, _ := strings.Cut(out, "---")
	if second != "" {
		t.Errorf("a second run removes %s", second)
	}
	for _, gone := range []string{"cni0", "cali0123456789a", "-N FLANNEL-", "-j FLANNEL-", "CNI-"} {
		if strings.Contains(left, gone) {
			t.Errorf("%s is still there:\n%s", gone, left)
		}
	}
	for _, own := range []string{"br-own", "calico-own", "-s 192.0.2.0/24 -j MASQUERADE",
		"-s 203.0.113.0/24 -j MASQUERADE", "-A FORWARD -j OWN-FLANNEL-"} {
		if !strings.Contains(left, own) {
			t.Errorf("%s is gone:\n%s", own, left)
		}
	}
}

package roles

import (
	"context"
	"strings"
	"testing"
)

// Both managers have settings that take every interface. Neither runs on hosts of the lab otherwise.
const networkManagers = `export DEBIAN_FRONTEND=noninteractive
mkdir -p /etc/NetworkManager/conf.d
printf '[main]\nno-auto-default=*\ndns=none\n[keyfile]\nunmanaged-devices=interface-name:host*\n' >/etc/NetworkManager/conf.d/lab.conf
printf '[Match]\nName=cali* cilium* eth1\n[Network]\nLinkLocalAddressing=no\nConfigureWithoutCarrier=yes\n' >/etc/systemd/network/10-lab.network
{ apt-get update -q && apt-get install -q -y --no-install-recommends network-manager; } >/tmp/apt.log 2>&1 || cat /tmp/apt.log
systemctl unmask -q systemd-networkd.service systemd-networkd.socket
systemctl restart NetworkManager systemd-networkd`

// The state of new interfaces for NetworkManager and for systemd-networkd.
const managed = `ip link delete eth1 2>/dev/null
ip link add cali12345678901 type veth peer name eth1 && ip link set cali12345678901 up && ip link set eth1 up
sleep 1
for second in 1 2 3 4 5 6 7 8 9 10; do
	networkctl list --no-legend cali12345678901 eth1 | grep -q pending || break
	sleep 1
done
for i in cali12345678901 eth1; do
	nmcli device set "$i" managed yes 2>/dev/null || true
	echo "$i $(nmcli -t -f DEVICE,STATE device | grep "^$i:" | cut -d: -f2) $(networkctl list --no-legend "$i" | awk '{print $5}')"
done`

func TestNetworkManagersLeaveInterfacesOfTheCluster(t *testing.T) {
	p := newProject(t)
	config := "cni: {type: calico}\n"
	on(t, 0, osPackages)
	before := on(t, 0, networkManagers+"\n"+listing)
	t.Cleanup(func() {
		undo := `ip link delete eth1; systemctl stop NetworkManager systemd-networkd.service systemd-networkd.socket
systemctl mask -q systemd-networkd.service systemd-networkd.socket
rm /etc/NetworkManager/conf.d/lab.conf /etc/systemd/network/10-lab.network
DEBIAN_FRONTEND=noninteractive apt-get purge -q -y network-manager >/dev/null`
		if _, err := hosts.Exec(context.WithoutCancel(t.Context()), 0, undo); err != nil {
			t.Error(err)
		}
	})
	taken := on(t, 0, managed)
	if strings.Contains(taken, "unmanaged") {
		t.Fatalf("they do not manage interfaces on this host:\n%s", taken)
	}

	p.role(t, "os", "main", "k8s_cluster", oneNode, config).ok()
	want := "cali12345678901 unmanaged unmanaged\neth1 " + strings.TrimPrefix(strings.Split(taken, "\n")[1], "eth1 ")
	if got := on(t, 0, managed); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := on(t, 0, "NetworkManager --print-config | grep ^unmanaged-devices"); !strings.Contains(got, "=interface-name:host*,interface-name:cali*,") {
		t.Errorf("NetworkManager has the list %s", got)
	}
	p.role(t, "os", "main", "k8s_cluster", oneNode, config).changedNothing()
	p.role(t, "os", "main", "k8s_cluster", oneNode, config, "--check").changedNothing()

	p.role(t, "os", "delete", "k8s_cluster", oneNode, config).ok()
	if got := on(t, 0, managed); got != taken {
		t.Errorf("after deletion\n%s\nwant\n%s", got, taken)
	}
	if after := on(t, 0, "rmdir /etc/kubekey; "+listing); after != before {
		t.Errorf("the host differs from before:\n%s", difference(before, after))
	}
	p.role(t, "os", "delete", "k8s_cluster", oneNode, config).changedNothing()
}

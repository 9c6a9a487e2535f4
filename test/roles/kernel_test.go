package roles

import (
	"context"
	"os"
	"strings"
	"testing"

	"kubekey/test/lab"
)

// ownKernels brings up hosts that have a kernel of their own each, for what the kernel of the machine lacks or shares.
func ownKernels(t *testing.T, n int) *lab.Lab {
	t.Helper()
	if hosts == nil {
		t.Skip("needs the lab: " + skipReason)
	}
	name := hosts.Name + "-uml"
	t.Cleanup(func() {
		if err := lab.Down(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	options := map[int]lab.HostOptions{}
	for i := range n {
		options[i] = lab.HostOptions{OwnKernel: true}
	}
	l, err := lab.Up(t.Context(), lab.Options{Name: name, N: n, Hosts: options, Log: os.Stderr, Packages: []string{
		"chrony", "conntrack", "ebtables", "ethtool", "fdisk", "ipset", "lvm2", "nfs-common", "nfs-kernel-server", "socat",
		"tzdata", "udev", "xfsprogs"}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// kernelState is what the role os changes in the kernel, apart from modules: they stay loaded.
const kernelState = `sysctl -n net.ipv4.ip_forward fs.inotify.max_user_instances kernel.panic vm.max_map_count vm.overcommit_memory
swapon --show=NAME --noheadings
cat /etc/fstab
readlink /etc/localtime || true`

// TestOwnKernels runs what the kernel of the machine lacks or shares, on two hosts.
func TestOwnKernels(t *testing.T) {
	l := ownKernels(t, 2)
	t.Run("disks", func(t *testing.T) { testDisks(t, l) })
	t.Run("LVM", func(t *testing.T) { testLVM(t, l) })
	t.Run("NFS", func(t *testing.T) { testNFS(t, l) })
	t.Run("repository image", func(t *testing.T) { testRepositoryImage(t, l) })
	t.Run("os", func(t *testing.T) { testOSOnAKernel(t, l) })
}

// reboot reboots the first host.
func (p *project) reboot(t *testing.T, groups string) {
	t.Helper()
	p.write(t, "playbooks/reboot.yaml", "- hosts: node1\n  become: true\n  tasks:\n    - reboot: {reboot_timeout: 120}\n")
	p.kk(t, "reboot", groups, "").ok()
}

// A host with a kernel of its own gets all settings of the role os: they hold, also after a reboot, and are undone.
func testOSOnAKernel(t *testing.T, l *lab.Lab) {
	p := newProject(t)
	p.lab = l
	config := "kubernetes: {kube_proxy: {mode: ipvs}}\nsystem: {timezone: Europe/Vienna}\n"
	onHost(t, l, 0, "systemctl disable --now --quiet chrony")
	onHost(t, l, 0, `set -e
dd if=/dev/zero of=/var/swap bs=1M count=64 status=none; chmod 600 /var/swap; mkswap -q /var/swap
echo '/var/swap none swap sw 0 0' >>/etc/fstab; swapon -a`)
	before := onHost(t, l, 0, kernelState)
	if !strings.Contains(before, "/var/swap\n") {
		t.Fatalf("no swap before:\n%s", before)
	}
	p.role(t, "os", "main", "k8s_cluster", oneNode, config).ok()
	holds := func() {
		t.Helper()
		got := onHost(t, l, 0, `swapon --show=NAME --noheadings
grep -c '^[^#].*swap' /etc/fstab || true
lsmod | grep -o -e '^ip_vs_rr' -e '^ip_vs_sh' -e '^br_netfilter' -e '^overlay' | sort
readlink /etc/localtime
systemctl is-active chrony
grep -v '^#' /etc/sysctl.d/99-kk.conf | while IFS='=' read -r k v; do
  k=$(echo $k) v=$(echo $v); now=$(sysctl -n "$k"); [ "$now" = "$v" ] || echo "$k is $now, not $v"
done`)
		want := "0\nbr_netfilter\nip_vs_rr\nip_vs_sh\noverlay\n/usr/share/zoneinfo/Europe/Vienna\nactive"
		if got != want {
			t.Errorf("the host has\n%s\nwant\n%s", got, want)
		}
	}
	holds()
	p.role(t, "os", "main", "k8s_cluster", oneNode, config).changedNothing()

	p.reboot(t, oneNode)
	holds()
	p.role(t, "os", "main", "k8s_cluster", oneNode, config).changedNothing()

	p.role(t, "os", "delete", "k8s_cluster", oneNode, config).ok()
	if after := onHost(t, l, 0, kernelState); after != before {
		t.Errorf("the host differs from before:\n%s", difference(before, after))
	}
	p.role(t, "os", "delete", "k8s_cluster", oneNode, config).changedNothing()
}

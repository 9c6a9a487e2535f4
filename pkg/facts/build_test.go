package facts

import (
	"testing"

	"kubekey/pkg/value"
)

func TestDistribution(t *testing.T) {
	cases := []struct {
		name     string
		sections sections
		want     string // name, family, version, major, release
	}{
		{"ubuntu", sections{"os-release": "NAME=\"Ubuntu\"\nVERSION=\"22.04.4 LTS (Jammy Jellyfish)\"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"22.04\"\nVERSION_CODENAME=jammy\n"}, "Ubuntu Debian 22.04 22 jammy"},
		{"debian", sections{"os-release": "ID=debian\nVERSION_ID=\"12\"\nVERSION=\"12 (bookworm)\"",
			"debian_version": "12.5\n"}, "Debian Debian 12.5 12 bookworm"},
		{"debian testing", sections{"os-release": "ID=debian\nVERSION_CODENAME=trixie", "debian_version": "trixie/sid\n"},
			"Debian Debian NA NA trixie"},
		{"centos 7", sections{"os-release": "ID=\"centos\"\nVERSION_ID=\"7\"\nVERSION=\"7 (Core)\"",
			"centos-release": "CentOS Linux release 7.9.2009 (Core)\n"}, "CentOS RedHat 7.9 7 Core"},
		{"rhel", sections{"os-release": "ID=\"rhel\"\nVERSION_ID=\"9.4\"\nVERSION=\"9.4 (Plow)\""},
			"RedHat RedHat 9.4 9 Plow"},
		{"rocky", sections{"os-release": "ID=rocky\nVERSION_ID='8.9'\nVERSION=\"8.9 (Green Obsidian)\""},
			"Rocky RedHat 8.9 8 Green Obsidian"},
		{"openEuler", sections{"os-release": "ID=\"openEuler\"\nVERSION_ID=\"22.03\"\nVERSION=\"22.03 (LTS-SP3)\""},
			"openEuler RedHat 22.03 22 LTS-SP3"},
		{"kylin", sections{"os-release": "ID=\"kylin\"\nVERSION_ID=\"V10\"\nVERSION=\"V10 (Tercel)\""},
			"Kylin Linux Advanced Server RedHat V10 V10 Tercel"},
		{"uos", sections{"os-release": "ID=uos\nVERSION_ID=\"20\"\nVERSION_CODENAME=eagle"}, "Uos Debian 20 20 eagle"},
		{"uos server", sections{"os-release": "NAME=\"UnionTech OS Server 20\"\nID=\"uos\"\nVERSION_ID=\"20\"\nVERSION=\"20\"\n" +
			"PLATFORM_ID=\"platform:uel20\"\nVERSION_CODENAME=\"fuyu\""}, "UnionTech RedHat 20 20 fuyu"},
		{"euleros", sections{"os-release": "ID=\"euleros\"\nVERSION_ID=\"2.0\"\nVERSION=\"2.0 (SP12)\""},
			"EulerOS RedHat 2.0 2 SP12"},
		{"tencentos", sections{"os-release": "ID=\"tencentos\"\nVERSION_ID=\"3.1\"\nVERSION=\"3.1 (Final)\""},
			"TencentOS RedHat 3.1 3 Final"},
		{"alpine", sections{"os-release": "ID=alpine\nVERSION_ID=3.19.1\nNAME=\"Alpine Linux\""},
			"Alpine Alpine 3.19.1 3 NA"},
		{"suse", sections{"os-release": "ID=\"opensuse-leap\"\nVERSION_ID=\"15.5\""}, "openSUSE Leap Suse 15.5 15 NA"},
		{"unknown but like one", sections{"os-release": "NAME=\"Foo OS\"\nID=foo\nID_LIKE=\"bar rhel fedora\"\nVERSION_ID=1"},
			"Foo RedHat 1 1 NA"},
		{"unknown", sections{"os-release": "NAME=Void\nID=void\nVERSION=\"3 x\""}, "Void Void 3 3 NA"},
		{"nothing", sections{}, "Linux Linux NA NA NA"},
		{"darwin", sections{"uname": "Darwin\nmac\n23.1.0\narm64\nv\n", "darwin": "14.1\n17179869184\n8\n"},
			"MacOSX Darwin 14.1 14 23.1.0"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := value.NewDict()
			distribution(f, c.sections)
			got := ""
			for _, k := range []string{"distribution", "os_family", "distribution_version", "distribution_major_version",
				"distribution_release"} {
				got += " " + f.String(k)
			}
			if got != " "+c.want {
				t.Errorf("got %q, want %q", got, " "+c.want)
			}
		})
	}
}

const links = "link=eth0\nmac=02:00:00:00:00:01\nmtu=1500\nstate=up\nflags=0x1003\nkind=1\nspeed=1000\npciid=virtio0\n" +
	"link=br-x\nkind=1\nbridge=1\nbridgeid=8000.1\nstp=1\nmember=eth1\nstate=down\nlink=lo\nkind=772\nstate=unknown\nflags=0x9\nlink=bond0\nbonding=1\nlink=tun0\nkind=768\nlink=can0\nkind=280\n"

const routes = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n" +
	"eth1 00000000 0100000A 0003 0 0 200 00000000 0 0 0\n" +
	"eth0 00000000 010200C0 0003 0 0 100 00000000 0 0 0\n" +
	"eth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"

func TestNetworkWithIP(t *testing.T) {
	f := value.NewDict()
	network(f, sections{"links": links, "route": routes,
		"addr": "1: lo    inet 127.0.0.1/8 scope host lo\n2: eth0    inet 192.0.2.7/24 brd 192.0.2.255 scope global eth0\n" +
			"2: eth0    inet 192.0.2.9/32 scope global eth0\n2: eth0    inet6 fe80::1/64 scope link\n9: gone@if3    inet 10.1.1.1/24 scope global gone\n",
		"if_inet6": "fd000000000000000000000000000002 02 40 00 80 eth0\nfe800000000000000000000000000001 02 40 20 80 eth0\nshort\n",
		"route6":   "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 0 0 00000003 eth0\n",
		"src":      "8.8.8.8 via 192.0.2.1 dev eth0 src 192.0.2.9 uid 0\n"})
	want := map[string]any{
		"interfaces":         []any{"eth0", "br-x", "lo", "bond0", "tun0", "can0"},
		"all_ipv4_addresses": []any{"192.0.2.7", "192.0.2.9"},
		"all_ipv6_addresses": []any{"fd00::2", "fe80::1"},
		"br_x": value.NewDict("device", "br-x", "active", false, "mtu", 0, "type", "bridge", "promisc", false,
			"id", "8000.1", "stp", true, "interfaces", []any{"eth1"}),
		"default_ipv4": value.NewDict("gateway", "192.0.2.1", "interface", "eth0", "address", "192.0.2.9", "broadcast", "",
			"netmask", "255.255.255.255",
			"network", "192.0.2.9", "prefix", "32", "macaddress", "02:00:00:00:00:01", "mtu", 1500, "type", "ether", "alias",
			"eth0"),
		"default_ipv6": value.NewDict("gateway", "fd00::1", "interface", "eth0", "address", "fd00::2", "prefix", "64",
			"scope", "global",
			"macaddress", "02:00:00:00:00:01", "mtu", 1500, "type", "ether"),
	}
	for k, w := range want {
		if got, _ := f.Get(k); !value.Equal(got, w) {
			t.Errorf("%s:\ngot  %s\nwant %s", k, value.Repr(got), value.Repr(w))
		}
	}
	for name, want := range map[string]string{"bond0": "bonding", "tun0": "tunnel", "can0": "unknown", "lo": "loopback"} {
		v, _ := f.Get(name)
		if got := v.(*value.Dict).String("type"); got != want {
			t.Errorf("%s is a %s, want %s", name, got, want)
		}
	}
}

func TestNetworkWithoutIP(t *testing.T) {
	f := value.NewDict()
	network(f, sections{"links": links, "route": routes,
		"addr": "none\nMain:\n  |-- 127.0.0.1\n    /32 host LOCAL\n  |-- 192.0.2.2\n    /32 host LOCAL\n" +
			"  |-- 192.0.2.255\n    /32 link BROADCAST\nLocal:\n  |-- 192.0.2.2\n    /32 host LOCAL\n"})
	v, _ := f.Get("default_ipv4")
	d := v.(*value.Dict)
	if d.String("address") != "192.0.2.2" || d.String("netmask") != "255.255.255.0" || d.String("gateway") != "192.0.2.1" {
		t.Errorf("got %s", value.Repr(d))
	}
}

func TestHardware(t *testing.T) {
	f := value.NewDict()
	s := sections{
		"cpuinfo": "processor : 0\nphysical id : 0\nsiblings : 4\ncpu cores : 2\n\nprocessor : 1\nphysical id : 1\nsiblings : 4\ncpu cores : 2\n",
		"mounts":  "/dev/sda1 / ext4 rw 0 0\nproc /proc proc rw 0 0\nsrv:/x /mnt/a\\040b nfs rw 0 0\n",
		"statfs":  "4096 1000 500 90 80 /\n512 0 0 0 0 /proc\n",
		"ids":     "../../sda1 /dev/disk/by-id/scsi-2\n../../sda1 /dev/disk/by-id/ata-1\n",
		"masters": "sda1 dm-0\n",
		"loadavg": "0.50 1.25 2.00 1/99 1234\n",
		"vgs":     "  data,1,2,10.00,4.00\n",
		"lvs":     "  logs,data,2.00\n  odd\n",
		"pvs":     "  /dev/sda1,data,10.00,4.00\n",
		"df":      "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/sda1 1000 400 600 40% /\nsrv:/x 10 4 6 40% /mnt/a b\n",
		"uuids":   "../../sda1 /dev/disk/by-uuid/abc\n",
		"block":   "disk=sda\nsectors=104857600\nmodel=Disk X\npart=sda1\npsectors=2048\npstart=1\nholder=dm-0\nscheduler=none [mq-deadline] kyber\n",
		"dmi":     "sys_vendor=QEMU\nchassis_type=3\n",
	}
	processor(f, s)
	mounts(f, s)
	devices(f, s)
	firmware(f, s)
	memory(f, s)
	f.Set("lvm", volumes(s))
	diskLinks := value.NewDict("ids", []any{}, "labels", []any{}, "masters", []any{}, "uuids", []any{})
	partLinks := value.NewDict("ids", []any{"ata-1", "scsi-2"}, "labels", []any{}, "masters", []any{"dm-0"}, "uuids",
		[]any{"abc"})
	want := map[string]any{
		"processor_count": 2, "processor_cores": 2, "processor_threads_per_core": 2, "processor_vcpus": 2,
		"system_vendor": "QEMU", "product_name": "NA",
		"mounts": []any{
			value.NewDict("mount", "/", "device", "/dev/sda1", "fstype", "ext4", "options", "rw", "uuid", "abc", "size_total",
				4096000, "size_available", 2048000,
				"block_size", 4096, "block_total", 1000, "block_available", 500, "block_used", 500, "inode_total", 90,
				"inode_available", 80, "inode_used", 10),
			value.NewDict("mount", "/mnt/a b", "device", "srv:/x", "fstype", "nfs", "options", "rw", "uuid", "N/A",
				"size_total", 10240, "size_available", 6144,
				"block_size", 1024, "block_total", 10, "block_available", 6, "block_used", 4),
		},
		"devices": value.NewDict("sda", value.NewDict("model", "Disk X", "vendor", nil, "removable", "0", "rotational", "0",
			"sectors", "104857600",
			"sectorsize", "512", "size", "50.00 GB", "holders", []any{"dm-0"}, "links", diskLinks, "scheduler_mode",
			"mq-deadline",
			"partitions", value.NewDict("sda1", value.NewDict("uuid", "abc", "links", partLinks, "sectors", "2048", "size",
				"1.00 MB", "start", "1")))),
		"device_links": value.NewDict("ids", value.NewDict("sda1", []any{"ata-1", "scsi-2"}), "labels", value.NewDict(),
			"masters", value.NewDict("sda1", []any{"dm-0"}), "uuids", value.NewDict("sda1", []any{"abc"})),
		"form_factor": "Desktop", "loadavg": value.NewDict("1m", 0.5, "5m", 1.25, "15m", 2.0),
		"lvm": value.NewDict("vgs", value.NewDict("data",
			value.NewDict("num_pvs", "1", "num_lvs", "2", "size_g", "10.00", "free_g", "4.00")),
			"lvs", value.NewDict("logs", value.NewDict("vg", "data", "size_g", "2.00")),
			"pvs", value.NewDict("/dev/sda1", value.NewDict("vg", "data", "size_g", "10.00", "free_g", "4.00"))),
	}
	for k, w := range want {
		if got, _ := f.Get(k); !value.Equal(got, w) {
			t.Errorf("%s:\ngot  %s\nwant %s", k, value.Repr(got), value.Repr(w))
		}
	}
}

func TestVirtualization(t *testing.T) {
	cases := []struct {
		s    sections
		want string
	}{
		{sections{"virt": "systemd=kvm\n"}, "kvm guest"},
		{sections{"virt": "systemd=vmware\n"}, "VMware guest"},
		{sections{"virt": "systemd=none\nkvm_host=1\n"}, "kvm host"},
		{sections{"virt": "docker=1\n"}, "docker guest"},
		{sections{"cgroup": "0::/kubepods/x"}, "docker guest"},
		{sections{"virt": "podman=1\n"}, "podman guest"},
		{sections{"virt": "openvz=1\n"}, "openvz guest"},
		{sections{"cgroup": "1:name:/lxc/a"}, "lxc guest"},
		{sections{"init_environ": "container=systemd-nspawn\n"}, "systemd-nspawn guest"},
		{sections{"virt": "sys_vendor=Microsoft Corporation\nproduct_name=Virtual Machine\n"}, "VirtualPC guest"},
		{sections{"virt": "hypervisor=1\n"}, "kvm guest"},
		{sections{}, "NA NA"},
	}
	for _, c := range cases {
		kind, role := virtualKind(c.s)
		if got := kind + " " + role; got != c.want {
			t.Errorf("%v: got %s, want %s", c.s, got, c.want)
		}
	}
}

func TestSystemDetails(t *testing.T) {
	f := value.NewDict()
	s := sections{
		"uname":       "Linux\nn1.example.org\n6.1\naarch64\n#1\n",
		"fqdn":        "n1.example.org\n",
		"date":        "1700000000\n+0530\nIST\n",
		"init":        "comm=init\n",
		"pkg":         "dnf\nyum\n",
		"env":         "A=1\nfn=() {\n  x\n}\nB=2\n",
		"resolv":      "# c\nnameserver 10.0.0.1\nnameserver 10.0.0.2\nsearch a b\ndomain d\noptions ndots:5 rotate\n",
		"lsb-release": "DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=22.04\n",
		"lsb":         "Distributor ID:\tDebian\n",
		"cmdline":     "quiet console=tty0 root=/dev/sda1 console=ttyS0 console=ttyS1\n",
		"caps":        "Current: =ep cap_a,cap_b-ep\nBounding set =x\n",
		"python":      "/usr/bin/python3\nPython 3.11.2\n",
		"glibc":       "glibc 2.31\n",
		"storage":     "hostnqn=nqn.x\nInitiatorName=iqn.y\nwwn=0x10\nwwn=0x11\n",
		"hostkeys":    "/etc/ssh/ssh_host_ed25519_key.pub ssh-ed25519 AAAA root@x\n",
		"selinux":     "enforce=1\npolicyvers=33\npresent=1\nSELINUX=enforcing\nSELINUXTYPE=targeted\n",
		"security":    "fips=1\napparmor=Y\nchroot=1\n",
	}
	platform(f, s)
	dateTime(f, s)
	system(f, s)
	security(f, s)
	storage(f, s)
	want := map[string]any{
		"hostname": "n1", "domain": "example.org", "fqdn": "n1.example.org", "userspace_bits": "64",
		"service_mgr": "sysvinit", "pkg_mgr": "dnf", "glibc_version": "2.31",
		"env": value.NewDict("A", "1", "fn", "() {\n  x\n}", "B", "2"),
		"dns": value.NewDict("nameservers", []any{"10.0.0.1", "10.0.0.2"}, "search", []any{"a", "b"},
			"domain", "d", "options", value.NewDict("ndots", "5", "rotate", true)),
		"lsb":                         value.NewDict("id", "Debian", "release", "22.04", "major_release", "22"),
		"ssh_host_key_ed25519_public": "AAAA", "fips": true, "is_chroot": true,
		"cmdline":      value.NewDict("quiet", true, "console", "ttyS1", "root", "/dev/sda1"),
		"proc_cmdline": value.NewDict("quiet", true, "console", []any{"tty0", "ttyS0", "ttyS1"}, "root", "/dev/sda1"),
		"iscsi_iqn":    "iqn.y", "hostnqn": "nqn.x", "fibre_channel_wwn": []any{"10", "11"},
		"system_capabilities_enforced": "True", "system_capabilities": []any{"ep cap_a", "cap_b-ep"},
		"python_version": "3.11.2",
		"python": value.NewDict("executable", "/usr/bin/python3", "has_sslcontext", true, "type", "cpython",
			"version", value.NewDict("major", 3, "minor", 11, "micro", 2, "releaselevel", "final", "serial", 0),
			"version_info", []any{3, 11, 2, "final", 0}),
		"apparmor": value.NewDict("status", "enabled"),
		"selinux": value.NewDict("status", "enabled", "mode", "enforcing", "policyvers", "33", "config_mode", "enforcing",
			"type", "targeted"),
	}
	for k, w := range want {
		if got, _ := f.Get(k); !value.Equal(got, w) {
			t.Errorf("%s:\ngot  %s\nwant %s", k, value.Repr(got), value.Repr(w))
		}
	}
	v, _ := f.Get("date_time")
	if d := v.(*value.Dict); d.String("iso8601") != "2023-11-14T22:13:20Z" || d.String("hour") != "03" ||
		d.String("tz_offset") != "+0530" {
		t.Errorf("date_time: %s", value.Repr(d))
	}
	for init, want := range map[string]string{"systemd=1": "systemd", "openrc=1": "openrc", "comm=odd": "service"} {
		if got := serviceManager((sections{"init": init}).pairs("init")); got != want {
			t.Errorf("%s: got %s, want %s", init, got, want)
		}
	}
}

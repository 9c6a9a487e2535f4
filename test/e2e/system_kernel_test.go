package e2e

import (
	"strings"
	"testing"

	"kubekey/pkg/value"
)

func TestHostname(t *testing.T) {
	g := newTarget(t)
	was := g.sh("hostname")
	t.Cleanup(func() { g.sh("hostnamectl set-hostname " + was) })
	first, _ := g.twice("hostname", "name", "box.example.org")
	g.sees("hostname; cat /etc/hostname", "box.example.org\nbox.example.org")
	for key, want := range map[string]string{"ansible_hostname": "box", "ansible_nodename": "box.example.org",
		"ansible_fqdn": "box.example.org", "ansible_domain": "example.org"} {
		if got, _ := first.Facts.Get(key); got != want {
			t.Errorf("fact %s is %v, not %s", key, got, want)
		}
	}
	if len(first.Diff) != 1 || !strings.Contains(first.Diff[0].Before.(string), "hostname = "+was+"\n") {
		t.Errorf("diff %+v", first.Diff)
	}
	g.twice("hostname", "name", "box2", "use", "generic")
	g.sees("hostname; cat /etc/hostname; stat -c %a /etc/hostname", "box2\nbox2\n644")
	g.fails("is not a host name", "hostname", "name", "a b")
	g.fails("is not a host name", "hostname", "name", "-F")
}

func TestSysctl(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("rm -f /etc/sysctl.d/90-kk.conf") })
	file := "/etc/sysctl.d/90-kk.conf"
	g.sh("sysctl -q -w net.ipv4.ip_forward=0 net.ipv4.ip_local_port_range='32768 60999'; printf '# mine\\n net.ipv4.ip_forward = 0 # x\\nnet.core.somaxconn=128' >" + file)
	first, _ := g.twice("sysctl", "name", "net.ipv4.ip_forward", "value", true, "sysctl_file", file)
	g.sees("sysctl -n net.ipv4.ip_forward; cat "+file, "1\n# mine\nnet.ipv4.ip_forward=1\nnet.core.somaxconn=128")
	if len(first.Diff) != 1 || first.Diff[0].BeforeHeader != file {
		t.Errorf("diff %+v", first.Diff)
	}
	g.twice("sysctl", "name", "net.ipv4.ip_local_port_range", "value", "20000   50000", "sysctl_file", file, "reload",
		false)
	g.sees("sysctl -n net.ipv4.ip_local_port_range | tr '\\t' ' '", "32768 60999")
	g.twice("sysctl", "name", "net.ipv4.ip_local_port_range", "value", "20000 50000", "sysctl_file", file, "sysctl_set",
		true)
	g.sees("sysctl -n net.ipv4.ip_local_port_range | tr '\\t' ' '", "20000 50000")
	g.sh("sysctl -q -w net.ipv4.ip_local_port_range='32768 60999'")
	g.twice("sysctl", "name", "net.ipv4.ip_local_port_range", "value", "20000 50000", "sysctl_file", file, "sysctl_set",
		true)
	g.sh("sysctl -q -w net.ipv4.ip_forward=0")
	g.twice("sysctl", "name", "net.ipv4.ip_forward", "value", 1, "sysctl_file", file, "system_wide", true)
	g.sees("sysctl -n net.ipv4.ip_forward", "1")
	g.fails("setting kernel.pid_max failed", "sysctl", "name", "kernel.pid_max", "value", "x", "sysctl_file", file,
		"sysctl_set", true)
	g.sees("grep pid_max "+file+" || :", "")
	g.fails("name cannot be blank", "sysctl", "name", "", "value", 1)
	g.fails("ipv4/nonsense", "sysctl", "name", "net.ipv4.nonsense", "value", 1, "sysctl_file", file)
	g.sh("sed -i /nonsense/d " + file)
	g.run("sysctl", "name", "net.ipv4.nonsense", "value", 1, "sysctl_file", file, "ignoreerrors", true, "sysctl_set", true)
	g.twice("sysctl", "name", "net.ipv4.nonsense", "state", "absent", "sysctl_file", file)
	g.fails("value cannot be None", "sysctl", "name", "net.ipv4.ip_forward")
	g.fails("value cannot be blank", "sysctl", "name", "net.ipv4.ip_forward", "value", " ")
	g.fails("must be the name of a kernel parameter", "sysctl", "name", "a b", "value", 1)
}

func TestModprobe(t *testing.T) {
	g := newTarget(t)
	const clean = "rm -f /etc/modules-load.d/br_netfilter.conf /etc/modprobe.d/br_netfilter.conf"
	g.sh(clean)
	t.Cleanup(func() { g.sh(clean) })
	_, second := g.twice("modprobe", "name", "br_netfilter", "persistent", "present")
	g.sees("cat /etc/modules-load.d/br_netfilter.conf", "br_netfilter")
	if dataOf(second, "name") != "br_netfilter" || dataOf(second, "state") != "present" {
		t.Errorf("got %s", value.Repr(second.Data))
	}
	g.same("modprobe", "name", "br-netfilter", "persistent", "present")
	g.twice("modprobe", "name", "br_netfilter", "persistent", "present", "params", "x=1 y=2")
	g.sees("cat /etc/modprobe.d/br_netfilter.conf", "options br_netfilter x=1 y=2")
	g.twice("modprobe", "name", "br_netfilter", "persistent", "absent")
	g.sees("cat /etc/modules-load.d/br_netfilter.conf /etc/modprobe.d/br_netfilter.conf",
		"#br_netfilter\n#options br_netfilter x=1 y=2")
	g.same("modprobe", "name", "tcp_cubic") // built in: seen in /sys/module
	g.fails("built into the kernel", "modprobe", "name", "tcp_cubic", "state", "absent")
	g.fails("must be the name of a kernel module", "modprobe", "name", "-r")
}

func TestMount(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("umount '/mnt/a b' /mnt/bound 2>/dev/null; rmdir '/mnt/a b' /mnt/bound; true") })
	g.sh("touch /etc/fstab")
	base := g.sh("cat /etc/fstab")
	tmpfs := []any{"path", "/mnt/a b", "src", "tmpfs", "fstype", "tmpfs", "opts", "size=1m,noexec"}
	first, _ := g.twice("mount", append(tmpfs, "state", "mounted", "backup", true)...)
	g.sees(`findmnt -n -o FSTYPE '/mnt/a b'; tail -n 1 /etc/fstab`, "tmpfs\n"+`tmpfs /mnt/a\040b tmpfs size=1m,noexec 0 0`)
	if dataOf(first, "opts") != "size=1m,noexec" || dataOf(first, "fstab") != "/etc/fstab" ||
		!first.Data.Has("backup_file") || len(first.Diff) != 1 {
		t.Errorf("got %+v", first)
	}
	tmpfs[7] = "size=2m,ro"
	g.twice("mount", append(tmpfs, "state", "mounted", "boot", false)...)
	g.sees(`findmnt -n -o OPTIONS '/mnt/a b' | cut -c1-2; tail -n 1 /etc/fstab`, "ro\n"+
		`tmpfs /mnt/a\040b tmpfs size=2m,ro,noauto 0 0`)
	if r := g.run("mount", "path", "/mnt/a b", "state", "remounted"); !r.Changed {
		t.Errorf("got %+v", r)
	}
	g.twice("mount", "path", "/mnt/a b", "state", "unmounted")
	g.sees(`findmnt '/mnt/a b'; grep -c 'a.040b' /etc/fstab`, "1")
	g.fails("is not mounted", "mount", "path", "/mnt/a b", "state", "remounted")
	g.twice("mount", append(tmpfs, "state", "mounted", "boot", false)...)
	g.twice("mount", "path", "/mnt/a b/", "state", "absent")
	g.sees(`ls -d '/mnt/a b' 2>/dev/null; cat /etc/fstab; rm -f /etc/fstab.*~`, base)
	g.twice("mount", append(tmpfs, "state", "ephemeral")...)
	g.sees(`findmnt -n -o FSTYPE '/mnt/a b'; cat /etc/fstab`, strings.TrimSpace("tmpfs\n"+base))
	g.fails("already mounted with a different source", "mount", "path", "/mnt/a b", "src", "other", "fstype", "tmpfs",
		"state", "ephemeral")
	g.twice("mount", "path", "/mnt/a b", "state", "unmounted")
}

// What is mounted already gets its line in fstab, and stays mounted: somebody may be using it.
func TestMountLeavesWhatIsMounted(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() {
		g.sh("umount /mnt/held /mnt/bound 2>/dev/null; rm -rf /mnt/held /mnt/bound /srv/one /tmp/tab; true")
	})
	g.sh("mkdir -p /mnt/held /mnt/bound /srv/one; : >/tmp/tab; mount -t tmpfs tmpfs /mnt/held; echo data >/mnt/held/file; mount --bind /srv/one /mnt/bound")
	before := g.sh("findmnt -n -o ID /mnt/held; findmnt -n -o ID /mnt/bound")
	g.twice("mount", "path", "/mnt/held", "src", "tmpfs", "fstype", "tmpfs", "state", "mounted", "fstab", "/tmp/tab")
	g.twice("mount", "path", "/mnt/bound", "src", "/srv/one", "fstype", "none", "opts", "bind", "state", "mounted",
		"fstab", "/tmp/tab")
	g.sees("findmnt -n -o ID /mnt/held; findmnt -n -o ID /mnt/bound; cat /mnt/held/file; grep -c . /tmp/tab", before+
		"\ndata\n2")
}

func TestMountBindAndFailures(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("umount /mnt/bound 2>/dev/null; rm -rf /mnt/bound /srv/one /srv/two /tmp/tab; true") })
	g.sh("mkdir -p /srv/one /srv/two; touch /srv/one/1 /srv/two/2; : >/tmp/tab; touch /etc/fstab")
	bind := []any{"path", "/mnt/bound", "src", "/srv/one", "fstype", "none", "opts", "bind", "fstab", "/tmp/tab"}
	g.twice("mount", append(bind, "state", "present")...)
	g.sees("ls -d /mnt/bound 2>/dev/null; cat /tmp/tab", "/srv/one /mnt/bound none bind 0 0")
	g.twice("mount", append(bind, "state", "mounted")...)
	g.sees("ls /mnt/bound", "1")
	bind[3] = "/srv/two"
	g.twice("mount", append(bind, "state", "mounted")...)
	g.sees("ls /mnt/bound; cat /tmp/tab", "2\n/srv/two /mnt/bound none bind 0 0")
	g.twice("mount", "path", "/mnt/bound", "state", "absent", "fstab", "/tmp/tab")
	g.sees("ls -d /mnt/bound /srv/two/2 2>/dev/null; cat /tmp/tab", "/srv/two/2")
	before := g.sh("cat /etc/fstab")
	g.fails("Error mounting /mnt/bound", "mount", "path", "/mnt/bound", "src", "/dev/nosuch", "fstype", "ext4", "state",
		"mounted")
	g.sees("cat /etc/fstab", before)
	g.fails("all of the following are missing: src, fstype", "mount", "path", "/mnt/x", "state", "mounted")
	g.fails("must be an absolute path", "mount", "path", "mnt", "state", "unmounted")
}

func TestCron(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() {
		g.sh("crontab -r 2>/dev/null; crontab -r -u ops 2>/dev/null; rm -f /etc/cron.d/kk /tmp/crontab.*; true")
	})
	g.sh("crontab -r 2>/dev/null; true")
	first, _ := g.twice("cron", "name", "say 100%", "minute", "*/5", "hour", 2, "job", `echo "it's" $HOME`)
	g.sees("crontab -l", "#Ansible: say 100%\n*/5 2 * * * echo \"it's\" $HOME")
	if value.Repr(dataOf(first, "jobs")) != "['say 100%']" || value.Repr(dataOf(first, "envs")) != "[]" ||
		len(first.Diff) != 1 {
		t.Errorf("got %+v", first)
	}
	g.twice("cron", "name", "MAILTO", "job", "a@b", "env", true)
	g.twice("cron", "name", "LANG", "job", "C", "env", true, "insertafter", "MAILTO")
	g.twice("cron", "name", "boot", "special_time", "reboot", "job", "true", "disabled", true)
	third, _ := g.twice("cron", "name", "say 100%", "job", "true", "backup", true)
	g.sees("crontab -l", "MAILTO=\"a@b\"\nLANG=\"C\"\n#Ansible: say 100%\n* * * * * true\n#Ansible: boot\n#@reboot true")
	kept, _ := dataOf(third, "backup_file").(string)
	g.sees("grep -c it.s "+kept, "1")
	g.twice("cron", "name", "boot", "state", "absent")
	g.twice("cron", "name", "MAILTO", "env", true, "state", "absent")
	g.sees("crontab -l", "LANG=\"C\"\n#Ansible: say 100%\n* * * * * true")
	g.twice("cron", "name", "ops's", "job", "true", "user", "ops")
	g.sees("crontab -l -u ops", "#Ansible: ops's\n* * * * * true")
	g.twice("cron", "name", "file", "job", "true", "user", "root", "cron_file", "kk", "weekday", "sun")
	g.sees("cat /etc/cron.d/kk", "#Ansible: file\n* * * * sun root true")
	g.twice("cron", "cron_file", "kk", "state", "absent")
	g.sees("ls /etc/cron.d/kk 2>/dev/null", "")
	g.fails("newlines", "cron", "name", "x", "job", "a\nb")
	g.fails("must specify user", "cron", "name", "x", "job", "a", "cron_file", "kk")
	g.fails("special time", "cron", "name", "x", "job", "a", "special_time", "daily", "minute", "1")
	g.fails("Unable to install crontab", "cron", "name", "a b", "job", "x", "env", true)
	g.fails("missing required arguments: name", "cron", "job", "a")
	g.fails("missing: job", "cron", "name", "a")
}

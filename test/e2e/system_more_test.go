package e2e

import (
	"strings"
	"testing"

	"kubekey/pkg/value"
)

// initScript is a service of System V that keeps a process.
const initScript = `cat >/etc/init.d/kk-example <<'END'
#!/bin/sh
### BEGIN INIT INFO
# Provides: kk-example
# Required-Start:
# Required-Stop:
# Default-Start: 2 3 4 5
# Default-Stop: 0 1 6
### END INIT INFO
case $1 in
start) setsid sleep 98765 </dev/null >/dev/null 2>&1 & echo $! >/run/kk-example.pid; echo "start $2" >>/srv/kk-init ;;
stop) kill "$(cat /run/kk-example.pid)"; rm /run/kk-example.pid; echo stop >>/srv/kk-init ;;
status) [ -e /run/kk-example.pid ] ;;
esac
END
chmod 755 /etc/init.d/kk-example`

const noInitScript = "/etc/init.d/kk-example stop 2>/dev/null; rm -f /etc/init.d/kk-example /etc/rc?.d/*kk-example /srv/kk-init; systemctl daemon-reload"

func TestSysvinit(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh(noInitScript) })
	g.sh(initScript)
	g.twice("sysvinit", "name", "kk-example", "state", "started", "enabled", true, "arguments", "fast")
	g.sees("cat /srv/kk-init; ls /etc/rc?.d/S*kk-example | wc -l", "start fast\n4")
	g.twice("sysvinit", "name", "kk-example", "enabled", false, "runlevels", "3,5")
	g.sees("ls /etc/rc?.d/S*kk-example | cut -d/ -f3 | tr '\\n' ' '", "rc2.d rc4.d")
	g.twice("sysvinit", "name", "kk-example", "enabled", true, "runlevels", []any{3})
	g.run("sysvinit", "name", "kk-example", "state", "restarted", "sleep", 0)
	g.twice("sysvinit", "name", "kk-example", "state", "stopped")
	g.sees("sed 's/ $//' /srv/kk-init", "start fast\nstop\nstart\nstop")
	g.fails("Could not find the requested service", "sysvinit", "name", "kk-none", "state", "started")
	g.fails("one of the following is required", "sysvinit", "name", "kk-example")
	g.fails("must be a runlevel", "sysvinit", "name", "kk-example", "enabled", true, "runlevels", "9x")
}

func TestMountFacts(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("umount '/mnt/kk facts'; rmdir '/mnt/kk facts'; rm -f /srv/tab; true") })
	g.sh(`mkdir -p '/mnt/kk facts'; mount -t tmpfs -o size=1m,nr_inodes=64 kk-device '/mnt/kk facts'; printf '# note\nUUID=x /mnt/kk\\040facts ext4 noauto 1 2\n' >/srv/tab`)
	r := g.same("mount_facts", "devices", "kk-*", "fstypes", "tmp?s")
	at := func(key string) any { return factOf(r, "mount_points", "/mnt/kk facts", key) }
	for key, want := range map[string]any{"device": "kk-device", "fstype": "tmpfs", "mount": "/mnt/kk facts",
		"size_total": 1 << 20, "size_available": 1 << 20, "inode_total": 64, "uuid": "N/A", "passno": 0} {
		if got := at(key); got != want {
			t.Errorf("%s is %v, not %v", key, got, want)
		}
	}
	if factOf(r, "mount_points").(*value.Dict).Len() != 1 || !strings.Contains(value.Str(at("options")), "size=1024k") {
		t.Errorf("got %s", value.Repr(r.Facts))
	}
	r = g.same("mount_facts", "sources", "/srv/tab,/proc/mounts", "include_aggregate_mounts", true)
	if at("device") != "UUID=x" || at("passno") != 2 ||
		value.Repr(factOf(r, "mount_points", "/mnt/kk facts", "ansible_context", "source")) != "'/srv/tab'" {
		t.Errorf("got %s", value.Repr(factOf(r, "mount_points", "/mnt/kk facts")))
	}
	if all, _ := factOf(r, "aggregate_mounts").([]any); len(all) <= factOf(r, "mount_points").(*value.Dict).Len() {
		t.Errorf("%d mounts in all", len(all))
	}
	if value.Str(factOf(r, "mount_points", "/", "size_total")) != g.sh("echo $(($(stat -f -c '%S * %b' /)))") {
		t.Errorf("the root is %s", value.Repr(factOf(r, "mount_points", "/")))
	}
	g.fails("absolute paths", "mount_facts", "sources", "tab")
}

func TestLocaleGen(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("apt-get -q -y purge locales >/dev/null 2>&1; rm -f /etc/locale.gen; true") })
	g.sh("command -v locale-gen >/dev/null || { apt-get update -q; apt-get -q -y install --no-install-recommends locales; } >/dev/null 2>&1")
	g.twice("locale_gen", "name", "nl_NL.UTF-8")
	g.sees("locale -a | grep nl_; grep nl_NL.UTF /etc/locale.gen", "nl_NL.utf8\nnl_NL.UTF-8 UTF-8")
	g.twice("locale_gen", "name", "nl_NL.UTF-8,de_DE", "state", "present")
	g.twice("locale_gen", "name", "nl_NL.UTF-8", "state", "absent")
	g.sees("locale -a | grep nl_; grep nl_NL.UTF /etc/locale.gen; grep '^de_DE ' /etc/locale.gen",
		"# nl_NL.UTF-8 UTF-8\nde_DE ISO-8859-1")
	g.fails("not available", "locale_gen", "name", "xx_XX.UTF-8")
	g.fails("must be the name of a locale", "locale_gen", "name", "a/b")
}

func TestPAMLimits(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh("rm -f /srv/limits*") })
	g.sh("printf '# limits\\n*  hard nofile 1024 # all\\n@dev - nproc unlimited\\n' >/srv/limits.conf; chmod 600 /srv/limits.conf")
	one := []any{"dest", "/srv/limits.conf", "domain", "*", "limit_type", "hard", "limit_item", "nofile"}
	first, _ := g.twice("pam_limits", append(one, "value", "4096", "backup", true)...)
	g.sees("cat /srv/limits.conf; stat -c %a /srv/limits.conf; grep -c 1024 /srv/limits.conf.*~",
		"# limits\n*\thard\tnofile\t4096\t# all\n@dev - nproc unlimited\n600\n1")
	if first.Msg != "*\thard\tnofile\t4096\t# all" || len(first.Diff) != 1 || !first.Data.Has("backup_file") {
		t.Errorf("got %+v", first)
	}
	g.same("pam_limits", append(one, "value", "1024", "use_max", true)...)
	g.twice("pam_limits", append(one, "value", "2048", "use_min", true)...)
	g.same("pam_limits", "dest", "/srv/limits.conf", "domain", "@dev", "limit_type", "-", "limit_item", "nproc", "value",
		"10", "use_max", true)
	g.twice("pam_limits", "dest", "/srv/limits.conf", "domain", "ann", "limit_type", "soft", "limit_item", "nice", "value",
		"-5", "comment", "mine")
	g.sees("tail -n 1 /srv/limits.conf", "ann\tsoft\tnice\t-5\t#mine")
	g.fails("can be one of 'unlimited'", "pam_limits", append(one, "value", "many")...)
	g.fails("between -20 and 19", "pam_limits", "domain", "x", "limit_type", "-", "limit_item", "nice", "value",
		"unlimited")
	g.fails("at the same time", "pam_limits", append(one, "value", "1", "use_min", true, "use_max", true)...)
	g.fails("must be one of", "pam_limits", "domain", "x", "limit_type", "-", "limit_item", "files", "value", "1")
}

// wheels is a script that makes a package for pip, in two versions.
const wheels = `command -v pip3 >/dev/null && python3 -c 'import ensurepip' 2>/dev/null || { apt-get update -q; apt-get -q -y install --no-install-recommends python3-pip python3-venv; } >/dev/null 2>&1
mkdir -p /srv/wheels; python3 - <<'END'
import zipfile
for v in ('1.0', '2.0'):
    d = 'kk_example-%s.dist-info/' % v
    with zipfile.ZipFile('/srv/wheels/kk_example-%s-py3-none-any.whl' % v, 'w') as z:
        z.writestr('kk_example.py', 'version = "%s"\n' % v)
        z.writestr(d + 'METADATA', 'Metadata-Version: 2.1\nName: kk-example\nVersion: %s\n' % v)
        z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
        z.writestr(d + 'RECORD', 'kk_example.py,,\n%sMETADATA,,\n%sWHEEL,,\n%sRECORD,,\n' % (d, d, d))
END`

const noWheels = "rm -rf /srv/wheels /opt/tools /srv/req.txt; pip3 uninstall -y --break-system-packages kk-example >/dev/null 2>&1; true"

func TestPip(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() { g.sh(noWheels) })
	g.fails("one of the following is required", "pip")
	g.sh(wheels)
	const from = "--no-index --find-links /srv/wheels"
	env := []any{"virtualenv", "/opt/tools", "virtualenv_command", "python3 -m venv", "extra_args", from}
	first, _ := g.twice("pip", append(env, "name", "kk_example", "version", "1.0")...)
	g.sees("/opt/tools/bin/python -c 'import kk_example; print(kk_example.version)'", "1.0")
	if cmd := value.Repr(dataOf(first, "cmd")); cmd != "['/opt/tools/bin/pip3', 'install', '--no-index', '--find-links', '/srv/wheels', 'kk_example==1.0']" || dataOf(first, "virtualenv") != "/opt/tools" {
		t.Errorf("got %s", value.Repr(first.Data))
	}
	g.same("pip", append(env, "name", "KK.Example>=0.5,<2")...)
	g.twice("pip", append(env, "name", "kk-example", "state", "latest")...)
	g.sees("/opt/tools/bin/python -c 'import kk_example; print(kk_example.version)'", "2.0")
	g.twice("pip", env[0], env[1], "name", "kk-example", "state", "absent")
	g.sh("echo 'kk-example==1.0' >/srv/req.txt")
	g.twice("pip", append(env, "requirements", "/srv/req.txt")...)
	if r := g.run("pip", append(env, "name", "kk-example", "state", "forcereinstall")...); !r.Changed {
		t.Errorf("got %+v", r)
	}
	g.twice("pip", "name", "kk-example", "extra_args", from, "break_system_packages", true)
	g.fails("externally-managed-environment", "pip", "name", "kk-example==1.0", "extra_args", from)
	g.fails("No matching distribution", "pip", append(env, "name", "kk-none")...)
	g.fails("ambiguous", "pip", "name", "a,b", "version", "1")
	g.fails("is not the name of a package", "pip", "name", "--index-url=x")
}

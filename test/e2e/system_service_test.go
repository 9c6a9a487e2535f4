package e2e

import (
	"testing"

	"kubekey/pkg/value"
)

const demoUnit = `cat >/etc/systemd/system/demo.service <<'END'
[Unit]
Description=Demo
[Service]
ExecStart=/bin/sleep infinity
ExecReload=/bin/touch /run/demo-reloaded
[Install]
WantedBy=multi-user.target
END`

func TestSystemdUnit(t *testing.T) {
	g := newTarget(t)
	g.sh(demoUnit)
	t.Cleanup(func() {
		g.sh("systemctl disable -q --now demo.service; systemctl unmask -q demo; rm -f /etc/systemd/system/demo.service /run/demo-reloaded; systemctl daemon-reload")
	})
	g.same("systemd", "daemon_reload", true)
	first, second := g.twice("systemd", "name", "demo", "state", "started", "enabled", true, "daemon_reload", true)
	g.sees("systemctl is-active demo; systemctl is-enabled demo", "active\nenabled")
	if dataOf(first, "state") != "started" || dataOf(first, "enabled") != true || dataOf(first, "name") != "demo" {
		t.Errorf("got %s", value.Repr(first.Data))
	}
	if len(first.Diff) != 1 || value.Repr(first.Diff[0].Before) != "{'state': 'stopped', 'enabled': False}" {
		t.Errorf("diff %+v", first.Diff)
	}
	status, _ := dataOf(second, "status").(*value.Dict)
	for key, want := range map[string]string{"ActiveState": "active", "SubState": "running", "LoadState": "loaded",
		"UnitFileState": "enabled", "Description": "Demo"} {
		if got, _ := status.Get(key); got != want {
			t.Errorf("status.%s is %v, not %s", key, got, want)
		}
	}
	pid := g.sh("systemctl show -P MainPID demo")
	g.dry("systemd", "name", "demo", "state", "restarted")
	g.sees("systemctl show -P MainPID demo", pid)
	if r := g.run("systemd", "name", "demo.service", "state", "restarted"); !r.Changed || dataOf(r, "state") != "started" {
		t.Errorf("restart: %+v", r)
	}
	if g.sh("systemctl show -P MainPID demo") == pid {
		t.Error("the unit was not restarted")
	}
	g.run("service", "name", "demo", "state", "reloaded")
	g.sees("ls /run/demo-reloaded", "/run/demo-reloaded")
	g.twice("service", "name", "demo", "state", "stopped", "enabled", false)
	g.sees("systemctl is-active demo; systemctl is-enabled demo", "inactive\ndisabled")
}

func TestSystemdMask(t *testing.T) {
	g := newTarget(t)
	g.sh("printf '[Timer]\nOnBootSec=9d\n' >/usr/lib/systemd/system/later.timer; printf '[Service]\nExecStart=/bin/true\n' >/usr/lib/systemd/system/later.service; systemctl daemon-reload")
	t.Cleanup(func() {
		g.sh("systemctl stop later.timer; rm -f /usr/lib/systemd/system/later.*; systemctl daemon-reload")
	})
	g.twice("systemd", "name", "later.timer", "masked", true)
	g.sees("systemctl is-enabled later.timer", "masked")
	g.fails("Unable to start service later.timer", "systemd", "name", "later.timer", "state", "restarted")
	g.twice("systemd", "name", "later.timer", "masked", false, "state", "started")
	g.sees("systemctl is-active later.timer", "active")
}

func TestServiceThatIsMissing(t *testing.T) {
	g := newTarget(t)
	for _, module := range []string{"systemd", "service"} {
		g.fails("Could not find the requested service nope: host", module, "name", "nope", "state", "stopped")
		g.fails("Could not find the requested service nope: host", module, "name", "nope", "enabled", true)
		g.fails("Could not find the requested service nope: host", module, "name", "nope", "state", "started")
		g.fails("patterns", module, "name", "no*", "state", "started")
	}
	g.fails("name is required", "systemd", "state", "started")
	g.fails("one of: started, stopped, restarted, reloaded, got: up", "systemd", "name", "x", "state", "up")
	g.fails("scope: global", "systemd", "name", "x", "state", "started", "scope", "global")
}

func TestSystemdScopeGlobal(t *testing.T) {
	g := newTarget(t)
	g.sh("mkdir -p /etc/systemd/user && printf '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=default.target\n' >/etc/systemd/user/mine.service")
	g.twice("systemd", "name", "mine", "scope", "global", "enabled", true)
	g.sees("ls /etc/systemd/user/default.target.wants", "mine.service")
	g.twice("systemd", "name", "mine", "scope", "global", "enabled", false)
}

func TestServiceWithInitScripts(t *testing.T) {
	g := newTarget(t)
	g.sh(`cat >/etc/init.d/oldie <<'END'
#!/bin/sh
### BEGIN INIT INFO
# Provides: oldie
# Required-Start:
# Required-Stop:
# Default-Start: 2 3 4 5
# Default-Stop: 0 1 6
# Short-Description: oldie
### END INIT INFO
case $1 in
start) echo "start $2" >>/run/oldie.log; sleep 300 & echo $! >/run/oldie.pid ;;
stop) kill "$(cat /run/oldie.pid)"; rm -f /run/oldie.pid ;;
restart) "$0" stop; "$0" start ;;
status) [ -e /run/oldie.pid ] && kill -0 "$(cat /run/oldie.pid)" ;;
*) exit 2 ;;
esac
END
chmod 755 /etc/init.d/oldie`)
	t.Cleanup(func() {
		g.sh("/etc/init.d/oldie stop; update-rc.d oldie remove; rm -f /etc/init.d/oldie /run/oldie*; true")
	})
	g.twice("service", "name", "oldie", "use", "sysv", "state", "started", "arguments", "fast")
	g.sees("cat /run/oldie.log", "start fast")
	g.same("service", "name", "oldie", "use", "sysv", "pattern", "sleep 300", "state", "started")
	if r := g.run("service", "name", "oldie", "use", "sysv", "state", "restarted", "sleep", 0.1); !r.Changed {
		t.Errorf("restart: %+v", r)
	}
	g.twice("service", "name", "oldie", "use", "sysv", "state", "stopped")
	g.twice("service", "name", "oldie", "use", "sysvinit", "enabled", true)
	g.twice("service", "name", "oldie", "use", "sysv", "enabled", false)
	g.fails("Could not find the requested service nope: host", "service", "name", "nope", "use", "sysv", "state",
		"stopped")
}

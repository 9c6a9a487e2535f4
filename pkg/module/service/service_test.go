package service

import (
	"os"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

const systemctl = `case "$*" in
*show*absent*) printf 'LoadState=not-found\nActiveState=inactive\n' ;;
*show*down*) printf 'LoadState=loaded\nActiveState=inactive\nSubState=dead\nUnitFileState=disabled\nExecStart={ path=/x ;\n argv[]=y }\n' ;;
*show*) printf 'LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\n' ;;
*is-enabled*down*) echo disabled; exit 1 ;;
*is-enabled*static*) echo static ;;
*is-enabled*) echo enabled ;;
*broken*) echo "Job failed." >&2; exit 1 ;;
esac`

func TestSystemdCommands(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"systemctl": systemctl})
	for _, c := range []struct {
		args    []any
		changed bool
		calls   string // after the one that looks
	}{
		{[]any{"name", "up", "state", "started"}, false, ""},
		{[]any{"name", "up.timer", "state", "stopped", "no_block", true}, true, "systemctl --system stop --no-block -- up.timer"},
		{[]any{"name", "down", "state", "reloaded"}, true, "systemctl --system start -- down.service"},
		{[]any{"name", "up", "state", "reloaded"}, true, "systemctl --system reload -- up.service"},
		{[]any{"name", "down", "enabled", true, "force", true}, true, "systemctl --system is-enabled -- down.service\nsystemctl --system enable --force -- down.service"},
		{[]any{"name", "static", "enabled", false}, false, "systemctl --system is-enabled -- static.service"},
		{[]any{"name", "up", "enabled", false, "scope", "user"}, true, "systemctl --user is-enabled -- up.service\nsystemctl --user disable -- up.service"},
		{[]any{"name", "absent", "masked", true}, true, "systemctl --system mask -- absent.service"},
	} {
		r := run(t, "systemd", moduletest.Options{Conn: h, Diff: true}, c.args...)
		_, calls, _ := strings.Cut(h.Calls(), "\n")
		if r.Failed || r.Changed != c.changed || calls != c.calls {
			t.Errorf("%v: changed %v, ran %q", c.args, r.Changed, calls)
		}
	}
	r := run(t, "systemd", moduletest.Options{Conn: h, Check: true}, "name", "down", "state", "started", "daemon_reload", true)
	if calls := h.Calls(); !r.Changed || calls != "systemctl --system show -- down.service" {
		t.Errorf("check mode ran %q: %+v", calls, r)
	}
	if got := value.Repr(moduletest.Field(r, "status")); !strings.Contains(got, `'ExecStart': '{ path=/x ;\n argv[]=y }'`) {
		t.Errorf("status %s", got)
	}
	run(t, "systemd", moduletest.Options{Conn: h}, "daemon_reload", true, "daemon_reexec", true)
	if calls := h.Calls(); calls != "systemctl --system daemon-reexec\nsystemctl --system daemon-reload" {
		t.Errorf("ran %q", calls)
	}
	fails(t, "Could not find the requested service absent: host", "systemd", moduletest.Options{Conn: h}, "name", "absent", "state", "stopped")
	fails(t, "Unable to restart service broken: Job failed.", "systemd", moduletest.Options{Conn: h}, "name", "broken", "state", "restarted")
	fails(t, "there is no systemctl", "systemd", moduletest.Options{Conn: moduletest.NewStandIns(t, nil)}, "name", "x", "state", "started")
	fails(t, "one of the following is required", "systemd", moduletest.Options{Conn: h})
	fails(t, "is not the name of a service", "service", moduletest.Options{Conn: h}, "name", "-f")
}

func TestOpenRCWantsItsInitScript(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"rc-service": "", "rc-update": ""})
	fails(t, "Could not find the requested service kk-none: host", "service", moduletest.Options{Conn: h}, "name", "kk-none", "use", "openrc", "state", "started")
}

func TestServiceFactsWithoutSystemd(t *testing.T) {
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("this machine runs systemd")
	}
	h := moduletest.NewStandIns(t, map[string]string{
		"rc-status": `printf 'Runlevel: default\n sshd                [  started  ]\n crond               [  stopped  ]\n'`,
		"rc-update": `printf '  crond |      \n  sshd | default nonetwork\n'`,
	})
	const openrc = `{'services': {'sshd': {'name': 'sshd', 'state': 'started', 'source': 'openrc', 'runlevels': ['default', 'nonetwork']}, 'crond': {'name': 'crond', 'state': 'stopped', 'source': 'openrc', 'runlevels': None}}}`
	if got := value.Repr(run(t, "service_facts", moduletest.Options{Conn: h}).Facts); got != openrc {
		t.Errorf("got %s", got)
	}
	h = moduletest.NewStandIns(t, map[string]string{"service": `printf ' [ + ]  ssh\n [ - ]  procps\n [ ? ]  odd\n'`})
	const sysv = `{'services': {'ssh': {'name': 'ssh', 'state': 'running', 'source': 'sysv'}, 'procps': {'name': 'procps', 'state': 'stopped', 'source': 'sysv'}, 'odd': {'name': 'odd', 'state': 'stopped', 'source': 'sysv'}}}`
	if got := value.Repr(run(t, "service_facts", moduletest.Options{Conn: h}).Facts); got != sysv {
		t.Errorf("got %s", got)
	}
	if r := run(t, "service_facts", moduletest.Options{Conn: moduletest.NewStandIns(t, nil)}); !r.Skipped {
		t.Errorf("without services: %+v", r)
	}
}

func TestWhatIsMissingInCheckModeIsAWarning(t *testing.T) {
	o := moduletest.Options{Conn: moduletest.NewStandIns(t, map[string]string{"systemctl": systemctl}), Check: true}
	for _, c := range []struct {
		module  string
		args    []any
		changed bool
	}{
		{"systemd", []any{"name", "absent", "state", "started"}, true},
		{"systemd", []any{"name", "absent", "enabled", true}, true},
		{"systemd", []any{"name", "absent", "state", "stopped", "enabled", false}, false},
		{"service", []any{"name", "kk-none", "use", "sysv", "state", "started"}, true},
	} {
		r := run(t, c.module, o, c.args...)
		if r.Failed || r.Changed != c.changed || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "check mode") {
			t.Errorf("%s %v: %+v", c.module, c.args, r)
		}
	}
}

package service

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

const systemctl = `case "$*" in
*FragmentPath*) echo "FragmentPath=$UNITS/${6%.service}" ;;
*show*absent*) printf 'LoadState=not-found\nActiveState=inactive\n' ;;
*show*down*) printf 'LoadState=loaded\nActiveState=inactive\nSubState=dead\nUnitFileState=disabled\nExecStart={ path=/x ;\n argv[]=y }\n' ;;
*show*new*) printf 'LoadState=loaded\nActiveState=inactive\nUnitFileState=disabled\n' ;;
*show*) printf 'LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\n' ;;
*is-enabled*down* | *is-enabled*new*) echo disabled; exit 1 ;;
*is-enabled*static*) echo static ;;
*is-enabled*runtime*) echo enabled-runtime ;;
*is-enabled*indirect*) echo indirect ;;
*is-enabled*) echo enabled ;;
*enable*new-alias*) echo 'Created symlink /etc/systemd/system/n.service -> /etc/systemd/system/new-alias.service.' >&2 ;;
*enable*new*) echo 'Created symlink /etc/systemd/system/multi-user.target.wants/new.service -> /etc/systemd/system/new.service.' >&2 ;;
*start*new-broken* | *broken*) echo "Job failed." >&2; exit 1 ;;
esac`

func TestSystemdCommands(t *testing.T) {
	units := t.TempDir()
	for name, text := range map[string]string{"indirect": "[Install]\nWantedBy=x.target\nAlso=up.socket\n",
		"indirect-also": "[Install]\nAlso=up.socket up.timer\n", "indirect-more": "[Install]\nAlso=down.socket\n"} {
		if err := os.WriteFile(units+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := moduletest.NewStandIns(t, map[string]string{"systemctl": "UNITS=" + units + "\n" + systemctl})
	const alsoCalls = "systemctl --system is-enabled -- %[1]s.service\nsystemctl --system show -p FragmentPath -- %[1]s.service\n"
	for _, c := range []struct {
		args    []any
		changed bool
		calls   string // after the one that looks
	}{
		{[]any{"name", "up", "state", "started"}, false, ""},
		{[]any{"name", "up.timer", "state", "stopped", "no_block", true}, true,
			"systemctl --system stop --no-block -- up.timer"},
		{[]any{"name", "down", "state", "reloaded"}, true, "systemctl --system start -- down.service"},
		{[]any{"name", "up", "state", "reloaded"}, true, "systemctl --system reload -- up.service"},
		{[]any{"name", "down", "enabled", true, "force", true}, true,
			"systemctl --system is-enabled -- down.service\nsystemctl --system enable --force -- down.service"},
		{[]any{"name", "static", "enabled", false}, false, "systemctl --system is-enabled -- static.service"},
		{[]any{"name", "runtime", "enabled", true}, true,
			"systemctl --system is-enabled -- runtime.service\nsystemctl --system enable -- runtime.service"},
		{[]any{"name", "runtime", "enabled", false}, false, "systemctl --system is-enabled -- runtime.service"},
		{[]any{"name", "indirect", "enabled", false}, false, "systemctl --system is-enabled -- indirect.service"},
		{[]any{"name", "indirect", "enabled", true}, true, fmt.Sprintf(alsoCalls, "indirect") +
			"systemctl --system enable -- indirect.service"},
		{[]any{"name", "indirect-more", "enabled", true}, true, fmt.Sprintf(alsoCalls, "indirect-more") +
			"systemctl --system is-enabled --quiet -- down.socket\nsystemctl --system enable -- indirect-more.service"},
		{[]any{"name", "indirect-also", "enabled", true}, false, fmt.Sprintf(alsoCalls, "indirect-also") +
			"systemctl --system is-enabled --quiet -- up.socket\nsystemctl --system is-enabled --quiet -- up.timer"},
		{[]any{"name", "up", "enabled", false, "scope", "user"}, true,
			"systemctl --user is-enabled -- up.service\nsystemctl --user disable -- up.service"},
		{[]any{"name", "absent", "masked", true}, true, "systemctl --system mask -- absent.service"},
	} {
		r := run(t, "systemd", moduletest.Options{Conn: h, Diff: true}, c.args...)
		_, calls, _ := strings.Cut(h.Calls(), "\n")
		if r.Failed || r.Changed != c.changed || calls != c.calls {
			t.Errorf("%v: changed %v (%s), ran %q", c.args, r.Changed, r.Msg, calls)
		}
	}
	r := run(t, "systemd", moduletest.Options{Conn: h, Check: true}, "name", "down", "state", "started", "daemon_reload",
		true)
	if calls := h.Calls(); !r.Changed || calls != "systemctl --system show -- down.service" {
		t.Errorf("check mode ran %q: %+v", calls, r)
	}
	if got := value.Repr(moduletest.Field(r, "status")); !strings.Contains(got,
		`'ExecStart': '{ path=/x ;\n argv[]=y }'`) {
		t.Errorf("status %s", got)
	}
	run(t, "systemd", moduletest.Options{Conn: h}, "daemon_reload", true, "daemon_reexec", true)
	if calls := h.Calls(); calls != "systemctl --system daemon-reexec\nsystemctl --system daemon-reload" {
		t.Errorf("ran %q", calls)
	}
	fails(t, "Could not find the requested service absent: host", "systemd", moduletest.Options{Conn: h}, "name", "absent",
		"state", "stopped")
	fails(t, "Unable to restart service broken: Job failed.", "systemd", moduletest.Options{Conn: h}, "name", "broken",
		"state", "restarted")
	fails(t, "systemctl is not installed", "systemd", moduletest.Options{Conn: moduletest.NewStandIns(t, nil)}, "name",
		"x", "state", "started")
	fails(t, "one of the following is required", "systemd", moduletest.Options{Conn: h})
	fails(t, "is not the name of a service", "service", moduletest.Options{Conn: h}, "name", "-f")
}

// TestReloadThatWaits: systemd reads its units again after several were enabled
// and started, and not once after each, if it had just read them. The transport of
// the test does at once what may wait.
func TestReloadThatWaits(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"systemctl": systemctl})
	const after = "systemctl --system daemon-reload\nsystemctl --system show -- %[1]s.service\nsystemctl --system is-enabled -- %[1]s.service\nsystemctl --system enable --no-reload -- %[1]s.service\n"
	for name, calls := range map[string]string{
		"new": after + "systemctl --system start -- %[1]s.service\nsystemctl daemon-reload",
		// it has another name, too
		"new-alias":  after + "systemctl --system daemon-reload\nsystemctl --system start -- %[1]s.service",
		"new-broken": after + "systemctl --system start -- %[1]s.service\nsystemctl daemon-reload",
	} {
		args := value.NewDict("name", name, "state", "started", "enabled", true, "daemon_reload", true)
		_, err := moduletest.Try(t, spec(t, "systemd"), args, moduletest.Options{Conn: h})
		if got := h.Calls(); got != fmt.Sprintf(calls, name) || (err != nil) != (name == "new-broken") {
			t.Errorf("%s: %v, ran\n%s", name, err, got)
		}
	}
	// Without what was just read, or without a start, enabling reads the units itself.
	for _, pairs := range [][]any{{"state", "started"}, {"daemon_reload", true},
		{"state", "started", "daemon_reload", true, "masked", false}} {
		run(t, "systemd", moduletest.Options{Conn: h}, append([]any{"name", "new", "enabled", true}, pairs...)...)
		if got := h.Calls(); !strings.Contains(got, "--system enable -- new.service") ||
			strings.Contains(got, "systemctl daemon-reload") {
			t.Errorf("%v: ran\n%s", pairs, got)
		}
	}
}

func TestOpenRCWantsItsInitScript(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"rc-service": "", "rc-update": ""})
	fails(t, "Could not find the requested service kk-none: host", "service", moduletest.Options{Conn: h}, "name",
		"kk-none", "use", "openrc", "state", "started")
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

package system

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
	h := newStubHost(t, map[string]string{"systemctl": systemctl})
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
		_, calls, _ := strings.Cut(h.calls(), "\n")
		if r.Failed || r.Changed != c.changed || calls != c.calls {
			t.Errorf("%v: changed %v, ran %q", c.args, r.Changed, calls)
		}
	}
	r := run(t, "systemd", moduletest.Options{Conn: h, Check: true}, "name", "down", "state", "started", "daemon_reload", true)
	if calls := h.calls(); !r.Changed || calls != "systemctl --system show -- down.service" {
		t.Errorf("check mode ran %q: %+v", calls, r)
	}
	if got := value.Repr(get(r, "status")); !strings.Contains(got, `'ExecStart': '{ path=/x ;\n argv[]=y }'`) {
		t.Errorf("status %s", got)
	}
	run(t, "systemd", moduletest.Options{Conn: h}, "daemon_reload", true, "daemon_reexec", true)
	if calls := h.calls(); calls != "systemctl --system daemon-reexec\nsystemctl --system daemon-reload" {
		t.Errorf("ran %q", calls)
	}
	fails(t, "Could not find the requested service absent: host", "systemd", moduletest.Options{Conn: h}, "name", "absent", "state", "stopped")
	fails(t, "Unable to restart service broken: Job failed.", "systemd", moduletest.Options{Conn: h}, "name", "broken", "state", "restarted")
	fails(t, "there is no systemctl", "systemd", moduletest.Options{Conn: newStubHost(t, nil)}, "name", "x", "state", "started")
	fails(t, "one of the following is required", "systemd", moduletest.Options{Conn: h})
	fails(t, "is not the name of a service", "service", moduletest.Options{Conn: h}, "name", "-f")
}

func TestWhatIsMissingInCheckModeIsAWarning(t *testing.T) {
	o := moduletest.Options{Conn: newStubHost(t, map[string]string{"systemctl": systemctl, "getent": accounts, "usermod": "", "useradd": ""}), Check: true}
	for _, c := range []struct {
		module  string
		args    []any
		changed bool
	}{
		{"systemd", []any{"name", "absent", "state", "started"}, true},
		{"systemd", []any{"name", "absent", "enabled", true}, true},
		{"systemd", []any{"name", "absent", "state", "stopped", "enabled", false}, false},
		{"service", []any{"name", "kk-none", "use", "sysv", "state", "started"}, true},
		{"user", []any{"name", "ann", "groups", "none", "create_home", false}, true},
		{"user", []any{"name", "new", "group", "none"}, true},
	} {
		r := run(t, c.module, o, c.args...)
		if r.Failed || r.Changed != c.changed || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "check mode") {
			t.Errorf("%s %v: %+v", c.module, c.args, r)
		}
	}
}

func TestOpenRCWantsItsInitScript(t *testing.T) {
	h := newStubHost(t, map[string]string{"rc-service": "", "rc-update": ""})
	fails(t, "Could not find the requested service kk-none: host", "service", moduletest.Options{Conn: h}, "name", "kk-none", "use", "openrc", "state", "started")
}

// accounts pretends that the user and the group "ann" are there, in "red" too.
const accounts = `case "$*" in
"passwd ann") echo "ann:x:4200:4200:Ann:/nonexistent:/bin/sh" ;;
"group ann" | "group 4200") echo "ann:x:4200:" ;;
"group red") echo "red:x:5:ann" ;;
"group blue") echo "blue:x:6:" ;;
group) printf 'ann:x:4200:\nred:x:5:ann\nblue:x:6:\n' ;;
*) exit 2 ;;
esac`

func userHost(t *testing.T) *stubHost {
	return newStubHost(t, map[string]string{
		"getent": accounts, "useradd": "", "usermod": "", "userdel": "", "groupadd": "", "groupmod": "", "groupdel": "",
		"chpasswd": `cat >"${0%/*}/../secret"`,
	})
}

// acted is the calls that were not questions.
func acted(h *stubHost) string {
	var out []string
	for _, line := range strings.Split(h.calls(), "\n") {
		if !strings.HasPrefix(line, "getent") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func TestUserCommands(t *testing.T) {
	for _, c := range []struct {
		args []any
		call string
	}{
		{[]any{"name", "ann", "create_home", false}, ""},
		{[]any{"name", "ann", "create_home", false, "groups", "red", "uid", 4200, "comment", "Ann", "shell", "/bin/sh", "group", "ann"}, ""},
		{[]any{"name", "ann", "create_home", false, "groups", "blue"}, "usermod -G blue ann"},
		{[]any{"name", "ann", "create_home", false, "groups", "blue,red", "append", true}, "usermod -a -G blue ann"},
		{[]any{"name", "ann", "create_home", false, "groups", []any{}}, "usermod -G  ann"},
		{[]any{"name", "ann", "create_home", false, "uid", 1, "non_unique", true, "group", "red", "comment", "B C", "home", "/h", "move_home", true, "shell", "/s"},
			"usermod -u 1 -o -g 5 -c B C -d /h -m -s /s ann"},
		{[]any{"name", "new", "system", true, "uid", 7, "groups", "red,blue", "umask", "077", "skeleton", "/k", "expires", 86400}, "useradd -u 7 -G red,blue -e 1970-01-02 -r -K UMASK=077 -m -k /k new"},
		{[]any{"name", "ann", "state", "absent", "remove", true, "force", true}, "userdel -f -r ann"},
		{[]any{"name", "new", "state", "absent"}, ""},
	} {
		h := userHost(t)
		o := moduletest.Options{Conn: h, Diff: true}
		dry := o
		dry.Check = true
		if r := run(t, "user", dry, c.args...); r.Changed != (c.call != "") || acted(h) != "" {
			t.Errorf("%v in check mode: %+v", c.args, r)
		}
		r := run(t, "user", o, c.args...)
		if call := acted(h); r.Changed != (c.call != "") || call != c.call {
			t.Errorf("%v ran %q, want %q", c.args, call, c.call)
		}
	}
}

func TestPasswordTravelsOverStandardInput(t *testing.T) {
	h := userHost(t)
	count := moduletest.Count(h)
	r := run(t, "user", moduletest.Options{Conn: count}, "name", "ann", "create_home", false, "password", "$6$secret")
	if calls := acted(h); !r.Changed || calls != "chpasswd -e" || read(t, h.dir+"/secret") != "ann:$6$secret\n" {
		t.Errorf("ran %q: %+v", calls, r)
	}
	if lines := count.Lines(); len(lines) != 1 || strings.Contains(lines[0], "secret") && strings.Contains(lines[0], "$6$") {
		t.Errorf("%d commands, or the hash stands in a command line", len(lines))
	}
	run(t, "user", moduletest.Options{Conn: h}, "name", "ann", "create_home", false, "password_lock", true)
	if calls := acted(h); calls != "usermod -L ann" {
		t.Errorf("ran %q", calls)
	}
	for text, args := range map[string][]any{
		"colons":           {"name", "a", "shell", "/b:c"},
		"octal":            {"name", "a", "umask", "x"},
		"expires":          {"name", "a", "expires", 1e15},
		"no groups":        {"name", "a", "append", true},
		"does not exist":   {"name", "ann", "group", "none"},
		"Group none does ": {"name", "ann", "groups", "none"},
	} {
		fails(t, text, "user", moduletest.Options{Conn: h}, args...)
	}
}

func TestAccountsWithBusyboxAlone(t *testing.T) {
	h := newStubHost(t, map[string]string{"getent": accounts, "adduser": "", "deluser": "", "addgroup": "", "delgroup": ""})
	for _, c := range []struct {
		module string
		args   []any
		call   string
	}{
		{"user", []any{"name", "new", "uid", 7, "group", "red", "groups", "blue", "comment", "N", "shell", "/s", "home", "/h", "system", true, "create_home", false}, "adduser -D -u 7 -G red -g N -h /h -s /s -S -H new\naddgroup new blue"},
		{"user", []any{"name", "ann", "groups", "blue", "create_home", false}, "addgroup ann blue\ndelgroup ann red"},
		{"user", []any{"name", "ann", "state", "absent", "remove", true}, "deluser --remove-home ann"},
		{"group", []any{"name", "crew", "gid", 9, "system", true}, "addgroup -S -g 9 crew"},
		{"group", []any{"name", "red", "state", "absent"}, "delgroup red"},
	} {
		r := run(t, c.module, moduletest.Options{Conn: h}, c.args...)
		if call := acted(h); !r.Changed || call != c.call {
			t.Errorf("%v ran %q, want %q", c.args, call, c.call)
		}
	}
	fails(t, "needs usermod", "user", moduletest.Options{Conn: h}, "name", "ann", "shell", "/x")
	fails(t, "needs groupmod", "group", moduletest.Options{Conn: h}, "name", "red", "gid", 6)
	fails(t, "need groupadd", "group", moduletest.Options{Conn: h}, "name", "x", "gid", 6, "non_unique", true)
	fails(t, "need useradd", "user", moduletest.Options{Conn: h}, "name", "x", "expires", 5)
}

func TestHostnameInCheckMode(t *testing.T) {
	o := moduletest.Options{Check: true, Diff: true}
	r := run(t, "hostname", o, "name", "kk-other.example.org")
	if domain, _ := r.Facts.Get("ansible_domain"); !r.Changed || domain != "example.org" || len(r.Diff) != 1 {
		t.Errorf("got %+v", r)
	}
	if f := hostnameFacts("a", "a.b.c"); value.Repr(f) != "{'ansible_hostname': 'a', 'ansible_nodename': 'a', 'ansible_fqdn': 'a.b.c', 'ansible_domain': 'b.c'}" {
		t.Errorf("got %s", value.Repr(f))
	}
	for _, bad := range []string{"", "a b", "-x", "x-", strings.Repeat("a", 65)} {
		fails(t, "host name", "hostname", o, "name", bad)
	}
}

func TestModprobeBadNames(t *testing.T) {
	fails(t, "not the name of a kernel module", "modprobe", moduletest.Options{Check: true}, "name", "a;b")
	fails(t, "NAME=VALUE", "modprobe", moduletest.Options{Check: true}, "name", "a", "params", "x=*")
	r := run(t, "modprobe", moduletest.Options{Check: true}, "name", "kk_no_such_module", "persistent", "present", "params", "a=1")
	if !r.Changed || get(r, "params") != "a=1" {
		t.Errorf("got %+v", r)
	}
}

func TestServiceFactsWithoutSystemd(t *testing.T) {
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("this machine runs systemd")
	}
	h := newStubHost(t, map[string]string{
		"rc-status": `printf 'Runlevel: default\n sshd                [  started  ]\n crond               [  stopped  ]\n'`,
		"rc-update": `printf '  crond |      \n  sshd | default nonetwork\n'`,
	})
	const openrc = `{'services': {'sshd': {'name': 'sshd', 'state': 'started', 'source': 'openrc', 'runlevels': ['default', 'nonetwork']}, 'crond': {'name': 'crond', 'state': 'stopped', 'source': 'openrc', 'runlevels': None}}}`
	if got := value.Repr(run(t, "service_facts", moduletest.Options{Conn: h}).Facts); got != openrc {
		t.Errorf("got %s", got)
	}
	h = newStubHost(t, map[string]string{"service": `printf ' [ + ]  ssh\n [ - ]  procps\n [ ? ]  odd\n'`})
	const sysv = `{'services': {'ssh': {'name': 'ssh', 'state': 'running', 'source': 'sysv'}, 'procps': {'name': 'procps', 'state': 'stopped', 'source': 'sysv'}, 'odd': {'name': 'odd', 'state': 'stopped', 'source': 'sysv'}}}`
	if got := value.Repr(run(t, "service_facts", moduletest.Options{Conn: h}).Facts); got != sysv {
		t.Errorf("got %s", got)
	}
	if r := run(t, "service_facts", moduletest.Options{Conn: newStubHost(t, nil)}); !r.Skipped {
		t.Errorf("without services: %+v", r)
	}
}

func TestFetchWantsAProgram(t *testing.T) {
	h := newStubHost(t, map[string]string{"getent": accounts})
	fails(t, "neither curl nor wget", "authorized_key", moduletest.Options{Conn: h}, "user", "ann", "key", "http://192.0.2.1/keys")
	h = newStubHost(t, map[string]string{"getent": accounts, "wget": `echo "server says no" >&2; exit 1`})
	fails(t, "fetch http://192.0.2.1/keys: server says no", "authorized_key", moduletest.Options{Conn: h}, "user", "ann", "key", "http://192.0.2.1/keys", "validate_certs", false)
	if calls := acted(h); !strings.HasPrefix(calls, "wget --no-check-certificate -O ") {
		t.Errorf("ran %q", calls)
	}
}

// selinuxHost pretends that SELinux is there, in the state of the file state.
func selinuxHost(t *testing.T, state string) (*stubHost, string) {
	h := newStubHost(t, map[string]string{
		"getenforce": `cat "${0%/*}/../state"`, "setenforce": `case $1 in 1) echo Enforcing ;; *) echo Permissive ;; esac >"${0%/*}/../state"`,
		"selinuxenabled": `[ "$(cat "${0%/*}/../state")" != Disabled ]`,
		"grubby":         `case $1 in --info=ALL) cat "${0%/*}/../kernels" ;; *) printf 'args="ro"\n' >"${0%/*}/../kernels" ;; esac`,
		"getsebool":      `case $1 in net_*) echo "$1 --> $(cat "${0%/*}/../bool")" ;; *) exit 1 ;; esac`,
		"setsebool":      `shift $(($# - 1)); echo "$1" >"${0%/*}/../bool"`,
	})
	write(t, h.dir+"/state", state+"\n")
	write(t, h.dir+"/bool", "off\n")
	write(t, h.dir+"/kernels", "args=\"ro selinux=0\"\nargs=\"ro\"\n")
	return h, write(t, h.dir+"/config", "# SELinux\nSELINUX=enforcing\nSELINUXTYPE=targeted\n")
}

func TestSelinux(t *testing.T) {
	h, config := selinuxHost(t, "Enforcing")
	args := func(more ...any) *value.Dict {
		return value.NewDict(append([]any{"configfile", config, "policy", "targeted"}, more...)...)
	}
	first, _ := moduletest.RunTwice(t, spec(t, "selinux"), args("state", "permissive", "update_kernel_param", true), moduletest.Options{Conn: h, Diff: true})
	const said = "Config SELinux state changed from 'enforcing' to 'permissive', SELinux state changed from 'enforcing' to 'permissive', Kernel SELinux state changed from 'inconsistent' to 'on'"
	if first.Msg != said || len(first.Diff) != 1 || get(first, "reboot_required") != false {
		t.Errorf("got %+v", first)
	}
	if got := read(t, config); got != "# SELinux\nSELINUX=permissive\nSELINUXTYPE=targeted\n" || read(t, h.dir+"/state") != "Permissive\n" {
		t.Errorf("the file is %s, the state %s", got, read(t, h.dir+"/state"))
	}
	_, second := moduletest.RunTwice(t, spec(t, "selinux"), args("state", "disabled"), moduletest.Options{Conn: h})
	if get(second, "reboot_required") != true || len(second.Warnings) != 1 || read(t, h.dir+"/state") != "Permissive\n" {
		t.Errorf("got %+v", second)
	}
	o := moduletest.Options{Conn: h}
	fails(t, "Policy strict does not exist", "selinux", o, "configfile", config, "state", "enforcing", "policy", "strict")
	fails(t, "Policy is required", "selinux", o, "state", "enforcing")
	fails(t, "Unable to find file", "selinux", o, "configfile", h.dir+"/none", "state", "disabled")
	off, _ := selinuxHost(t, "Disabled")
	r := run(t, "selinux", moduletest.Options{Conn: off}, "configfile", config, "state", "enforcing", "policy", "targeted")
	if get(r, "reboot_required") != true || r.Msg != "Config SELinux state changed from 'disabled' to 'enforcing'" {
		t.Errorf("got %+v", r)
	}
}

func TestSeboolean(t *testing.T) {
	h, _ := selinuxHost(t, "Enforcing")
	o := moduletest.Options{Conn: h}
	moduletest.RunTwice(t, spec(t, "seboolean"), value.NewDict("name", "net_admin", "state", true, "persistent", true), o)
	if calls := h.calls(); !strings.Contains(calls, "setsebool -P net_admin on") {
		t.Errorf("ran %q", calls)
	}
	moduletest.RunTwice(t, spec(t, "seboolean"), value.NewDict("name", "net_admin", "state", "off"), o)
	write(t, h.dir+"/bool", "off pending: on\n")
	if r := run(t, "seboolean", o, "name", "net_admin", "state", true); r.Changed {
		t.Errorf("what waits to be committed does not count: %+v", r)
	}
	fails(t, "SELinux boolean other does not exist.", "seboolean", o, "name", "other", "state", true)
	fails(t, "is not the name", "seboolean", o, "name", "a b", "state", true)
	off, _ := selinuxHost(t, "Disabled")
	fails(t, "SELinux is disabled on this host.", "seboolean", moduletest.Options{Conn: off}, "name", "net_admin", "state", true)
	if r := run(t, "seboolean", moduletest.Options{Conn: off}, "name", "net_admin", "state", true, "ignore_selinux_state", true); !r.Changed {
		t.Errorf("got %+v", r)
	}
	fails(t, "there are no getsebool and setsebool", "seboolean", moduletest.Options{Conn: newStubHost(t, nil)}, "name", "x", "state", true)
}

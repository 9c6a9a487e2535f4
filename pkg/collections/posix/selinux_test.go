package posix

import (
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// selinuxHost simulates a host with SELinux in the state of the file state.
func selinuxHost(t *testing.T, state string) (*moduletest.StandIns, string) {
	h := moduletest.NewStandIns(t, map[string]string{
		"getenforce": `cat "${0%/*}/../state"`, "setenforce": `case $1 in 1) echo Enforcing ;; *) echo Permissive ;; esac >"${0%/*}/../state"`,
		"selinuxenabled": `[ "$(cat "${0%/*}/../state")" != Disabled ]`,
		"grubby":         `case $1 in --info=ALL) cat "${0%/*}/../kernels" ;; *) printf 'args="ro"\n' >"${0%/*}/../kernels" ;; esac`,
		"getsebool":      `case $1 in net_*) echo "$1 --> $(cat "${0%/*}/../bool")" ;; *) exit 1 ;; esac`,
		"setsebool":      `shift $(($# - 1)); echo "$1" >"${0%/*}/../bool"`,
	})
	write(t, h.Dir+"/state", state+"\n")
	write(t, h.Dir+"/bool", "off\n")
	write(t, h.Dir+"/kernels", "args=\"ro selinux=0\"\nargs=\"ro\"\n")
	return h, write(t, h.Dir+"/config", "# SELinux\nSELINUX=enforcing\nSELINUXTYPE=targeted\n")
}

func TestSelinux(t *testing.T) {
	h, config := selinuxHost(t, "Enforcing")
	args := func(more ...any) *value.Dict {
		return value.NewDict(append([]any{"configfile", config, "policy", "targeted"}, more...)...)
	}
	first, _ := moduletest.RunTwice(t, spec(t, "selinux"), args("state", "permissive", "update_kernel_param", true),
		moduletest.Options{Conn: h, Diff: true})
	const said = "Config SELinux state changed from 'enforcing' to 'permissive', SELinux state changed from 'enforcing' to 'permissive', Kernel SELinux state changed from 'inconsistent' to 'on'"
	if first.Msg != said || len(first.Diff) != 1 || moduletest.Field(first, "reboot_required") != false {
		t.Errorf("got %+v", first)
	}
	if got := read(t, config); got != "# SELinux\nSELINUX=permissive\nSELINUXTYPE=targeted\n" ||
		read(t, h.Dir+"/state") != "Permissive\n" {
		t.Errorf("the file is %s, the state %s", got, read(t, h.Dir+"/state"))
	}
	_, second := moduletest.RunTwice(t, spec(t, "selinux"), args("state", "disabled"), moduletest.Options{Conn: h})
	if moduletest.Field(second, "reboot_required") != true || len(second.Warnings) != 1 ||
		read(t, h.Dir+"/state") != "Permissive\n" {
		t.Errorf("got %+v", second)
	}
	o := moduletest.Options{Conn: h}
	fails(t, "Policy strict does not exist", "selinux", o, "configfile", config, "state", "enforcing", "policy", "strict")
	fails(t, "Policy is required", "selinux", o, "state", "enforcing")
	fails(t, "Unable to find file", "selinux", o, "configfile", h.Dir+"/none", "state", "disabled")
	off, _ := selinuxHost(t, "Disabled")
	r := run(t, "selinux", moduletest.Options{Conn: off}, "configfile", config, "state", "enforcing", "policy", "targeted")
	if moduletest.Field(r, "reboot_required") != true ||
		r.Msg != "Config SELinux state changed from 'disabled' to 'enforcing'" {
		t.Errorf("got %+v", r)
	}
}

func TestSeboolean(t *testing.T) {
	h, _ := selinuxHost(t, "Enforcing")
	o := moduletest.Options{Conn: h}
	moduletest.RunTwice(t, spec(t, "seboolean"), value.NewDict("name", "net_admin", "state", true, "persistent", true), o)
	if calls := h.Calls(); !strings.Contains(calls, "setsebool -P net_admin on") {
		t.Errorf("ran %q", calls)
	}
	moduletest.RunTwice(t, spec(t, "seboolean"), value.NewDict("name", "net_admin", "state", "off"), o)
	write(t, h.Dir+"/bool", "off pending: on\n")
	if r := run(t, "seboolean", o, "name", "net_admin", "state", true); r.Changed {
		t.Errorf("what waits to be committed does not count: %+v", r)
	}
	fails(t, "SELinux boolean other does not exist.", "seboolean", o, "name", "other", "state", true)
	fails(t, "must be the name of a boolean", "seboolean", o, "name", "a b", "state", true)
	off, _ := selinuxHost(t, "Disabled")
	fails(t, "SELinux is disabled on this host.", "seboolean", moduletest.Options{Conn: off}, "name", "net_admin", "state",
		true)
	if r := run(t, "seboolean", moduletest.Options{Conn: off}, "name", "net_admin", "state", true, "ignore_selinux_state",
		true); !r.Changed {
		t.Errorf("got %+v", r)
	}
	fails(t, "there are no getsebool and setsebool", "seboolean", moduletest.Options{Conn: moduletest.NewStandIns(t, nil)},
		"name", "x", "state", true)
}

package system

import (
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// capabilityTools keep the capabilities of a file in a second file, and prints
// them in the way of one version of getcap, whose text is put before.
func capabilityTools(t *testing.T, before string) *moduletest.StandIns {
	return moduletest.NewStandIns(t, map[string]string{
		"getcap": `shift; if [ ! -e "$1" ]; then echo "$1 (No such file or directory)" >&2; elif [ -s "$1.caps" ]; then printf '%s` + before + ` %s\n' "$1" "$(cat "$1.caps")"; else echo "$1"; fi`,
		"setcap": `printf %s "$1" >"$2.caps"`,
	})
}

func TestCapabilities(t *testing.T) {
	for _, before := range []string{"", " ="} {
		o := moduletest.Options{Conn: capabilityTools(t, before), Diff: true}
		file := write(t, t.TempDir()+"/it's a program", "")
		twice := func(want string, pairs ...any) {
			t.Helper()
			first, _ := moduletest.RunTwice(t, spec(t, "capabilities"), value.NewDict(append(pairs, "path", file)...), o)
			if got := read(t, file+".caps"); got != want || first.Msg != "capabilities changed" {
				t.Errorf("%v: got %q, want %q: %+v", pairs, got, want, first)
			}
		}
		twice("cap_net_raw+ep", "capability", "CAP_NET_RAW=pe")
		write(t, file+".caps", "cap_net_admin,cap_net_raw=ep cap_kill+i")
		twice("cap_net_admin+ep cap_kill+i cap_net_raw+eip", "capability", "cap_net_raw+eip")
		twice("cap_net_admin+ep cap_net_raw+eip", "capability", "cap_kill", "state", "absent")
		if r := run(t, "capabilities", o, "path", file, "capability", "cap_net_admin=ep"); r.Changed {
			t.Errorf("what the file has counts as a change: %+v", r)
		}
	}
	o := moduletest.Options{Conn: capabilityTools(t, "")}
	fails(t, "has no flags", "capabilities", o, "path", "/bin/sh", "capability", "cap_net_raw")
	fails(t, "is not a capability", "capabilities", o, "path", "/bin/sh", "capability", "cap_net_raw+ex")
	fails(t, "No such file", "capabilities", o, "path", "/not/there", "capability", "cap_net_raw+ep")
}

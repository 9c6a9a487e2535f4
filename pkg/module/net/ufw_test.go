package net

import (
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestUFWResetsTwiceInASecond(t *testing.T) {
	host := moduletest.NewStandIns(t, map[string]string{"ufw": `case $* in
status*) echo "Status: inactive" ;;
*reset) if [ -z "$(grep tried "$0.log" 2>/dev/null)" ]; then echo tried >"$0.log"; echo "ERROR: '/etc/ufw/user.rules.20260101_000000' already exists. Aborting" >&2; exit 1; fi ;;
esac`})
	r := moduletest.Run(t, moduletest.Find(t, Modules(), "ufw"), value.NewDict("state", "reset"),
		moduletest.Options{Conn: host})
	if r.Failed || !r.Changed {
		t.Errorf("a second reset in a second: %+v", r)
	}
}

func TestUFWRefuses(t *testing.T) {
	for text, args := range map[string]*value.Dict{
		"one of the following is required": value.NewDict(),
		"exclusive: name|to_port":          value.NewDict("rule", "allow", "name", "x", "port", "1"),
		"Direction must be specified":      value.NewDict("rule", "allow", "interface", "eth0"),
		"does not begin with a dash":       value.NewDict("rule", "allow", "port", "--force"),
	} {
		moduletest.Fails(t, text, moduletest.Find(t, Modules(), "ufw"), args, moduletest.Options{Conn: moduletest.Unreachable{}})
	}
}

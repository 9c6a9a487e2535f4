package firewall

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
	r := moduletest.Run(t, moduletest.Find(t, Modules(), "ufw"), value.NewDict("state", "reset"), moduletest.Options{Conn: host})
	if r.Failed || !r.Changed {
		t.Errorf("a second reset in a second: %+v", r)
	}
}

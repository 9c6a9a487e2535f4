package packages

import (
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
)

const zypperStub = `case "$*" in
*broken*) echo '<stream><message type="error">No provider of &apos;broken&apos; found.</message></stream>'; exit 104 ;;
*dead*) echo '<stream><message type="error">Repository is gone.</message></stream>'; exit 4 ;;
*odd*) echo '<stream>'; exit 0 ;;
*" +here"*) echo '<stream><message type="info">Nothing to do.</message></stream>' ;;
*) echo '<stream><install-summary><to-install><solvable name="gone" edition="1-1"/></to-install>
	<to-upgrade><solvable name="dep" edition-old="1-1" edition="2-1"/></to-upgrade></install-summary></stream>'; exit 102 ;;
esac`

func TestZypper(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"rpm": rpmStub, "zypper": zypperStub})
	const zypper, install = "zypper --quiet --non-interactive --xmlout ",
		"install --type package --auto-agree-with-licenses "
	for _, c := range []struct {
		args    []any
		check   bool
		changed bool
		call    string
	}{
		{[]any{"name", "here"}, false, false, ""},
		{[]any{"name", "gone"}, false, true, zypper + install + "--no-recommends -- +gone"},
		{[]any{"name", "gone"}, true, true, zypper +
			"install --type package --dry-run --auto-agree-with-licenses --no-recommends -- +gone"},
		{[]any{"name", "here", "state", "latest", "disable_recommends", false}, false, false, zypper + install + "-- +here"},
		{[]any{"name", "gone", "state", "absent"}, false, false, ""},
		{[]any{"name", "where", "state", "absent", "disable_gpg_check", true}, false, true, zypper +
			"remove --type package where"},
		{[]any{"name", "gone", "disable_gpg_check", true, "oldpackage", true}, false, true, zypper + "--no-gpg-checks " +
			install + "--no-recommends --oldpackage -- +gone"},
		{[]any{"name", []any{"-here", "gone>=1.2", "http://x/y.rpm"}}, false, true, zypper + install +
			"--no-recommends --oldpackage -- http://x/y.rpm -here +gone>=1.2"},
		{[]any{"name", "gone-1.0"}, false, true, zypper + install + "--no-recommends -- +gone-1.0"},
		{[]any{"name", "*", "state", "latest"}, false, true, zypper +
			"update --type package --auto-agree-with-licenses --no-recommends"},
		{[]any{"name", "*", "state", "latest", "type", "patch"}, false, true, zypper +
			"patch --auto-agree-with-licenses --no-recommends"},
		{[]any{"name", "*", "state", "dist-upgrade", "allow_vendor_change", true, "extra_args", "-l -y"}, false, true,
			zypper + "dist-upgrade --auto-agree-with-licenses --no-recommends --allow-vendor-change -l -y"},
	} {
		r := run(t, "zypper", moduletest.Options{Conn: h, Check: c.check}, c.args...)
		calls := strings.Split(h.Calls(), "\n")
		last := calls[len(calls)-1]
		if strings.HasPrefix(last, "rpm") {
			last = ""
		}
		if r.Failed || r.Changed != c.changed || last != c.call {
			t.Errorf("%v: changed %v, ran %q, want %v, %q: %s", c.args, r.Changed, last, c.changed, c.call, r.Msg)
		}
	}
	r := run(t, "zypper", moduletest.Options{Conn: h, Diff: true}, "name", "gone")
	if want := "installed: gone\nupgraded: dep (1-1 => 2-1)\n"; len(r.Diff) != 1 || r.Diff[0].Prepared != want {
		t.Errorf("diff %+v, want %q", r.Diff, want)
	}
	for want, args := range map[string][]any{
		"No provider of 'broken' found.":            {"name", "broken"},
		"return code 4. Repository is gone.":        {"name", "dead"},
		"Failed to parse zypper xml output":         {"name", "odd"},
		"Can not remove via URL.":                   {"name", "./x.rpm", "state", "absent"},
		"Can not remove patches.":                   {"name", "x", "state", "absent", "type", "patch"},
		"Can not combine '+' prefix":                {"name", "+x", "state", "removed"},
		"Can not dist-upgrade specific packages.":   {"name", "x", "state", "dist-upgrade"},
		`must be the name of a package, got "x\ny"`: {"name", []any{"x\ny"}},
	} {
		fails(t, want, "zypper", moduletest.Options{Conn: h}, args...)
	}
}

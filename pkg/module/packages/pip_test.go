package packages

import (
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestPip(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"pip3": `case "$*" in
list*) echo here==1.0 ;;
*none*) echo "ERROR: no matching distribution" >&2; exit 1 ;;
uninstall*) echo "Successfully uninstalled here-1.0" ;;
*dry-run*) echo "Would install new-1.0" ;;
*) echo "Successfully installed new-1.0" ;;
esac`})
	for _, c := range []struct {
		args    []any
		check   bool
		changed bool
		cmd     string // "" if nothing is to be run
	}{
		{[]any{"name", "here"}, false, false, ""},
		{[]any{"name", "new", "extra_args", "--no-index -q"}, false, true, "['pip3', 'install', '--no-index', '-q', 'new']"},
		{[]any{"name", "new"}, true, true, ""},
		{[]any{"name", "here", "state", "latest", "extra_args", "-q"}, false, true,
			"['pip3', 'install', '-U', '-q', 'here']"},
		{[]any{"name", "here", "state", "latest"}, true, true,
			"['pip3', 'install', '-U', '--dry-run', '--no-cache-dir', 'here']"},
		{[]any{"requirements", "/r.txt"}, false, true, "['pip3', 'install', '-r', '/r.txt']"},
		{[]any{"name", "here", "state", "forcereinstall"}, false, true,
			"['pip3', 'install', '-U', '--force-reinstall', 'here']"},
		{[]any{"name", "here,gone", "state", "absent"}, false, true, "['pip3', 'uninstall', '-y', 'here']"},
	} {
		r := run(t, "pip", moduletest.Options{Conn: h, Check: c.check}, c.args...)
		cmd := ""
		if r.Data.Has("cmd") {
			cmd = value.Repr(moduletest.Field(r, "cmd"))
		}
		if r.Failed || r.Changed != c.changed || cmd != c.cmd {
			t.Errorf("%v: changed %v, ran %s, want %v, %s", c.args, r.Changed, cmd, c.changed, c.cmd)
		}
		if out, _ := moduletest.Field(r, "stdout").(string); (out != "") != (cmd != "") || out != "" &&
			!strings.HasSuffix(out, "\n") {
			t.Errorf("%v: stdout %q", c.args, out)
		}
	}
	r := run(t, "pip", moduletest.Options{Conn: h}, "name", "none")
	if err, _ := moduletest.Field(r, "stderr").(string); !r.Failed ||
		!strings.Contains(r.Msg, "no matching distribution") || err != "ERROR: no matching distribution\n" ||
		r.Data.Has("name") {
		t.Errorf("got %+v", r)
	}
}

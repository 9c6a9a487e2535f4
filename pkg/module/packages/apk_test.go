package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

const apkStub = `case "$*" in
"-v info --installed here"*|"-v info --installed needed") exit 0 ;;
"-v info --description bundle") echo "bundle: virtual meta package" ;;
"-v info --depends bundle") printf 'bundle-1 depends on:\nhere\nold\n' ;;
"version "*old) printf 'Installed:   Available:\nold-1.0-r0   < 1.1-r0\n' ;;
*info*) exit 1 ;;
version*) ;;
*broken*) echo "ERROR: unable to select packages" >&2; exit 1 ;;
update) echo "OK: 20000 distinct packages" ;;
*upgrade*) echo "fetch http://x"; echo "OK: 9 MiB" ;;
*) echo "(1/1) Doing gone (1-r0)"; echo "OK: 9 MiB" ;;
esac`

func TestApk(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"apk": apkStub})
	world := filepath.Join(t.TempDir(), "world")
	if err := os.WriteFile(world, []byte("here\nold>0.9 tagged@edge\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args    []any
		check   bool
		changed bool
		call    string // the last that is no question
		msg     string
	}{
		{[]any{"name", "here"}, false, false, "", "package(s) already installed"},
		{[]any{"name", "here,old,tagged"}, false, false, "", "package(s) already installed"},
		{[]any{"name", "here,gone"}, false, true, "apk add gone", "installed gone package(s)"},
		{[]any{"name", "gone"}, true, true, "apk add --simulate gone", "installed gone package(s)"},
		{[]any{"name", "here", "state", "latest"}, false, false, "", "package(s) already installed"},
		{[]any{"name", "here,old,gone", "state", "latest"}, false, true, "apk add --upgrade gone old",
			"installed gone old package(s)"},
		{[]any{"name", "bundle", "state", "latest"}, true, true, "apk add --upgrade --simulate old",
			"installed old package(s)"},
		{[]any{"name", "bundle"}, false, false, "", "package(s) already installed"},
		{[]any{"name", "gone", "state", "absent"}, false, false, "", "package(s) already removed"},
		{[]any{"name", "here", "state", "removed"}, true, true, "apk del --purge --simulate here", "removed here package(s)"},
		{[]any{"upgrade", true}, false, false, "apk upgrade", "packages already upgraded"},
		{[]any{"upgrade", true, "available", true, "no_cache", true}, true, false,
			"apk --no-cache upgrade --simulate --available", "packages already upgraded"},
		{[]any{"update_cache", true}, false, true, "apk update", "updated repository indexes"},
		{[]any{"update_cache", true}, true, true, "", "updated repository indexes"},
		{[]any{"name", "gone", "repository", "/a,/b"}, false, true,
			"apk --repository /a --repositories-file /dev/null --repository /b --repositories-file /dev/null add gone",
			"installed gone package(s)"},
	} {
		r := run(t, "apk", moduletest.Options{Conn: h, Check: c.check}, append(c.args, "world", world)...)
		call := ""
		for line := range strings.Lines(h.Calls()) {
			if !strings.Contains(line, " info ") && !strings.Contains(line, " version ") {
				call = strings.TrimSpace(line)
			}
		}
		if r.Failed || r.Changed != c.changed || call != c.call || r.Msg != c.msg {
			t.Errorf("%v: changed %v, ran %q, said %q, want %v, %q, %q", c.args, r.Changed, call, r.Msg, c.changed, c.call,
				c.msg)
		}
	}
	r := run(t, "apk", moduletest.Options{Conn: h}, "name", "gone", "world", world)
	if got := value.Str(moduletest.Field(r, "packages")); got != "['gone']" {
		t.Errorf("packages %s", got)
	}
	for want, args := range map[string][]any{
		"unable to select packages":        {"name", "broken"},
		"needed is still installed":        {"name", "needed", "state", "absent"},
		"/no/such does not exist":          {"name", "x", "world", "/no/such"},
		"one of the following is required": {},
		"mutually exclusive":               {"name", "x", "upgrade", true},
	} {
		fails(t, want, "apk", moduletest.Options{Conn: h}, args...)
	}
}

package exec

import (
	"os"
	"strings"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// asking is a program that asks three questions on its terminal.
const asking = `test -t 0 || exit 9
printf 'Name: '; read -r a
stty -echo; printf 'Password: '; read -r b; echo; printf 'Password: '; read -r c; stty echo; echo
echo "$a,$b,$c"; [ "$b" = "$c" ]`

func TestExpect(t *testing.T) {
	conn := moduletest.Count(nil)
	spec := moduletest.Find(t, Modules(), "expect")
	ask := func(o moduletest.Options, pairs ...any) module.Result {
		t.Helper()
		o.Conn = conn
		return moduletest.Run(t, spec, value.NewDict(append(pairs, "command", "sh -c '"+
			strings.ReplaceAll(asking, "'", `'\''`)+"'")...), o)
	}
	r := ask(moduletest.Options{}, "responses",
		value.NewDict("Name:", "ada", "(?i)(?<!x)p[a-z]{,7}:", []any{"it's s3cret", "it's s3cret"}))
	out, _ := r.Data.Get("stdout")
	if rc, _ := r.Data.Get("rc"); !r.Changed || r.Failed || rc != 0 ||
		!strings.HasSuffix(out.(string), "ada,it's s3cret,it's s3cret") {
		t.Errorf("got %+v: %s", r, value.Repr(r.Data))
	}
	if strings.Contains(strings.Join(conn.Lines(), ""), "s3cret") {
		t.Error("an answer stands in a command line")
	}
	r = ask(moduletest.Options{}, "responses", value.NewDict("Name:", "ada", "Password:", []any{"one", "two"}))
	if rc, _ := r.Data.Get("rc"); !r.Failed || rc != 1 || r.Msg != "non-zero return code" {
		t.Errorf("got %+v: %s", r, value.Repr(r.Data))
	}
	r = ask(moduletest.Options{}, "responses", value.NewDict("Name:", "ada", "Password:", []any{"one"}))
	if !r.Failed || r.Msg != "No remaining responses for 'Password:'" {
		t.Errorf("got %+v: %s", r, value.Repr(r.Data))
	}
	r = ask(moduletest.Options{}, "responses", value.NewDict("Nobody:", "ada"), "timeout", 1)
	if !r.Failed || r.Msg != "command exceeded timeout" {
		t.Errorf("got %+v: %s", r, value.Repr(r.Data))
	}
	if r = ask(moduletest.Options{Check: true}, "responses", value.NewDict("Name:", "x")); !r.Skipped {
		t.Errorf("check mode: %+v", r)
	}
	done := t.TempDir() + "/done"
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r = ask(moduletest.Options{}, "responses", value.NewDict("Name:", "x"), "creates", done); r.Changed ||
		!strings.Contains(r.Msg, "since '"+done+"' exists") {
		t.Errorf("creates: %+v", r)
	}
	if _, err := moduletest.Try(t, spec, value.NewDict("command", "true", "responses", value.NewDict("(", "x")),
		moduletest.Options{}); err == nil || !strings.Contains(err.Error(),
		`responses: "(": missing ), unterminated subpattern at position 0`) {
		t.Errorf("got %v", err)
	}
}

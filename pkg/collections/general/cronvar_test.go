package general

import (
	"path/filepath"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestCronVar(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tab")
	o := moduletest.Options{Diff: true}
	twice := func(want string, pairs ...any) {
		t.Helper()
		moduletest.RunTwice(t, spec(t, "cronvar"), value.NewDict(append([]any{"cron_file", file}, pairs...)...), o)
		if got := read(t, file); got != want {
			t.Errorf("%v: got\n%swant\n%s", pairs, got, want)
		}
	}
	twice("A=1\n", "name", "A", "value", 1)
	write(t, file, "B = two words\n* * * * * root x\nA=1\n")
	if r := run(t, "cronvar", o, "cron_file", file, "name", "B", "value", "two words"); r.Changed ||
		value.Repr(moduletest.Field(r, "vars")) != "['B', 'A']" {
		t.Errorf("a value that already exists: %+v", r)
	}
	twice("B=\"it's\"\n* * * * * root x\nA=1\n", "name", "B", "value", `"it's"`)
	twice("B=\"it's\"\n* * * * * root x\nA=1\nC=\n", "name", "C", "value", "", "insertafter", "A")
	twice("D=4\nB=\"it's\"\n* * * * * root x\nA=1\nC=\n", "name", "D", "value", 4, "insertbefore", "B")
	for _, name := range []string{"A", "B", "C"} {
		run(t, "cronvar", o, "cron_file", file, "name", name, "state", "absent")
	}
	twice("* * * * * root x\n", "name", "D", "state", "absent")
	fails(t, "must specify 'value'", "cronvar", o, "cron_file", file, "name", "A")
	fails(t, "must be the name of a variable", "cronvar", o, "cron_file", file, "name", "A=B", "value", "x")
}

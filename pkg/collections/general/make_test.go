package general

import (
	"os"
	osexec "os/exec"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestMake(t *testing.T) {
	if _, err := osexec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	// If make runs the tests, it passes these variables to the make under test, which then prints its folder.
	for _, name := range []string{"MAKELEVEL", "MAKEFLAGS", "MFLAGS"} {
		t.Setenv(name, "")
	}
	dir := t.TempDir() + "/it's a folder"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	rules := "first: source\n\t@echo making $(WHAT); cp source first\nbad:\n\t@echo no >&2; exit 3\n"
	for name, text := range map[string]string{"Makefile": rules, "source": "x", "other.mk": rules} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spec := moduletest.Find(t, Modules(), "make")
	args := func(pairs ...any) *value.Dict { return value.NewDict(append(pairs, "chdir", dir)...) }
	first, second := moduletest.RunTwice(t, spec,
		args("target", "first", "jobs", 2, "file", "other.mk", "params", value.NewDict("WHAT", "it all")),
		moduletest.Options{})
	if got := moduletest.Field(first, "stdout"); got != "making it all" {
		t.Errorf("make printed %q", got)
	}
	if got, _ := moduletest.Field(second, "command").(string); !strings.HasSuffix(got,
		"make -j 2 -f other.mk first 'WHAT=it all'") {
		t.Errorf("the command is %q", got)
	}
	if err := os.Remove(dir + "/first"); err != nil {
		t.Fatal(err)
	}
	r, _ := moduletest.RunTwice(t, spec, args(), moduletest.Options{})
	if moduletest.Field(r, "target") != nil || moduletest.Field(r, "stdout") != "making" {
		t.Errorf("the first target: %+v", r)
	}
	bad, err := moduletest.Try(t, spec, args("target", "bad"), moduletest.Options{})
	if err != nil || !bad.Failed || moduletest.Field(bad, "rc") != 2 || !strings.HasPrefix(bad.Msg, "no\n") ||
		!strings.Contains(bad.Msg, "[Makefile:4: bad] Error 3") {
		t.Errorf("%+v, %v", bad, err)
	}
	for want, pairs := range map[string][]any{
		"folder /not/there does not exist": {"chdir", "/not/there"},
		"Failed to find required":          {"chdir", dir, "make", "not-there"},
		"target|targets":                   {"chdir", dir, "target", "a", "targets", []any{"b"}},
	} {
		moduletest.Fails(t, want, spec, value.NewDict(pairs...), moduletest.Options{})
	}
}

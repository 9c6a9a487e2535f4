package general

import (
	"os"
	"path/filepath"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestSudoers(t *testing.T) {
	dir := t.TempDir()
	args := func(pairs ...any) []any { return append([]any{"sudoers_path", dir, "name", "ops"}, pairs...) }
	o := moduletest.Options{Diff: true}
	for _, c := range []struct {
		rule  string
		pairs []any
	}{
		{"%ops ALL=NOPASSWD: /bin/a, /bin/b\n", args("group", "ops", "commands", []any{"/bin/a", "/bin/b"})},
		{"ann h1=(app)SETENV:NOEXEC: ALL\n", args("user", "ann", "host", "h1", "runas", "app", "nopassword", false, "setenv",
			true, "noexec", true, "commands", "ALL")},
	} {
		moduletest.RunTwice(t, spec(t, "sudoers"), value.NewDict(c.pairs...), o)
		if got := read(t, filepath.Join(dir, "ops")); got != c.rule {
			t.Errorf("got %q, want %q", got, c.rule)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "ops"), 0o644); err != nil {
		t.Fatal(err)
	}
	moduletest.RunTwice(t, spec(t, "sudoers"), value.NewDict(args("user", "ann", "commands", "ALL")...), o)
	if info, err := os.Stat(filepath.Join(dir, "ops")); err != nil || info.Mode().Perm() != 0o440 {
		t.Errorf("got %v, %v", info, err)
	}
	moduletest.RunTwice(t, spec(t, "sudoers"), value.NewDict(args("state", "absent")...), o)
	for text, pairs := range map[string][]any{
		"mutually exclusive: user|group": args("user", "a", "group", "b", "commands", "ALL"),
		"one of the following":           args("commands", "ALL"),
		"missing: commands":              args("user", "a"),
		"must be one line":               args("user", "a\nb ALL=ALL", "commands", "ALL"),
		"the name of a file":             {"name", "../x", "state", "absent"},
	} {
		fails(t, text, "sudoers", o, pairs...)
	}
}

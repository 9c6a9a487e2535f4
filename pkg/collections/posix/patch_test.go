package posix

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestPatch(t *testing.T) {
	if _, err := exec.LookPath("patch"); err != nil {
		t.Skip("patch is not installed")
	}
	dir, control := filepath.Join(t.TempDir(), "it's a folder"), t.TempDir()
	one, two := "a\nb\nc\n", "1\n2\n3\n"
	for name, text := range map[string]string{
		filepath.Join(dir, "one"): one, filepath.Join(dir, "two"): two,
		filepath.Join(control, "files", "one.patch"):  "--- x/one\n+++ y/one\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
		filepath.Join(control, "files", "both.patch"): "--- x/one\n+++ y/one\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n--- x/two\n+++ y/two\n@@ -1,3 +1,3 @@\n 1\n-2\n+TWO\n 3\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(name, want string) {
		t.Helper()
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != want {
			t.Errorf("%s holds %q, want %q (%v)", name, text, want, err)
		}
	}
	spec := moduletest.Find(t, Modules(), "patch")
	o := moduletest.Options{Dir: control}
	twice := func(pairs ...any) {
		t.Helper()
		moduletest.RunTwice(t, spec, value.NewDict(pairs...), o)
	}

	twice("src", "one.patch", "dest", dir+"/one", "backup", true)
	holds("one", "a\nB\nc\n")
	holds("one.~1~", one)
	// One of two files is already patched: the other must not be changed.
	moduletest.Fails(t, "previously applied", spec, value.NewDict("src", "both.patch", "basedir", dir, "strip", 1), o)
	holds("two", two)
	twice("src", control+"/files/one.patch", "remote_src", true, "dest", dir+"/one", "state", "absent")
	holds("one", one)
	twice("src", "both.patch", "basedir", dir, "strip", 1)
	holds("one", "a\nB\nc\n")
	holds("two", "1\nTWO\n3\n")

	for want, pairs := range map[string][]any{
		"one of the following is required": {"src", "one.patch"},
		"doesn't exist or not writable":    {"src", "one.patch", "dest", dir + "/three"},
		"basedir /not/there doesn't exist": {"src", "one.patch", "basedir", "/not/there"},
		"src /not/there doesn't exist":     {"src", "/not/there", "remote_src", true, "basedir", dir},
	} {
		moduletest.Fails(t, want, spec, value.NewDict(pairs...), o)
	}
}

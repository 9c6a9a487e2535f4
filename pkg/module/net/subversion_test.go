package net

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestSubversion(t *testing.T) {
	for _, program := range []string{"svn", "svnadmin"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	dir := t.TempDir() + "/it's a folder"
	run := func(script string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run(`svnadmin create repo; mkdir in; echo 1 >in/a; svn import -q -m one in "file://$PWD/repo"; rm -r in`)
	url := "file://" + strings.ReplaceAll(dir, " ", "%20") + "/repo" // as svn shows it
	co := dir + "/co"
	spec := moduletest.Find(t, Modules(), "subversion")
	args := func(pairs ...any) *value.Dict { return value.NewDict(append(pairs, "repo", url)...) }
	revision := func(n, of string) string { return "['Revision: " + n + `', "URL: ` + of + `"]` }
	field := func(v any) string { return value.Repr(v) }

	first, second := moduletest.RunTwice(t, spec, args("dest", co, "password", "s3cret"), moduletest.Options{})
	if moduletest.Field(first, "before") != nil || field(moduletest.Field(first, "after")) != revision("1", url) ||
		field(moduletest.Field(second, "before")) != revision("1", url) {
		t.Errorf("%+v, then %+v", first, second)
	}
	if _, err := os.Stat(os.Getenv("HOME") + "/.subversion/auth/svn.simple"); err == nil {
		run(`! grep -rqF s3cret "$HOME/.subversion/auth"`)
	}

	// A newer revision: check mode tells, a run brings it.
	run(`svn co -q "file://$PWD/repo" w; echo 2 >>w/a; svn ci -q -m two w`)
	r, _ := moduletest.RunTwice(t, spec, args("dest", co), moduletest.Options{})
	if field(moduletest.Field(r, "after")) != revision("2", url) {
		t.Errorf("%+v", r)
	}
	moduletest.RunTwice(t, spec, args("dest", co, "revision", 1), moduletest.Options{})

	// An address that moved is switched to.
	run(`svn copy -q -m branch "file://$PWD/repo" "file://$PWD/repo/branch"`)
	branch := value.NewDict("repo", url+"/branch", "dest", co)
	r, _ = moduletest.RunTwice(t, spec, branch, moduletest.Options{})
	if field(moduletest.Field(r, "after")) != revision("3", url+"/branch") {
		t.Errorf("%+v", r)
	}
	moduletest.Run(t, spec, args("dest", co), moduletest.Options{})

	// Edits stay unless they are forced away.
	run(`echo edited >co/a`)
	moduletest.Fails(t, "modified files exist", spec, args("dest", co), moduletest.Options{})
	moduletest.Fails(t, "modified files exist", spec, args("dest", co), moduletest.Options{Check: true})
	run(`grep -q edited co/a`)
	moduletest.RunTwice(t, spec, args("dest", co, "force", true), moduletest.Options{})
	run(`! grep -q edited co/a; mkdir there; echo mine >there/a`)

	// A folder that is no checkout becomes one where that is asked for.
	moduletest.Fails(t, "not a subversion repository", spec, args("dest", dir+"/there"), moduletest.Options{})
	moduletest.RunTwice(t, spec, args("dest", dir+"/there", "in_place", true, "force", true), moduletest.Options{})
	run(`! grep -q mine there/a; rm -r repo`)
	moduletest.Fails(t, "E170013", spec, args("dest", dir+"/other"), moduletest.Options{})
	moduletest.Fails(t, "set it with password", spec,
		value.NewDict("repo", "https://ada:s3cret@svn.example.org/app", "dest", co), moduletest.Options{})
	moduletest.Fails(t, "must not begin with a dash", spec, value.NewDict("repo", "--config-dir=x", "dest", co),
		moduletest.Options{})
}

package general

import (
	"os"
	"os/exec"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestGitConfig(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Setenv("HOME", t.TempDir())
	file := t.TempDir() + "/it's a file"
	spec := moduletest.Find(t, Modules(), "git_config")
	o := moduletest.Options{Diff: true}
	args := func(pairs ...any) *value.Dict {
		return value.NewDict(append(pairs, "scope", "file", "file", file)...)
	}

	// A setting requires a section, and in check mode a value does, too.
	dry := o
	dry.Check = true
	if r := moduletest.Run(t, spec, args("name", "nosection", "value", "x"), dry); len(r.Diff) != 1 ||
		r.Diff[0].Before != "\n" {
		t.Errorf("%+v", r)
	}

	first, second := moduletest.RunTwice(t, spec, args("name", "user.email", "value", "it's@example.org"), o)
	if moduletest.Field(first, "msg") != "setting changed" || moduletest.Field(second, "msg") != "" ||
		len(first.Diff) != 1 || first.Diff[0].After != "it's@example.org\n" {
		t.Errorf("%+v, then %+v", first, second)
	}
	moduletest.RunTwice(t, spec, args("name", "safe.directory", "value", "/srv/a"), o)
	r, _ := moduletest.RunTwice(t, spec, args("name", "safe.directory", "value", "/srv/b", "add_mode", "add"), o)
	if r.Diff[0].After != "/srv/a\n/srv/b\n" {
		t.Errorf("adding shows %+v", r.Diff)
	}
	if got := configValue(t, moduletest.Run(t, spec, args("name", "safe.directory"), o)); got != "/srv/a" {
		t.Errorf("the first value is %q", got)
	}
	moduletest.RunTwice(t, spec, args("name", "safe.directory", "value", "/srv/b"), o)
	all := moduletest.Run(t, spec, args("list_all", true), o)
	if got := value.Repr(all.Data); got != `{'msg': '', 'config_values': {'user.email': "it's@example.org", 'safe.directory': '/srv/b'}}` {
		t.Errorf("all are %s", got)
	}
	_, gone := moduletest.RunTwice(t, spec, args("name", "safe.directory", "state", "absent"), o)
	if moduletest.Field(gone, "msg") != "no setting to unset" {
		t.Errorf("%+v", gone)
	}
	if got := configValue(t, moduletest.Run(t, spec, args("name", "safe.directory"), o)); got != "" {
		t.Errorf("what is not set is %q", got)
	}

	// The scope is the user, whose home folder contains no git config yet.
	if r := moduletest.Run(t, spec, value.NewDict("list_all", true, "scope", "global"), o); r.Changed ||
		value.Repr(r.Data) != "{'msg': '', 'config_values': {}}" {
		t.Errorf("%+v", r)
	}
	moduletest.RunTwice(t, spec, value.NewDict("name", "a.b", "value", "c", "scope", "global"), o)
	if _, err := os.Stat(os.Getenv("HOME") + "/.gitconfig"); err != nil {
		t.Error(err)
	}

	for want, pairs := range map[string][]any{
		"scope is local but all of the following are missing: repo": {"name", "a.b", "value", "c", "scope", "local"},
		"scope is file but all of the following are missing: file":  {"name", "a.b", "value", "c", "scope", "file"},
		"one of the following is required: list_all, name":          {"value", "c"},
		"mutually exclusive: list_all|name":                         {"name", "a.b", "list_all", true},
		"key does not contain a section: a": {"name", "a", "value", "c", "scope", "file", "file",
			file},
		"there is no folder /not/there": {"name", "a.b", "value", "c", "scope", "local", "repo",
			"/not/there"},
	} {
		moduletest.Fails(t, want, spec, value.NewDict(pairs...), o)
	}
}

func configValue(t *testing.T, r module.Result) string {
	t.Helper()
	v, ok := r.Data.Get("config_value")
	if !ok || r.Changed {
		t.Errorf("a task that only asks tells %+v", r)
	}
	return value.Str(v)
}

package general

import (
	"os"
	"path/filepath"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestSSHConfigEntries(t *testing.T) {
	const file = "# mine\nHost *\n  Compression yes\n\nHost = one two\n\tHostName one.example\n\t# the key\n\tIdentityFile ~/.ssh/a\n\tPort=22\n\n# last\nMatch user x\n\tPort 1\n"
	cases := []struct {
		name, host string
		want       []sshOption
		text       string // expected content of the file; "" for no change
	}{
		{"as it is, in other letters and with an equals sign", "one two",
			[]sshOption{{"hostname", "one.example"}, {"port", "22"}}, ""},
		{"another value, in its place", "one two", []sshOption{{"port", "23"}},
			"# mine\nHost *\n  Compression yes\n\nHost = one two\n\tHostName one.example\n\t# the key\n\tIdentityFile ~/.ssh/a\n\tport 23\n\n# last\nMatch user x\n\tPort 1\n"},
		{"a new option, before the comment of what follows", "one two", []sshOption{{"user", "git"}},
			"# mine\nHost *\n  Compression yes\n\nHost = one two\n\tHostName one.example\n\t# the key\n\tIdentityFile ~/.ssh/a\n\tPort=22\n\tuser git\n\n# last\nMatch user x\n\tPort 1\n"},
		{"part of the patterns is another entry", "one", []sshOption{{"user", "git"}}, file + "Host one\n    user git\n"},
		{"the entry for all", "*", []sshOption{{"compression", "no"}},
			"# mine\nHost *\n  compression no\n\nHost = one two\n\tHostName one.example\n\t# the key\n\tIdentityFile ~/.ssh/a\n\tPort=22\n\n# last\nMatch user x\n\tPort 1\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := c.text
			if want == "" {
				want = file
			}
			for range 2 {
				f := sshFile{lines: module.Lines(file)}
				f.keep(c.host, c.want)
				if got := module.JoinLines(f.lines); got != want || (f.added || f.changed) != (c.text != "") {
					t.Errorf("changed %v, got\n%swant\n%s", f.added || f.changed, got, want)
				}
				f = sshFile{lines: module.Lines(want)}
				if f.keep(c.host, c.want); f.added || f.changed {
					t.Errorf("changed the second time:\n%s", module.JoinLines(f.lines))
				}
			}
		})
	}
	f := sshFile{lines: module.Lines("Host a\n  IdentityFile x\n  identityfile y\n  Port 1\n  Port 2\nHost b\n Port 3\nHost a\nPort 2\n")}
	f.keep("a", []sshOption{{"identityfile", "y"}, {"port", "2"}})
	if got := module.JoinLines(f.lines); got != "Host a\n  IdentityFile x\n  identityfile y\n  port 2\nHost b\n Port 3\nHost a\nPort 2\n" {
		t.Errorf("one of several keys, and a second line without meaning: got\n%s", got)
	}
	f.remove("a")
	if got := module.JoinLines(f.lines); got != "Host b\n Port 3\n" {
		t.Errorf("after removal of both there is\n%s", got)
	}
}

func TestSSHConfigFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "config")
	args := func(pairs ...any) *value.Dict {
		return value.NewDict(append([]any{"ssh_config_file", file, "host", "web"}, pairs...)...)
	}
	o := moduletest.Options{Diff: true}
	twice := func(want string, pairs ...any) {
		t.Helper()
		moduletest.RunTwice(t, spec(t, "ssh_config"), args(pairs...), o)
		if got := read(t, file); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
	twice("Host web\n    hostname web.example\n    port 2222\n    forwardagent yes\n    controlmaster no\n    controlpersist yes\n    serveraliveinterval 30\n",
		"hostname", "web.example", "port", 2222, "forward_agent", true, "controlmaster", false, "controlpersist", true,
		"other_options", value.NewDict("serveraliveinterval", 30))
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
	r := run(t, "ssh_config", o, "ssh_config_file", file, "host", "web", "port", "22")
	if got := value.Repr(moduletest.Field(r, "hosts_changed")); got != "['web']" {
		t.Errorf("hosts_changed is %s", got)
	}
	diff, _ := moduletest.Field(r, "hosts_change_diff").([]any)[0].(*value.Dict).Get("web")
	was, _ := diff.(*value.Dict).Get("old")
	if port, _ := was.(*value.Dict).Get("port"); port != "2222" {
		t.Errorf("hosts_change_diff is %s", value.Repr(diff))
	}
	if r = run(t, "ssh_config", o, "ssh_config_file", file, "host", "web"); r.Changed {
		t.Error("a task without options changes the entry")
	}
	twice("", "state", "absent")
	key := write(t, filepath.Join(filepath.Dir(file), "id"), "x")
	twice("Host web\n    identityfile "+key+"\n", "identity_file", key)
	for text, pairs := range map[string][]any{
		"mutually exclusive: user|ssh_config_file":   {"user", "root"},
		"mutually exclusive: proxycommand|proxyjump": {"proxycommand", "a", "proxyjump", "b"},
		"IdentityFile /kk/none does not exist":       {"identity_file", "/kk/none"},
		"lower case":                                 {"other_options", value.NewDict("Port", 1)},
		"argument of its own":                        {"port", 1, "other_options", value.NewDict("port", 1)},
		"must be one line":                           {"hostname", "a\nProxyCommand b"},
	} {
		fails(t, text, "ssh_config", o, append([]any{"ssh_config_file", file, "host", "web"}, pairs...)...)
	}
}

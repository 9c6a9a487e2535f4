package system

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// The tools that the modules wrap cannot all be run here: dnf, zypper, apk and
// OpenRC are not to be had on Debian, and the others would change this
// machine. Here stand-ins record how they are called; the tests on lab hosts
// (test/e2e) run the real ones.

// stubHost is this machine with stand-ins for tools, and nothing else of it
// but what the scripts themselves need.
type stubHost struct {
	connector.Connector
	t   *testing.T
	dir string
}

// plainTools is what scripts may use on every host.
var plainTools = []string{
	"sh", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "chmod", "chown", "mktemp", "readlink", "dirname", "date", "stat", "id",
	"grep", "sed", "tr", "head", "tail", "sleep", "ps", "uname", "env", "printf", "kill",
}

// newStubHost makes a host with stand-ins: name to the body of a script. What
// each was called with is in calls.
func newStubHost(t *testing.T, tools map[string]string) *stubHost {
	t.Helper()
	h := &stubHost{moduletest.Shell(), t, t.TempDir()}
	bin := filepath.Join(h.dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range plainTools {
		if tools[name] != "" { // written through the link, the stand-in would replace this machine's own
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, body := range tools {
		text := "#!/bin/sh\nprintf '%s\\n' \"" + name + " $*\" >>" + shell.Quote(filepath.Join(h.dir, "calls")) + "\n" + body + "\n"
		if _, err := os.Lstat(filepath.Join(bin, name)); err == nil {
			t.Fatalf("%s is a plain tool and a stand-in", name)
		}
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// Run runs a command with the stand-ins alone: the script's own PATH is the folder of them.
func (h *stubHost) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	c.Line = strings.Replace(c.Line, "PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PATH="+filepath.Join(h.dir, "bin"), 1)
	return h.Connector.Run(ctx, c)
}

// calls returns the calls since the last time.
func (h *stubHost) calls() string {
	h.t.Helper()
	name := filepath.Join(h.dir, "calls")
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func spec(t *testing.T, name string) module.Spec { return moduletest.Find(t, Modules(), name) }

func run(t *testing.T, name string, o moduletest.Options, pairs ...any) module.Result {
	t.Helper()
	return moduletest.Run(t, spec(t, name), value.NewDict(pairs...), o)
}

func fails(t *testing.T, text, name string, o moduletest.Options, pairs ...any) {
	t.Helper()
	r, err := moduletest.Try(t, spec(t, name), value.NewDict(pairs...), o)
	msg := r.Msg
	if err != nil {
		msg = err.Error()
	} else if !r.Failed {
		t.Errorf("%s %v did not fail: %+v", name, pairs, r)
	}
	if !strings.Contains(msg, text) {
		t.Errorf("%s %v failed with %q, want %q in it", name, pairs, msg, text)
	}
}

func get(r module.Result, key string) any {
	v, _ := r.Data.Get(key)
	return v
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEveryModuleIsDocumented(t *testing.T) {
	for _, s := range Modules() {
		args, err := schema.Describe(s.New())
		if err != nil || s.Summary == "" || len(s.Examples) == 0 || len(s.Returns) == 0 {
			t.Errorf("%s: %v, summary %q, %d examples, %d results", s.Name, err, s.Summary, len(s.Examples), len(s.Returns))
		}
		for _, a := range args {
			if a.Doc == "" {
				t.Errorf("%s: argument %s has no description", s.Name, a.Name)
			}
		}
	}
}

func TestScriptsAreReadByEveryShell(t *testing.T) {
	files, err := filepath.Glob("*.sh")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d scripts, %v", len(files), err)
	}
	for _, sh := range [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		if _, err := exec.LookPath(sh[0]); err != nil {
			t.Logf("%s is not installed here", sh[0])
			continue
		}
		for _, f := range files {
			if out, err := exec.Command(sh[0], append(sh[1:], "-n", f)...).CombinedOutput(); err != nil {
				t.Errorf("%s does not read %s: %s", sh[0], f, out)
			}
		}
	}
}

func TestUnreachableHost(t *testing.T) {
	o := moduletest.Options{Conn: moduletest.Unreachable{}}
	for name, args := range map[string][]any{
		"systemd": {"name", "x", "state", "started"}, "service": {"name", "x"}, "package": {"name", "x"}, "apt": {"name", "x"},
		"dnf": {"name", "x"}, "zypper": {"name", "x"}, "apk": {"name", "x"}, "user": {"name", "x"}, "group": {"name", "x"},
		"hostname": {"name", "x"}, "sysctl": {"name", "x", "value", 1}, "modprobe": {"name", "x"},
		"mount": {"path", "/x", "state", "unmounted"}, "cron": {"name", "x", "state", "absent"},
		"getent": {"database", "passwd"}, "package_facts": {}, "service_facts": {}, "known_hosts": {"name", "x", "state", "absent"},
		"apt_repository": {"repo", "deb http://x y z"}, "apt_key": {"id", "12345678", "state", "absent"}, "deb822_repository": {"name", "x", "state", "absent"},
		"yum_repository": {"name", "x", "state", "absent"}, "rpm_key": {"key", "12345678", "state", "absent"}, "debconf": {"name", "x"},
		"selinux": {"state", "disabled"}, "seboolean": {"name", "x", "state", true}, "mount_facts": {}, "sysvinit": {"name", "x", "enabled", true},
		"locale_gen": {"name", "x"}, "pam_limits": {"domain", "x", "limit_type", "-", "limit_item", "nofile", "value", 1}, "pip": {"name", "x"},
		"dpkg_selections": {"name", "x", "selection", "hold"}, "timezone": {"hwclock", "UTC"}, "alternatives": {"name", "x", "path", "/x"},
		"ssh_config":     {"host", "x"},
		"authorized_key": {"user", "x", "key", "http://192.0.2.1/x"},
	} {
		if _, err := moduletest.Try(t, spec(t, name), value.NewDict(args...), o); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

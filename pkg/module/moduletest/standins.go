package moduletest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// StandIns is this machine with stand-ins for tools, and nothing else of it
// but what the scripts themselves need.
type StandIns struct {
	connector.Connector
	t   testing.TB
	Dir string
}

// plainTools is what scripts may use on every host.
var plainTools = []string{
	"sh", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "chmod", "chown", "mktemp", "readlink", "dirname", "date", "stat",
	"id",
	"grep", "sed", "tr", "head", "tail", "sleep", "ps", "uname", "env", "printf", "kill",
}

// NewStandIns makes a host with stand-ins: name to the body of a script. What
// each was called with is in calls.
func NewStandIns(t testing.TB, tools map[string]string) *StandIns {
	t.Helper()
	h := &StandIns{Shell(), t, t.TempDir()}
	bin := filepath.Join(h.Dir, "bin")
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
		text := "#!/bin/sh\nprintf '%s\\n' \"" + name + " $*\" >>" + shell.Quote(filepath.Join(h.Dir, "calls")) + "\n" +
			body + "\n"
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
func (h *StandIns) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	c.Line = strings.Replace(c.Line, "PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"PATH="+filepath.Join(h.Dir, "bin"), 1)
	return h.Connector.Run(ctx, c)
}

// Calls returns the calls since the last time.
func (h *StandIns) Calls() string {
	h.t.Helper()
	name := filepath.Join(h.Dir, "calls")
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// Fails runs a module that must fail, with a text in its message.
func Fails(t testing.TB, text string, spec module.Spec, args *value.Dict, o Options) {
	t.Helper()
	r, err := Try(t, spec, args, o)
	msg := r.Msg
	if err != nil {
		msg = err.Error()
	} else if !r.Failed {
		t.Errorf("%s %s did not fail: %+v", spec.Name, value.Repr(args), r)
	}
	if !strings.Contains(msg, text) {
		t.Errorf("%s %s failed with %q, want %q in it", spec.Name, value.Repr(args), msg, text)
	}
}

// Field is a field of a result's data, nil if it does not exist.
func Field(r module.Result, key string) any {
	v, _ := r.Data.Get(key)
	return v
}

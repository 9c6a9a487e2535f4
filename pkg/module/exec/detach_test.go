package exec_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/module/exec"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// detach starts a module's work as a job and returns its id.
func detach(t *testing.T, name string, o moduletest.Options, limit time.Duration, pairs ...any) string {
	t.Helper()
	args := value.NewDict(pairs...)
	spec := moduletest.Find(t, exec.Modules(), name)
	runner, err := spec.Decode(args, &redact.Set{})
	if err != nil {
		t.Fatal(err)
	}
	id := module.NewJobID()
	r, err := runner.(module.Detacher).Detach(t.Context(), moduletest.Call(t, args, o), id, limit)
	if err != nil || r.Failed {
		t.Fatalf("%v %+v", err, r)
	}
	if get(r, "ansible_job_id") != id || get(r, "finished") != 0 ||
		!strings.HasSuffix(get(r, "results_file").(string), id) {
		t.Errorf("started: %s", value.Repr(r.Data))
	}
	return id
}

// finished waits for the end of a job.
func finished(t *testing.T, o moduletest.Options, id string) module.Result {
	t.Helper()
	for range 600 {
		r := run(t, "async_status", o, "jid", id)
		if get(r, "finished") == 1 {
			return r
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the job does not end")
	return module.Result{}
}

// host is a machine with another shell in the place of /bin/sh.
type host struct {
	connector.Connector
	sh string
}

// Run has the scripts' own calls of /bin/sh go to that machine's shell.
func (h host) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	c.Line = strings.ReplaceAll(c.Line, "/bin/sh", h.sh)
	return h.Connector.Run(ctx, c)
}

// busybox is a machine that has these programs, and no other.
func busybox(t *testing.T, programs string) connector.Connector {
	t.Helper()
	path, err := osexec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not there: `make unit` installs it")
	}
	dir := t.TempDir()
	for _, p := range strings.Fields("sh " + programs) {
		if err := os.Symlink(path, filepath.Join(dir, p)); err != nil {
			t.Fatal(err)
		}
	}
	return connector.Env(host{moduletest.Shell(), filepath.Join(dir, "sh")}, map[string]string{"PATH": dir})
}

const posix = "awk cat chmod cut date grep kill mkdir mv rm sed sleep sort tail tr"

func TestDetachedOnEveryShell(t *testing.T) {
	for name, conn := range map[string]func(*testing.T) connector.Connector{
		"sh":             func(*testing.T) connector.Connector { return moduletest.Shell() },
		"busybox":        func(t *testing.T) connector.Connector { return busybox(t, posix+" setsid") },
		"without setsid": func(t *testing.T) connector.Connector { return busybox(t, posix) },
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("KK_WORD", "some word")
			o := moduletest.Options{Conn: conn(t)}
			id := detach(t, "shell", o, time.Minute, "cmd", `cat; echo "$KK_WORD"; echo err >&2; umask; exit 3`, "stdin", "in")
			dir := filepath.Join(home, ".ansible_async")
			mode(t, dir, 0o700)
			mode(t, filepath.Join(dir, id), 0o600)
			r := finished(t, o, id)
			if !r.Failed || r.Msg != "non-zero return code" || get(r, "rc") != 3 || get(r, "stderr") != "err" ||
				get(r, "results_file") != filepath.Join(dir, id) {
				t.Errorf("%+v %s", r, value.Repr(r.Data))
			}
			if got, want := get(r, "stdout"), "in\nsome word\n"+umask(); got != want {
				t.Errorf("stdout %q, want %q", got, want)
			}
			left := names(t, dir)
			for until := time.Now().Add(10 * time.Second); len(left) != 1 && time.Now().Before(until); left = names(t, dir) {
				time.Sleep(10 * time.Millisecond) // the supervisor cleans up after it has written the result
			}
			if len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
			if r := run(t, "async_status", o, "jid", id, "mode", "cleanup"); get(r, "erased") != filepath.Join(dir, id) ||
				r.Failed || r.Changed {
				t.Errorf("cleanup: %+v", r)
			}
			if r := run(t, "async_status", o, "jid", id); !r.Failed || r.Msg != "could not find job" || get(r, "finished") != 1 {
				t.Errorf("after cleanup: %+v", r)
			}
		})
	}
}

func mode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("%s has mode %o, want %o", path, got, want)
	}
}

func umask() string {
	old := syscall.Umask(0)
	syscall.Umask(old)
	return fmt.Sprintf("%04o", old)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name()
	}
	return out
}

func TestDetachedOutputIsWhole(t *testing.T) {
	var odd strings.Builder
	for c := 1; c < 128; c++ {
		odd.WriteByte(byte(c))
	}
	for name, conn := range map[string]connector.Connector{"sh": moduletest.Shell(),
		"busybox": busybox(t, posix+" setsid")} {
		for i, text := range []string{"", "\n", "no newline", "a\n\n", "\\n \\\" \\u0041 %s &\n", odd.String(), "żółć\n", ".",
			"\n."} {
			t.Run(name+strconv.Itoa(i), func(t *testing.T) {
				t.Setenv("HOME", t.TempDir())
				file := filepath.Join(t.TempDir(), "text")
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				o := moduletest.Options{Conn: conn}
				r := finished(t, o, detach(t, "raw", o, time.Minute, "cmd", "cat "+file))
				if get(r, "stdout") != text || r.Failed {
					t.Errorf("got %q, want %q", get(r, "stdout"), text)
				}
			})
		}
	}
}

func TestDetachedIsEndedInTime(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	o := moduletest.Options{}
	// The last of them has a session of its own.
	cmd := `echo begun; echo $$ >a; sleep 300 & echo $! >b; setsid sh -c 'echo $$ >c; exec sleep 300' & wait`
	id := detach(t, "shell", o, time.Second, "cmd", cmd, "chdir", dir)
	r := finished(t, o, id)
	if !r.Failed || r.Msg != "async task did not complete within the requested time - 1s" || get(r, "stdout") != "begun" {
		t.Errorf("%+v %s", r, value.Repr(r.Data))
	}
	for _, f := range []string{"a", "b", "c"} {
		gone(t, pid(t, filepath.Join(dir, f)))
	}
}

func TestDetachedCanBeEnded(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	o := moduletest.Options{}
	id := detach(t, "command", o, time.Minute, "cmd", "sh -c 'echo $$ >a; sleep 300'", "chdir", dir)
	p := pid(t, filepath.Join(dir, "a"))
	if r := run(t, "async_status", o, "jid", id); get(r, "finished") != 0 || r.Failed || r.Changed {
		t.Errorf("while it runs: %+v", r)
	}
	r := run(t, "async_status", o, "jid", id, "mode", "end")
	if !r.Failed || get(r, "finished") != 1 || get(r, "rc") != 143 {
		t.Errorf("%+v %s", r, value.Repr(r.Data))
	}
	gone(t, p)
}

// pid reads a process id that a job writes.
func pid(t *testing.T, file string) int {
	t.Helper()
	for range 200 {
		if text, err := os.ReadFile(file); err == nil && strings.HasSuffix(string(text), "\n") {
			n, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s is not written", file)
	return 0
}

func gone(t *testing.T, pid int) {
	t.Helper()
	for range 100 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, os.ErrNotExist) || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

func TestDetachedAndItsWatcherIsGone(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	o := moduletest.Options{}
	id := detach(t, "command", o, time.Minute, "cmd", "sleep 300")
	watcher := pid(t, filepath.Join(home, ".ansible_async", id+".pid"))
	if err := syscall.Kill(-watcher, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, watcher)
	r := run(t, "async_status", o, "jid", id)
	if !r.Failed || get(r, "finished") != 1 || !strings.Contains(r.Msg, "rebooted") {
		t.Errorf("%+v", r)
	}
}

func TestDetachedSessionIsItsOwn(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	o := moduletest.Options{}
	id := detach(t, "command", o, time.Minute, "cmd", "sleep 300")
	watcher := pid(t, filepath.Join(home, ".ansible_async", id+".pid"))
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", watcher))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	if f := strings.Fields(rest); f[3] != strconv.Itoa(watcher) {
		t.Errorf("process %d is of session %s", watcher, f[3])
	}
	run(t, "async_status", o, "jid", id, "mode", "end")
}

func TestDetachedGuards(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	o := moduletest.Options{}
	dir := t.TempDir()
	for _, c := range []struct {
		module string
		args   []any
		failed bool
		msg    string
	}{
		{"command", []any{"cmd", "false", "creates", dir}, false, "Did not run command since '" + dir + "' exists"},
		{"command", []any{"cmd", "true", "chdir", dir + "/none"}, true,
			"Unable to change directory before execution: [Errno 2] No such file or directory: b'" + dir + "/none'"},
		{"command", []any{"cmd", "kk-none"}, true, "[Errno 2] No such file or directory: b'kk-none'"},
		{"shell", []any{"cmd", "true", "removes", dir}, false, ""},
	} {
		r := finished(t, o, detach(t, c.module, o, time.Minute, c.args...))
		if r.Failed != c.failed || r.Msg != c.msg {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}

func TestDetachedScript(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	o := moduletest.Options{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(o.Dir, "s.sh"), []byte("#!/bin/sh\necho \"$1\" is here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := finished(t, o, detach(t, "script", o, time.Minute, "cmd", "s.sh it"))
	if get(r, "stdout") != "it is here\n" || r.Failed {
		t.Errorf("%+v %s", r, value.Repr(r.Data))
	}
	if left := names(t, os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFolderOfJobsIsAsTheEnvironmentSays(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, dir := range []string{"~/jobs", filepath.Join(home, "a b")} {
		o := moduletest.Options{Conn: connector.Env(moduletest.Shell(), map[string]string{"ANSIBLE_ASYNC_DIR": dir})}
		r := finished(t, o, detach(t, "command", o, time.Minute, "cmd", "true"))
		if want := strings.Replace(dir, "~", home, 1); filepath.Dir(get(r, "results_file").(string)) != want {
			t.Errorf("the file is %v, want it in %s", get(r, "results_file"), want)
		}
	}
}

func TestStatusDoesNotLeaveTheFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	secret := filepath.Join(home, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"../secret", "..", ".", "", "a/b", secret} {
		r := run(t, "async_status", moduletest.Options{}, "jid", id, "mode", "cleanup")
		if !r.Failed || r.Msg != "could not find job" {
			t.Errorf("%q: %+v", id, r)
		}
	}
	if _, err := os.Stat(secret); err != nil {
		t.Error(err)
	}
}

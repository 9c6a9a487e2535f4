package exec_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/module/exec"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func run(t *testing.T, name string, o moduletest.Options, pairs ...any) module.Result {
	t.Helper()
	return moduletest.Run(t, moduletest.Find(t, exec.Modules(), name), value.NewDict(pairs...), o)
}

func get(r module.Result, key string) any {
	v, _ := r.Data.Get(key)
	return v
}

func TestCommandOutputs(t *testing.T) {
	t.Setenv("KK_WORD", "a  b*")
	home := t.TempDir()
	t.Setenv("HOME", home)
	cases := []struct {
		name, cmd, stdout string
	}{
		{"words", `printf '%s\n' one "two  three" 'four $x'`, "one\ntwo  three\nfour $x"},
		{"no shell", `echo a | b; c && d > e * # f`, "a | b; c && d > e * # f"},
		{"variables are expanded and not split", `printf [%s] $KK_WORD ${KK_WORD}x pre'$KK_WORD'`,
			"[a  b*][a  b*x][prea  b*]"},
		{"unset variables stay", `echo $KK_NONE ${KK_NONE} $ $1 ${ a$`, "$KK_NONE ${KK_NONE} $ $1 ${ a$"},
		{"tilde", `printf '%s\n' ~ ~/x a~ "~/y z" ~kknobody!`, home + "\n" + home + "/x\na~\n" + home + "/y z\n~kknobody!"},
		{"quotes", `echo it\'s "a \"b\" \c" '' x`, `it's a "b" \c  x`},
		{"only final newlines are stripped", `printf "a\n\n b \n\n"`, "a\n\n b "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, "command", moduletest.Options{}, "cmd", c.cmd)
			if got := get(r, "stdout"); got != c.stdout || r.Failed || !r.Changed {
				t.Errorf("got %q, want %q (%+v)", got, c.stdout, r)
			}
		})
	}
}

func TestCommandReturns(t *testing.T) {
	now := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	o := moduletest.Options{Now: func() time.Time { now = now.Add(4613 * time.Microsecond); return now }}
	r := run(t, "command", o, "argv", []any{"sh", "-c", "echo out; echo err >&2; exit 3"})
	want := value.NewDict("rc", 3, "stdout", "out", "stderr", "err",
		"start", "2030-01-31 12:00:00.004613", "end", "2030-01-31 12:00:00.009226", "delta", "0:00:00.004613",
		"cmd", []any{"sh", "-c", "echo out; echo err >&2; exit 3"}, "msg", "non-zero return code")
	if !value.Equal(r.Data, want) {
		t.Errorf("got  %s\nwant %s", value.Repr(r.Data), value.Repr(want))
	}
	if !r.Failed || !r.Changed || r.Msg != "non-zero return code" {
		t.Errorf("got %+v", r)
	}
	ok := run(t, "command", moduletest.Options{}, "cmd", "true")
	if get(ok, "msg") != "" || get(ok, "rc") != 0 || ok.Failed {
		t.Errorf("got %+v", ok)
	}
}

func TestOneCommandOnTheHost(t *testing.T) {
	dir := t.TempDir()
	cases := []struct {
		module string
		args   []any
		line   string
	}{
		{"command", []any{"cmd", "/bin/true"}, "exec /bin/true"},
		{"command", []any{"cmd", "/bin/true", "chdir", dir}, "cd -P " + dir + " && exec /bin/true"},
		{"command", []any{"cmd", "echo $HOME", "expand_argument_vars", false}, `exec echo '$HOME'`},
		{"shell", []any{"cmd", "true | cat"}, "true | cat"},
		{"shell", []any{"cmd", "true", "chdir", dir}, "cd -P " + dir + " || exit 2\ntrue"},
		{"shell", []any{"cmd", "a=1; true", "executable", "/bin/bash"}, "exec /bin/bash -c 'a=1; true'"},
		{"raw", []any{"cmd", "true  "}, "true  "},
	}
	for _, c := range cases {
		count := moduletest.Count(nil)
		run(t, c.module, moduletest.Options{Conn: count}, c.args...)
		if diff := cmp.Diff([]string{c.line}, count.Lines()); diff != "" {
			t.Errorf("%s %v: %s", c.module, c.args, diff)
		}
	}
	count := moduletest.Count(nil)
	run(t, "command", moduletest.Options{Conn: count}, "cmd", "true", "creates", dir+"/x", "removes", dir, "chdir", dir)
	if len(count.Lines()) != 1 {
		t.Errorf("creates and removes cost further commands: %q", count.Lines())
	}
}

func TestCommandsThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, module string
		args         []any
		rc           any
		msg          string
	}{
		{"not found", "command", []any{"cmd", "kk-no-such x"}, 2, "[Errno 2] No such file or directory: b'kk-no-such'"},
		{"path not found", "command", []any{"cmd", "/no/such"}, 2, "[Errno 2] No such file or directory: b'/no/such'"},
		{"not executable", "command", []any{"cmd", plain}, 13, "[Errno 13] Permission denied: b'" + plain + "'"},
		{"folder", "command", []any{"cmd", dir}, 13, "[Errno 13] Permission denied: b'" + dir + "'"},
		{"shell builtin", "command", []any{"cmd", "export"}, 2, "[Errno 2] No such file or directory: b'export'"},
		{"its own 127", "command", []any{"argv", []any{"sh", "-c", "exit 127"}}, 127, "non-zero return code"},
		{"no folder", "command", []any{"cmd", "true", "chdir", "/no/such"}, 2,
			"Unable to change directory before execution: [Errno 2] No such file or directory: b'/no/such'"},
		{"no folder for a shell", "shell", []any{"cmd", "true", "chdir", "/no/such"}, 2,
			"Unable to change directory before execution: [Errno 2] No such file or directory: b'/no/such'"},
		{"unknown inside a shell", "shell", []any{"cmd", "kk-no-such"}, 127, "non-zero return code"},
		{"no shell", "shell", []any{"cmd", "true", "executable", "/no/sh"}, 2,
			"[Errno 2] No such file or directory: b'/no/sh'"},
		{"empty", "command", []any{"cmd", "  "}, 256, "no command given"},
		{"empty shell", "shell", nil, 256, "no command given"},
		{"both", "command", []any{"cmd", "a", "argv", "b"}, 256, "only command or argv can be given, not both"},
		{"quote", "command", []any{"cmd", "echo 'a"}, 256,
			"the command cannot be split into arguments: no closing quotation"},
		{"backslash", "command", []any{"cmd", `echo \`}, 256,
			"the command cannot be split into arguments: no escaped character after the last backslash"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, c.module, moduletest.Options{}, c.args...)
			if !r.Failed || r.Msg != c.msg || get(r, "rc") != c.rc {
				t.Errorf("got failed=%v rc=%v msg=%q, want rc=%v msg=%q", r.Failed, get(r, "rc"), r.Msg, c.rc, c.msg)
			}
		})
	}
}

func TestCreatesAndRemoves(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KK_DIR", dir)
	if err := os.WriteFile(filepath.Join(dir, "a b.done"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, key, path string
		runs            bool
	}{
		{"created", "creates", dir + "/a b.done", false},
		{"created, by glob", "creates", "$KK_DIR/a*[c-e]one", false},
		{"created, relative", "creates", "a b.done", false},
		{"not created", "creates", dir + "/c", true},
		{"removed", "removes", dir + "/c", false},
		{"not removed", "removes", dir + "/a ?.done", true},
	}
	for _, c := range cases {
		for _, name := range []string{"command", "shell", "script"} {
			for _, check := range []bool{false, true} {
				o := moduletest.Options{Check: check, Dir: dir}
				writeScript(t, dir, "touch.sh", "#!/bin/sh\necho ran\n")
				cmd := "echo ran"
				if name == "script" {
					cmd = "touch.sh"
				}
				r := run(t, name, o, "cmd", cmd, c.key, c.path, "chdir", dir)
				if r.Failed || r.Changed != c.runs {
					t.Errorf("%s %s check=%v: got %+v", name, c.name, check, r)
				}
			}
		}
	}
	r := run(t, "command", moduletest.Options{}, "cmd", "echo", "creates", dir)
	if r.Msg != "Did not run command since '"+dir+"' exists" || get(r, "stdout") != "skipped, since "+dir+" exists" ||
		get(r, "rc") != 0 {
		t.Errorf("got %+v %s", r, value.Repr(r.Data))
	}
	r = run(t, "shell", moduletest.Options{Check: true}, "cmd", "echo", "removes", "/no/such")
	if r.Msg != "Would not run command since '/no/such' does not exist" {
		t.Errorf("got %+v", r)
	}
}

func TestCheckModeRunsNothing(t *testing.T) {
	for name, msg := range map[string]string{
		"command": "Command would have run if not in check mode",
		"shell":   "Command would have run if not in check mode",
		"script":  "Check mode is not supported for this task.",
		"raw":     "",
	} {
		count := moduletest.Count(nil)
		r := run(t, name, moduletest.Options{Check: true, Conn: count}, "cmd", "x")
		if !r.Skipped || r.Changed || r.Failed || r.Msg != msg || len(count.Lines()) != 0 {
			t.Errorf("%s: got %+v after %q", name, r, count.Lines())
		}
	}
	r := run(t, "command", moduletest.Options{Check: true}, "cmd", "x")
	if get(r, "rc") != 0 || get(r, "stdout") != "" {
		t.Errorf("conditions on rc and stdout would break: %s", value.Repr(r.Data))
	}
}

func TestStdin(t *testing.T) {
	r := run(t, "command", moduletest.Options{}, "cmd", "cat", "stdin", "a\nb", "strip_empty_ends", false)
	if got := get(r, "stdout"); got != "a\nb\n" {
		t.Errorf("got %q", got)
	}
	r = run(t, "shell", moduletest.Options{}, "cmd", "cat; echo .", "stdin", "a", "stdin_add_newline", false)
	if got := get(r, "stdout"); got != "a." {
		t.Errorf("got %q", got)
	}
}

func TestShell(t *testing.T) {
	r := run(t, "shell", moduletest.Options{}, "cmd", "cat <<E | tr a-z A-Z; echo \"$0\" >&2\nhi $((1+1))\nE")
	if get(r, "stdout") != "HI 2" || get(r, "cmd") != "cat <<E | tr a-z A-Z; echo \"$0\" >&2\nhi $((1+1))\nE" {
		t.Errorf("got %s", value.Repr(r.Data))
	}
	r = run(t, "shell", moduletest.Options{}, "cmd", "x=(a b); echo ${x[1]}", "executable", "/bin/bash", "chdir", "/")
	if get(r, "stdout") != "b" {
		t.Errorf("got %s", value.Repr(r.Data))
	}
}

func TestRawKeepsOutput(t *testing.T) {
	r := run(t, "raw", moduletest.Options{}, "cmd", "echo a; exit 4")
	if get(r, "stdout") != "a\n" || get(r, "rc") != 4 || !r.Failed || !r.Changed {
		t.Errorf("got %+v %s", r, value.Repr(r.Data))
	}
	r = run(t, "raw", moduletest.Options{}, "cmd", "echo $BASH", "executable", "/bin/bash")
	if got := get(r, "stdout"); got != "/bin/bash\n" {
		t.Errorf("got %q", got)
	}
}

func writeScript(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "files"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "files", name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestScript(t *testing.T) {
	dir, tmp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	writeScript(t, dir, "s.sh", "#!/bin/sh\necho \"$#:$1:$2\"\npwd\ncat\nexit 5\n")
	writeScript(t, dir, "my script", "echo no shebang \"$BASH_VERSION\" $1\n")
	count := moduletest.Count(nil)
	o := moduletest.Options{Dir: dir, Conn: count}
	r := run(t, "script", o, "cmd", `s.sh "a b" $((1+1))`, "chdir", "/")
	if get(r, "stdout") != "2:a b:2\n/\n" || get(r, "rc") != 5 || !r.Failed || len(count.Lines()) != 1 {
		t.Errorf("got %+v %s", r, value.Repr(r.Data))
	}
	r = run(t, "script", o, "cmd", `"my script" x`, "executable", "bash -e")
	if got := get(r, "stdout").(string); !regexp.MustCompile(`^no shebang \d.* x\n$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
	r = run(t, "script", o, "cmd", "s.sh", "chdir", "/no/such")
	if !r.Failed || !strings.HasPrefix(r.Msg, "Unable to change directory") {
		t.Errorf("got %+v", r)
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	spec := moduletest.Find(t, exec.Modules(), "script")
	if _, err := moduletest.Try(t, spec, value.NewDict("cmd", "none.sh"), o); err == nil ||
		!strings.Contains(err.Error(), "Could not find or access 'none.sh'") {
		t.Errorf("got %v", err)
	}
	if _, err := moduletest.Try(t, spec, value.NewDict("cmd", " "), o); err == nil || err.Error() != "no script given" {
		t.Errorf("got %v", err)
	}
}

func TestLinesAreSeenAsTheyCome(t *testing.T) {
	var out, errs []string
	o := moduletest.Options{Output: func(line string, stderr bool) {
		if stderr {
			errs = append(errs, line)
		} else {
			out = append(out, line)
		}
	}}
	run(t, "shell", o, "cmd", `printf 'a\r\n\nlast'; echo e >&2`)
	if diff := cmp.Diff([]string{"a", "", "last"}, out); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"e"}, errs); diff != "" {
		t.Error(diff)
	}
}

func TestUnreachable(t *testing.T) {
	for _, name := range []string{"command", "shell", "raw"} {
		spec := moduletest.Find(t, exec.Modules(), name)
		_, err := moduletest.Try(t, spec, value.NewDict("cmd", "true"), moduletest.Options{Conn: moduletest.Unreachable{}})
		var lost *connector.UnreachableError
		if !errors.As(err, &lost) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := moduletest.Options{Context: ctx, Output: func(string, bool) { cancel() }}
	spec := moduletest.Find(t, exec.Modules(), "shell")
	_, err := moduletest.Try(t, spec, value.NewDict("cmd", "echo started; exec sleep 60"), o)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

package connector_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/connector/local"
)

// counting counts the commands that reach the transport.
type counting struct {
	connector.Connector
	runs atomic.Int64
}

func (c *counting) Run(ctx context.Context, cmd connector.Command) (connector.Exit, error) {
	c.runs.Add(1)
	return c.Connector.Run(ctx, cmd)
}

// script runs code as a script of kk's own and returns what it printed.
func script(t *testing.T, c connector.Connector, code string, args ...string) string {
	t.Helper()
	out, stderr, exit := connectortest.Output(t, c, connector.Script{Code: code, Args: args}.Command())
	if exit.Code != 0 || stderr != "" {
		t.Fatalf("%q: %+v, %q", code, exit, stderr)
	}
	return out
}

// stayed returns a connector in which a shell stays, on top of what counts commands.
func stayed(t *testing.T) (connector.Connector, *counting) {
	t.Helper()
	under := &counting{Connector: local.New()}
	c := connector.PersistentShell(under)
	t.Cleanup(func() { c.Close() })
	waitForShell(t, c, under)
	return c, under
}

// waitForShell waits until scripts reach the shell and not the transport.
func waitForShell(t *testing.T, c connector.Connector, under *counting) {
	t.Helper()
	for range 100 {
		before := under.runs.Load()
		if script(t, c, "echo x"); under.runs.Load() == before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("no shell stays")
}

// wantRuns checks how many commands f costs the transport.
func wantRuns(t *testing.T, under *counting, want int64, what string, f func()) {
	t.Helper()
	before := under.runs.Load()
	f()
	if got := under.runs.Load() - before; got != want {
		t.Errorf("%s: %d commands of the transport, want %d", what, got, want)
	}
}

func TestContractOfShellThatStays(t *testing.T) {
	t.Parallel()
	connectortest.Contract(t, func(t *testing.T) connector.Connector {
		c, _ := stayed(t)
		return connectortest.Scripts(c)
	})
}

func TestScriptsShareAShell(t *testing.T) {
	t.Parallel()
	c, under := stayed(t)
	wantRuns(t, under, 0, "scripts", func() {
		for i := range 60 { // more than the shell keeps libraries of
			lib := fmt.Sprintf("f() { echo %d \"$@\"; }\n", i)
			for range 2 {
				out, _, _ := connectortest.Output(t, c, connector.Script{Library: lib, Code: `f "$2" "$1"`,
					Args: []string{"it's", "a\nb"}}.Command())
				if want := fmt.Sprintf("%d a\nb it's\n", i); out != want {
					t.Fatalf("got %q, want %q", out, want)
				}
			}
		}
	})
	wantRuns(t, under, 0, "scripts with functions", func() {
		for _, name := range []string{"kk_a", "kk_a", "kk_b", "kk_a"} {
			// What a script makes of a function is nothing to the next.
			s := connector.Script{Functions: name + "() { echo " + name + ` "$1"; }` + "\n", Code: name + ` "$1"; ` + name +
				"() { echo other; }", Args: []string{"x y"}}
			if out, errs, _ := connectortest.Output(t, c, s.Command()); out != name+" x y\n" || errs != "" {
				t.Errorf("%s: got %q, %q", name, out, errs)
			}
		}
	})
	wantRuns(t, under, 0, "after a script that could not be sent", func() {
		s := connector.Script{Functions: "kk_c() { echo c; }\n", Library: "lib=d\n", Code: `kk_c; echo "$lib"`}
		refused := s.Command()
		refused.Env = map[string]string{"no name": ""}
		if _, err := c.Run(t.Context(), refused); err == nil {
			t.Error("a wrong name of a variable was taken")
		}
		if out, errs, _ := connectortest.Output(t, c, s.Command()); out != "c\nd\n" {
			t.Errorf("got %q, %q", out, errs)
		}
	})
	wantRuns(t, under, 1, "a command of a playbook", func() {
		connectortest.Output(t, c, connector.Command{Line: "true"})
	})
	wantRuns(t, under, 1, "a script that needs a number of its own", func() { script(t, c, "echo $$") })
	if a, b := script(t, c, "echo ${kk_id:-$$}"), script(t, c, "echo ${kk_id:-$$}"); a == b ||
		strings.Trim(a, "0123456789") != "\n" {
		t.Errorf("two scripts have the numbers %q and %q", a, b)
	}
}

func TestInputOfScripts(t *testing.T) {
	t.Parallel()
	c, under := stayed(t)
	every := make([]byte, 0, 512)
	for i := range 256 {
		every = append(every, byte(i), '\\')
	}
	for _, in := range []string{"", "x", "no line end", "line\n", "it's %s %d \\0101 \\\\\n\n", string(every),
		strings.Repeat("0123456789abcdef", 4096)} {
		for _, code := range []string{"cat", `read -r first; printf '%s\n' "$first"; cat`, "true"} {
			cmd := connector.Script{Code: code}.Command()
			cmd.Stdin = strings.NewReader(in)
			wantRuns(t, under, 0, "a script with input", func() {
				out, errs, _ := connectortest.Output(t, c, cmd)
				if code == "cat" && out != in {
					t.Errorf("%d bytes of input arrive as %d: %.40q", len(in), len(out), out)
				}
				if errs != "" {
					t.Errorf("%q says %q", code, errs)
				}
			})
		}
		cmd := connector.Script{Code: `if [ -n "$kk_input" ]; then printf 'kept %s' "$kk_input"; fi; cat`,
			InputVar: true}.Command()
		cmd.Stdin = strings.NewReader(in)
		want := "kept " + in
		if in == "" || strings.Contains(in, "\x00") {
			want = in
		}
		if out, errs, _ := connectortest.Output(t, c, cmd); out != want || errs != "" {
			t.Errorf("as a variable %.40q arrives as %.40q, %q", in, out, errs)
		}
	}
	cmd := connector.Script{Code: "wc -c | tr -d ' '"}.Command()
	cmd.Stdin = strings.NewReader(strings.Repeat("x", 100_000))
	wantRuns(t, under, 1, "much input", func() {
		if out, _, _ := connectortest.Output(t, c, cmd); out != "100000\n" {
			t.Errorf("got %q", out)
		}
	})
}

func TestNothingLeaksBetweenScripts(t *testing.T) {
	t.Parallel()
	c, under := stayed(t)
	look := `pwd; umask; env | grep -v -e ^KK_RUN= -e ^_= | sort; trap; ulimit -n; echo "$#" "$-" "$IFS"; x() { echo none; }; x`
	before := script(t, c, look)
	wantRuns(t, under, 0, "scripts that change their shell", func() {
		for _, code := range []string{"cd /usr", "umask 777", "LEFT=1; export LEFT", "trap 'echo trapped' EXIT",
			"set -ef; IFS=:", "ulimit -n 17",
			"set a b c", "x() { echo left; }; readonly x=1", "alias pwd=false", "exec 1>&- 2>&-", "exit 0", "unset PATH HOME"} {
			connectortest.Output(t, c, connector.Script{Code: code}.Command())
			if after := script(t, c, look); after != before {
				t.Errorf("after %q:\n%s\nbefore:\n%s", code, after, before)
			}
		}
		for code, status := range map[string]int{"exit 7": 7, "if": 2, "exec false": 1, "no-such-program-at-all": 127,
			"kill -KILL $(sh -c 'echo $PPID')": 137} {
			if _, _, exit := connectortest.Output(t, c, connector.Script{Code: code}.Command()); exit.Code != status {
				t.Errorf("%q: %+v, want %d", code, exit, status)
			}
		}
	})
	secret := connector.Script{Code: `printf '%s' "$TOKEN"; cat; cat /proc/[0-9]*/cmdline | tr '\0' ' ' | grep -c 's3cret[-]value'; true`}.Command()
	secret.Env, secret.Stdin = map[string]string{"TOKEN": "s3cret-value'1\n"}, strings.NewReader("s3cret-value2\n")
	if out, _, _ := connectortest.Output(t, c, secret); out != "s3cret-value'1\ns3cret-value2\n0\n" {
		t.Errorf("got %q", out)
	}
	if out := script(t, c, `set | grep s3cret[-]value; echo "$TOKEN"`); out != "\n" {
		t.Errorf("a secret of the script before: %q", out)
	}
}

// TestOutputsOfScripts: what looks like the frame of outputs is output.
func TestOutputsOfScripts(t *testing.T) {
	t.Parallel()
	c, under := stayed(t)
	wantRuns(t, under, 0, "odd outputs", func() {
		for _, text := range []string{"", "\n", "\n\n", "no end", "\nkk-", "kk-0123 0\n",
			"\nkk-00000000000000000000000000000000 0\n", "\x00\xff\n\x00"} {
			cmd := connector.Script{Code: "cat; cat <<END >&2\n$1\nEND", Args: []string{"err"}}.Command()
			cmd.Stdin = strings.NewReader(text)
			if out, errs, _ := connectortest.Output(t, c, cmd); out != text || errs != "err\n" {
				t.Errorf("%q came as %q, %q", text, out, errs)
			}
		}
		// The mark is nowhere to be found for a script.
		out := script(t, c, `set; env; cat /proc/$PPID/cmdline /proc/self/environ | tr '\0' '\n'; echo "$@"`)
		if strings.Contains(out, "\nkk-") {
			t.Errorf("a script sees a mark: %q", out)
		}
	})
	cmd := connector.Script{Code: "echo one; echo two"}.Command()
	cmd.Stdout = broken{}
	if exit, err := c.Run(context.Background(), cmd); err != nil || exit.Code != 0 {
		t.Errorf("with an output that fails: %+v, %v", exit, err)
	}
	if out := script(t, c, "echo next"); out != "next\n" {
		t.Errorf("got %q", out)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestLateOutput: what a process prints that a script left behind is nobody else's.
func TestLateOutput(t *testing.T) {
	t.Parallel()
	c, under := stayed(t)
	gate := filepath.Join(t.TempDir(), "gate")
	script(t, c, `(while [ ! -e "$1" ]; do sleep 0.02; done; echo late; echo late >&2; : >"$1.done") & echo begun`, gate)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if _, err := os.Stat(gate + ".done"); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	for range 3 {
		if out := script(t, c, "echo mine"); out != "mine\n" {
			t.Errorf("got %q", out)
		}
	}
	waitForShell(t, c, under) // another stays
}

func TestShellThatEnds(t *testing.T) {
	t.Parallel()
	c, under := stayed(t)
	parent := strings.TrimSpace(script(t, c,
		`sh -c 'echo $PPID' >/dev/null; read -r _ _ _ up _ </proc/self/stat; echo "$up"`))
	// Under a script: it is the script's end.
	cmd := connector.Script{Code: "kill -KILL " + parent + "; sleep 5; echo survived"}.Command()
	var out bytes.Buffer
	cmd.Stdout = &out
	if exit, err := c.Run(context.Background(), cmd); err == nil && exit.Code == 0 || out.Len() > 0 {
		t.Errorf("a script whose shell was killed: %+v, %v, %q", exit, err, &out)
	}
	if out := script(t, c, "echo next"); out != "next\n" {
		t.Errorf("got %q", out)
	}
	// While it waits: the next script does not notice.
	waitForShell(t, c, under)
	parent = strings.TrimSpace(script(t, c, `read -r _ _ _ up _ </proc/self/stat; echo "$up"`))
	if exit, err := local.New().Run(context.Background(), connector.Command{Line: "kill -KILL " + parent}); err != nil ||
		exit.Code != 0 {
		t.Fatalf("%+v, %v", exit, err)
	}
	cmd = connector.Script{Code: "cat"}.Command()
	cmd.Stdin = strings.NewReader("input")
	if out, _, _ := connectortest.Output(t, c, cmd); out != "input" {
		t.Errorf("got %q", out)
	}
}

func TestCancelledScript(t *testing.T) {
	t.Parallel()
	c, under := stayed(t)
	for range maxFailures + 1 {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		file := filepath.Join(t.TempDir(), "f")
		_, err := c.Run(ctx, connector.Script{Code: `sleep 1000 & echo $! >"$1"; (sleep 1001 & echo $! >>"$1"); wait`,
			Args: []string{file}}.Command())
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		pids, _ := os.ReadFile(file)
		for _, pid := range strings.Fields(string(pids)) {
			if text, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.Contains(string(text), "sleep") {
				t.Errorf("process %s is still there", pid)
			}
		}
		waitForShell(t, c, under) // cancelling is no failure of the shell's
	}
}

const maxFailures = 3

// TestShellsThatKeepEnding: where none stays, all goes on without.
func TestShellsThatKeepEnding(t *testing.T) {
	t.Parallel()
	under := &refusing{counting{Connector: local.New()}, atomic.Int64{}}
	c := connector.PersistentShell(under)
	t.Cleanup(func() { c.Close() })
	for range 30 {
		if out := script(t, c, "echo x"); out != "x\n" {
			t.Fatalf("got %q", out)
		}
	}
	if n := under.stays.Load(); n == 0 || n > maxFailures {
		t.Errorf("a shell was tried %d times", n)
	}
}

// refusing ends every shell that would stay at once.
type refusing struct {
	counting
	stays atomic.Int64
}

func (r *refusing) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	if c.Yield != nil {
		r.stays.Add(1)
		return connector.Exit{Code: 1}, nil
	}
	return r.counting.Run(ctx, c)
}

func TestCloseEndsTheShell(t *testing.T) {
	t.Parallel()
	c, _ := stayed(t)
	pid := strings.TrimSpace(script(t, c, `read -r _ _ _ up _ </proc/self/stat; echo "$up"`))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + pid); !os.IsNotExist(err) {
		t.Errorf("the shell is still there: %v", err)
	}
}

package connectortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kubekey/pkg/connector"
)

// Contract checks that a connector to this very machine does what the
// documentation of connector.Connector says. connect returns a new one; Contract closes it.
func Contract(t *testing.T, connect func(t *testing.T) connector.Connector) {
	contract(t, connect, map[string]string{
		"children":        "sh -c 'sleep 1000.%[1]s & sleep 1000.%[1]s'",
		"plain":           "/bin/sleep 1000.%[1]s",
		"deaf to TERM":    `trap "" TERM; sleep 1000.%[1]s; sleep 1001.%[1]s; sleep 1002.%[1]s`,
		"own environment": "env -i /bin/sleep 1000.%[1]s",
		"shell only":      "while :; do : 1000.%[1]s; done",
	})
}

// BriefContract is Contract with fewer kinds of commands to cancel, for variants of a
// connector that passes the whole: finding processes is the slow part.
func BriefContract(t *testing.T, connect func(t *testing.T) connector.Connector) {
	contract(t, connect, map[string]string{"children": "sh -c 'sleep 1000.%[1]s & sleep 1000.%[1]s'"})
}

func contract(t *testing.T, connect func(t *testing.T) connector.Connector, cancels map[string]string) {
	c := connect(t)
	t.Cleanup(func() { c.Close() })
	check := func(f func(*testing.T, connector.Connector)) func(*testing.T) { return func(t *testing.T) { f(t, c) } }
	t.Run("streams", check(checkStreams))
	t.Run("exits", check(checkExits))
	t.Run("input", check(checkInput))
	t.Run("environment", check(checkEnv))
	t.Run("odd lines", check(checkLines))
	t.Run("much output", check(checkMuch))
	t.Run("at once", check(checkAtOnce))
	t.Run("files", check(checkFiles))
	t.Run("terminal", check(checkTTY))
	t.Run("cancelled before", check(checkCancelled))
	// These mostly wait.
	slow := map[string]func(*testing.T){"left behind": check(checkLeftBehind), "cancel put": check(checkCancelPut)}
	for name, line := range cancels {
		slow["cancel "+name] = func(t *testing.T) { cancelRunning(t, c, line) }
	}
	Together(t, slow)
}

// Output runs a line and returns what it printed; it fails the test on an error.
func Output(t testing.TB, c connector.Connector, cmd connector.Command) (stdout, stderr string, exit connector.Exit) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	exit, err := c.Run(ctx, cmd)
	if err != nil {
		t.Fatalf("run %.200q: %v", cmd.Line, err)
	}
	return out.String(), errs.String(), exit
}

func expect(t *testing.T, c connector.Connector, cmd connector.Command, stdout string) {
	t.Helper()
	got, stderr, exit := Output(t, c, cmd)
	if got != stdout || exit.Code != 0 {
		t.Errorf("%.200q printed %q, want %q (exit %+v, stderr %q)", cmd.Line, got, stdout, exit, stderr)
	}
}

func checkStreams(t *testing.T, c connector.Connector) {
	for range 3 {
		out, errs, exit := Output(t, c, connector.Command{Line: "echo out; echo err >&2; exit 3"})
		if out != "out\n" || errs != "err\n" || exit.Code != 3 {
			t.Errorf("got %q, %q, %+v", out, errs, exit)
		}
		if exit, err := c.Run(context.Background(), connector.Command{Line: "echo out; echo err >&2"}); err != nil ||
			exit.Code != 0 {
			t.Errorf("without writers: %+v, %v", exit, err)
		}
	}
}

func checkExits(t *testing.T, c connector.Connector) {
	for line, code := range map[string]int{"true": 0, "/bin/false": 1, "exit 255": 255, "/no/such/program": 127, "if": 2} {
		if _, _, exit := Output(t, c, connector.Command{Line: line}); exit.Code != code {
			t.Errorf("%q ended with %+v, want code %d", line, exit, code)
		}
	}
	if _, _, exit := Output(t, c, connector.Command{Line: "kill -TERM $$"}); exit.Code != 143 || exit.Signal != "TERM" &&
		exit.Signal != "" {
		// su passes on only the code.
		t.Errorf("a command that a signal ended: %+v", exit)
	}
}

func checkInput(t *testing.T, c connector.Connector) {
	expect(t, c, connector.Command{Line: "cat"}, "")
	expect(t, c, connector.Command{Line: "cat", Stdin: strings.NewReader("hello\nthere")}, "hello\nthere")
	expect(t, c, connector.Command{Line: "head -c 3; true", Stdin: io.LimitReader(zeros{}, 8<<20)}, "\x00\x00\x00")
	expect(t, c, connector.Command{Line: "wc -c | tr -d ' '", Stdin: io.LimitReader(zeros{}, 8<<20)}, "8388608\n")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func checkEnv(t *testing.T, c connector.Connector) {
	env := map[string]string{"PLAIN": "x", "KK_EMPTY": "", "ODD": "a'b\"c $HOME `id` \\n !\n\nlast\n",
		"KK_SECRET": "s3cret-value"}
	line := `printf '%s|%s|%s|' "$PLAIN" "${KK_EMPTY-unset}" "$ODD"; cat`
	expect(t, c, connector.Command{Line: line, Env: env, Stdin: strings.NewReader("input")}, "x||"+env["ODD"]+"|input")
	expect(t, c, connector.Command{Line: line, Env: env}, "x||"+env["ODD"]+"|")
	// A secret must not be in the arguments of any process.
	expect(t, c, connector.Command{Line: `cat /proc/[0-9]*/cmdline 2>/dev/null | grep -c 's3cret[-]value'; true`,
		Env: env}, "0\n")
	if _, err := c.Run(context.Background(), connector.Command{Line: "true",
		Env: map[string]string{"a b": ""}}); err == nil {
		t.Error("a name that no shell can export is accepted")
	}
}

func checkLines(t *testing.T, c connector.Connector) {
	for _, tc := range []struct{ line, want string }{
		{"echo one\necho two", "one\ntwo\n"},
		{`printf '%s\n' 'back\\slash' "it's" '!bang' "a\"b" 'tab	'`, "back\\\\slash\nit's\n!bang\na\"b\ntab	\n"},
		{"echo $((1+1)) # comment", "2\n"},
		{"x=1; for i in 1 2; do x=$x$i; done; echo $x", "112\n"},
		{"/bin/echo 'a  b' c'd' 'e'\\''f'", "a  b cd e'f\n"},
		{`/bin/sh -c 'echo "$1$#"' sh 'x\y!'`, "x\\y!1\n"},
		{"echo $#", "0\n"},
		{"/bin/echo %s x=y", "%s x=y\n"},
		{"[ ~ = \"$HOME\" ] && echo yes", "yes\n"},
	} {
		// Twice: a transport may learn from the first.
		for range 2 {
			expect(t, c, connector.Command{Line: tc.line}, tc.want)
		}
	}
}

type count struct{ n int64 }

func (c *count) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func checkMuch(t *testing.T, c connector.Connector) {
	var out, errs count
	exit, err := c.Run(context.Background(), connector.Command{
		Line: "head -c 8388608 /dev/zero & head -c 8388608 /dev/zero >&2; wait", Stdout: &out, Stderr: &errs})
	if err != nil || exit.Code != 0 || out.n != 8<<20 || errs.n != 8<<20 {
		t.Errorf("got %d and %d bytes, %+v, %v", out.n, errs.n, exit, err)
	}
}

func checkAtOnce(t *testing.T, c connector.Connector) {
	var all sync.WaitGroup
	for i := range 25 {
		all.Go(func() {
			var out bytes.Buffer
			_, err := c.Run(context.Background(), connector.Command{Line: fmt.Sprintf("sleep 0.05; echo %d", i), Stdout: &out})
			if err != nil || out.String() != fmt.Sprintf("%d\n", i) {
				t.Errorf("command %d of many: %q, %v", i, out.String(), err)
			}
		})
	}
	all.Wait()
}

// checkLeftBehind: a daemon that keeps the outputs open does not delay Run.
func checkLeftBehind(t *testing.T, c connector.Connector) {
	mark := unique()
	defer c.Run(context.Background(), connector.Command{Line: "kill $(cat /tmp/" + mark + "); rm -f /tmp/" + mark})
	out, _, exit := Output(t, c, connector.Command{Line: "sleep 1000 & echo $! >/tmp/" + mark + "; echo started"})
	if out != "started\n" || exit.Code != 0 {
		t.Errorf("got %q, %+v", out, exit)
	}
}

func unique() string { return "kktest-" + connector.NewMark() }

// alive returns the pids of processes with text among their arguments.
func alive(text string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(text)) {
			found = append(found, filepath.Base(filepath.Dir(f)))
		}
	}
	return found
}

// gone waits for the processes with text among their arguments to end.
func gone(t *testing.T, text string) {
	t.Helper()
	for range 600 { // 30 s: a busy machine kills late
		if len(alive(text)) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("processes %v are still there", alive(text))
}

func checkCancelled(t *testing.T, c connector.Connector) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Run(done, connector.Command{Line: "true"}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// cancelRunning runs a line, in which 1000.N is a token to find it by, and cancels it while
// it runs.
func cancelRunning(t *testing.T, c connector.Connector, line string) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("this machine has no /proc to look for processes in")
	}
	number := strconv.FormatUint(rand.Uint64(), 10)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for len(alive("1000."+number)) == 0 {
			time.Sleep(50 * time.Millisecond) // scanning all processes is expensive
		}
		cancel()
	}()
	_, err := c.Run(ctx, connector.Command{Line: fmt.Sprintf(line, number), Stdin: blocked(ctx)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	gone(t, "."+number)
	expect(t, c, connector.Command{Line: "echo fine"}, "fine\n")
}

// blocked is an input without data or EOF.
func blocked(ctx context.Context) io.Reader {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.Close() })
	return r
}

// checkCancelPut: a cancelled transfer leaves nothing behind.
func checkCancelPut(t *testing.T, c connector.Connector) {
	dir := openDir(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var once sync.Once
	_, err := connector.Put(ctx, c, connector.File{Path: dir + "/f", Size: -1,
		Progress: func(done, _ int64) {
			if done > 4<<20 {
				once.Do(cancel)
			}
		}}, io.LimitReader(zeros{}, 1<<40))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for range 3000 {
		if left, _ := os.ReadDir(dir); len(left) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	left, _ := os.ReadDir(dir)
	t.Errorf("left behind: %v", left)
}

// openDir is a folder in which every user may write.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "kk-contract-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func checkFiles(t *testing.T, c connector.Connector) {
	dir := openDir(t)
	for _, size := range []int{0, 5, 300_000} {
		content := bytes.Repeat([]byte("k"), size)
		f := connector.File{Path: fmt.Sprintf("%s/it's %d", dir, size), Size: -1, Mode: 0o640}
		for _, changed := range []bool{true, false} {
			res, err := connector.Put(context.Background(), c, f, bytes.NewReader(content))
			if err != nil || res.Changed != changed {
				t.Fatalf("put %d bytes: %+v, %v", size, res, err)
			}
		}
		var got bytes.Buffer
		if _, err := connector.Get(context.Background(), c, f.Path, &got, nil); err != nil ||
			!bytes.Equal(got.Bytes(), content) {
			t.Errorf("get %d bytes: %d bytes, %v", size, got.Len(), err)
		}
	}
}

func checkTTY(t *testing.T, c connector.Connector) {
	out, _, exit := Output(t, c, connector.Command{Line: "test -t 0 && test -t 1 && echo yes", TTY: true})
	if strings.TrimSpace(out) != "yes" || exit.Code != 0 {
		t.Errorf("got %q, %+v", out, exit)
	}
}

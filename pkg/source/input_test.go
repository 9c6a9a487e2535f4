package source

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fifo creates a named pipe.
func fifo(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestReadIsBounded(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	hasWriter := fifo(t)
	w, err := os.OpenFile(hasWriter, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, c := range []struct{ what, file, want string }{
		{"as large as may be", write("full", 1000), ""},
		{"too large", write("more", 1001), "it has more than 1000 bytes, the most that is read"},
		{"empty", write("empty", 0), ""},
		{"endless device", "/dev/zero", "it has more than 1000 bytes, the most that is read"},
		{"file without a size", "/proc/cpuinfo", "it has more than 1000 bytes, the most that is read"},
		{"null", os.DevNull, ""},
		{"FIFO that nothing writes to", fifo(t), "nothing writes to it (it is a named pipe without a writer)"},
		{"FIFO that stays silent", hasWriter, "nothing came from it for 20ms, and it did not end"},
		{"folder", dir, "is a directory"},
		{"missing", filepath.Join(dir, "none"), "no such file or directory"},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, err := Tree{Patience: 20 * time.Millisecond}.Read(c.file, 1000)
			var pe *os.PathError
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.As(err, &pe) || pe.Err.Error() != c.want || pe.Path != c.file):
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// TestReadPipe reads the kind of pipe that a shell passes for <(command).
func TestReadPipe(t *testing.T) {
	for _, text := range []string{"", "one\n", strings.Repeat("0123456789", 50_000)} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		go func() {
			defer w.Close()
			_, _ = io.WriteString(w, text)
		}()
		got, err := Tree{}.Load("/dev/fd/"+strconv.Itoa(int(r.Fd())), "pipe")
		if err != nil || string(got.Text) != text {
			t.Errorf("%d bytes of %d: %v", len(got.Text), len(text), err)
		}
	}
}

func TestReadEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tree := Tree{}.WithContext(ctx)
	if _, err := tree.Read(fifo(t), MaxFile); !errors.Is(err, context.Canceled) {
		t.Errorf("FIFO: %v", err)
	}
	r, w := io.Pipe()
	defer w.Close()
	if _, err := tree.ReadStream(r, MaxFile); !errors.Is(err, context.Canceled) {
		t.Errorf("stream: %v", err)
	}
}

func TestReadStream(t *testing.T) {
	if got, err := (Tree{}).ReadStream(strings.NewReader("text"), 4); string(got) != "text" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := (Tree{}).ReadStream(strings.NewReader("text"), 3); err == nil {
		t.Error("more than may be")
	}
}

func TestOpenRefusesWhatHasNoEnd(t *testing.T) {
	for name, want := range map[string]string{fifo(t): "it is a pipe, and not a file",
		"/dev/zero": "it is a device, and not a file"} {
		if _, err := (Tree{}).Open(name); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f, err := Tree{}.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestProgram(t *testing.T) {
	for _, c := range []struct {
		what, script, out, err, stderr string
		limit                          time.Duration
	}{
		{"prints", "echo hi", "hi\n", "", "", 0},
		{"fails", "echo why >&2; exit 3", "", "exit status 3", "why", 0},
		{"prints without end", "trap '' PIPE; while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done", "",
			"it printed more than 1 MiB", "", 0},
		{"does not end", "sleep 1000", "", "it did not end within 50ms", "", 50 * time.Millisecond},
		{"leaves a child", "echo hi; sleep 1000 & echo $! >child", "hi\n", "", "", 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command("/bin/sh", "-c", c.script)
			cmd.Dir = dir
			out, err := Program{Cmd: cmd, Max: 1 << 20, Limit: c.limit}.Output(t.Context())
			if pid, err := os.ReadFile(filepath.Join(dir, "child")); err == nil {
				_ = exec.Command("kill", strings.TrimSpace(string(pid))).Run()
			}
			var bad *ProgramError
			switch {
			case c.err == "":
				if err != nil || string(out) != c.out {
					t.Errorf("%q, %v", out, err)
				}
			case !errors.As(err, &bad) || bad.Error() != c.err || bad.Stderr != c.stderr:
				t.Errorf("%v, want %s", err, c.err)
			}
		})
	}
}

// TestProgramEndsWithItsChildren checks that the children of a program are killed with it.
func TestProgramEndsWithItsChildren(t *testing.T) {
	if hasTerminal() {
		t.Skip("a program with a terminal stays in the group of the test")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.Command("/bin/sh", "-c", "sleep 1000 & echo $! >child.new; mv child.new child; wait")
	cmd.Dir = dir
	done := make(chan error, 1)
	go func() {
		_, err := Program{Cmd: cmd, Max: 1000}.Output(ctx)
		done <- err
	}()
	var pid int
	for pid == 0 {
		text, _ := os.ReadFile(filepath.Join(dir, "child"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for running(pid) {
		time.Sleep(time.Millisecond)
	}
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(text), ") Z ")
}

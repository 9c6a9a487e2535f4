package net_test

import (
	"context"
	"errors"
	"fmt"
	stdnet "net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/module/net"
	"kubekey/pkg/value"
)

func run(t *testing.T, name string, o moduletest.Options, pairs ...any) module.Result {
	t.Helper()
	return moduletest.Run(t, moduletest.Find(t, net.Modules(), name), value.NewDict(pairs...), o)
}

func get(r module.Result, key string) any {
	v, _ := r.Data.Get(key)
	return v
}

// listen opens a port that greets whoever connects.
func listen(t *testing.T, greeting string) int {
	t.Helper()
	l, err := stdnet.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, greeting)
			_ = c.Close()
		}
	}()
	return l.Addr().(*stdnet.TCPAddr).Port
}

// closed is a port that nothing listens on.
func closed(t *testing.T) int {
	t.Helper()
	l, err := stdnet.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*stdnet.TCPAddr).Port
}

func TestWaitForPort(t *testing.T) {
	open, shut := listen(t, "220 mail v7\r\n"), closed(t)
	cases := []struct {
		name string
		args []any
		msg  string
	}{
		{"open", []any{"port", open}, ""},
		{"open by name", []any{"port", open, "host", "localhost"}, ""},
		{"not open", []any{"port", shut, "timeout", 0}, fmt.Sprintf("Timeout when waiting for 127.0.0.1:%d", shut)},
		{"own text", []any{"port", shut, "timeout", 0, "msg", "no luck"}, "no luck"},
		{"stopped", []any{"port", shut, "state", "stopped"}, ""},
		{"not stopped", []any{"port", open, "state", "absent", "timeout", 0},
			fmt.Sprintf("Timeout when waiting for 127.0.0.1:%d to stop.", open)},
		{"drained", []any{"port", shut, "state", "drained"}, ""},
		{"greeting", []any{"port", open, "search_regex", `v(\d)`}, ""},
		{"other greeting", []any{"port", open, "search_regex", `v8`, "timeout", 0},
			fmt.Sprintf("Timeout when waiting for search string v8 in 127.0.0.1:%d", open)},
		{"nothing", []any{"timeout", 0}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			count := moduletest.Count(nil)
			r := run(t, "wait_for", moduletest.Options{Conn: count}, c.args...)
			if r.Failed != (c.msg != "") || r.Msg != c.msg || r.Changed || len(count.Lines()) != 1 {
				t.Errorf("got %+v after %d commands, want %q", r, len(count.Lines()), c.msg)
			}
		})
	}
	r := run(t, "wait_for", moduletest.Options{}, "port", open, "search_regex", `v(\d)(x)?`)
	if got := get(r, "match_groups"); !value.Equal(got, []any{"7", nil}) {
		t.Errorf("got %s", value.Repr(got))
	}
}

// only hides programs of the host from a command.
func only(t *testing.T, names ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, n := range append(names, "date", "sleep", "cat", "sh", "tail") {
		for _, place := range []string{"/bin/", "/usr/bin/"} {
			if _, err := os.Stat(place + n); err == nil {
				if err := os.Symlink(place+n, filepath.Join(dir, n)); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
	}
	t.Setenv("PATH", dir)
}

func TestWaitForPortWithWhatIsThere(t *testing.T) {
	open, shut := listen(t, ""), closed(t)
	for _, tool := range []string{"bash", "busybox", "curl", "none"} {
		t.Run(tool, func(t *testing.T) {
			only(t, tool)
			if r := run(t, "wait_for", moduletest.Options{}, "port", open, "timeout", 0); r.Failed {
				t.Errorf("open: %+v", r)
			}
			if r := run(t, "wait_for", moduletest.Options{}, "port", shut, "timeout", 0); !r.Failed {
				t.Errorf("closed: %+v", r)
			}
		})
	}
	only(t)
	if r := run(t, "wait_for", moduletest.Options{}, "port", 1, "host", "192.0.2.1"); !r.Failed ||
		!strings.Contains(r.Msg, "none of bash, nc, busybox and curl") {
		t.Errorf("got %+v", r)
	}
}

func TestWaitForDrained(t *testing.T) {
	l, err := stdnet.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := stdnet.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	port := l.Addr().(*stdnet.TCPAddr).Port
	args := []any{"port", port, "state", "drained", "timeout", 0}
	if r := run(t, "wait_for", moduletest.Options{}, args...); !r.Failed ||
		r.Msg != fmt.Sprintf("Timeout when waiting for 127.0.0.1:%d to drain", port) {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "wait_for", moduletest.Options{}, append(args, "exclude_hosts", "127.0.0.1")...); r.Failed {
		t.Errorf("an excluded address counts: %+v", r)
	}
	if r := run(t, "wait_for", moduletest.Options{}, append(args, "active_connection_states", "SYN_SENT")...); r.Failed {
		t.Errorf("another state counts: %+v", r)
	}
}

func TestWaitForPath(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a log")
	if err := os.WriteFile(file, []byte("starting\nready in 12 ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		args []any
		msg  string
	}{
		{"there", []any{"path", file}, ""},
		{"not there", []any{"path", dir + "/x", "timeout", 0}, "Timeout when waiting for file " + dir + "/x"},
		{"absent", []any{"path", dir + "/x", "state", "absent"}, ""},
		{"not absent", []any{"path", file, "state", "absent", "timeout", 0}, "Timeout when waiting for " + file +
			" to be absent."},
		{"line", []any{"path", file, "search_regex", `^ready in (?P<ms>\d+)`}, ""},
		{"lookahead", []any{"path", file, "search_regex", `^ready(?= in (?P<ms>\d+))`}, ""},
		{"no line", []any{"path", file, "search_regex", "failed", "timeout", 0},
			"Timeout when waiting for search string failed in " + file},
		{"condition", []any{"path", file, "search_regex", `^(r)?(?(1)ead{,2}y|x)\b`}, ""},
		{"no lookahead", []any{"path", file, "search_regex", "ready(?! in)", "timeout", 0},
			"Timeout when waiting for search string ready(?! in) in " + file},
		{"no file to search", []any{"path", dir + "/x", "search_regex", "a", "timeout", 0},
			"Timeout when waiting for search string a in " + dir + "/x"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, "wait_for", moduletest.Options{}, c.args...)
			if r.Msg != c.msg {
				t.Errorf("got %+v, want %q", r, c.msg)
			}
			if named, _ := get(r, "match_groupdict").(*value.Dict); strings.Contains(fmt.Sprint(c.args), "P<ms>") &&
				named.String("ms") != "12" {
				t.Errorf("groups: %s", value.Repr(named))
			}
		})
	}
}

func TestWaitForSeesWhatComesLater(t *testing.T) {
	file := filepath.Join(t.TempDir(), "later")
	done := make(chan module.Result, 1)
	go func() { done <- run(t, "wait_for", moduletest.Options{}, "path", file, "sleep", 0) }()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.Failed {
		t.Errorf("got %+v", r)
	}
}

// Waits that begin at the end of a second last as long as others.
func TestWaitForLastsAsLongAsItsTimeout(t *testing.T) {
	second := time.Now().Truncate(time.Second).Add(2 * time.Second)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			time.Sleep(time.Until(second.Add(time.Duration(-2*n) * time.Millisecond)))
			r := run(t, "wait_for", moduletest.Options{}, "timeout", 1)
			if elapsed, _ := r.Data.Get("elapsed"); r.Failed || elapsed == 0 {
				t.Errorf("%d ms before a second: got %s", 2*n, value.Repr(r.Data))
			}
		})
	}
	all.Wait()
}

func TestWaitForRefuses(t *testing.T) {
	for _, args := range [][]any{
		{"port", 1, "path", "/x"},
		{"port", 70000},
		{"path", "/x", "state", "stopped"},
		{"state", "drained"},
		{"port", 1, "exclude_hosts", "127.0.0.1"},
		{"search_regex", "x"},
		{"path", "/x", "search_regex", "x", "state", "absent"},
	} {
		if r := run(t, "wait_for", moduletest.Options{}, args...); !r.Failed || r.Msg == "" {
			t.Errorf("%v: got %+v", args, r)
		}
	}
	spec := moduletest.Find(t, net.Modules(), "wait_for")
	for _, args := range [][]any{
		{"path", "/x", "search_regex", "("},
		{"port", 1, "state", "drained", "exclude_hosts", "example.org"},
	} {
		if _, err := moduletest.Try(t, spec, value.NewDict(args...), moduletest.Options{}); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestWaitForUnreachableAndCancelled(t *testing.T) {
	spec := moduletest.Find(t, net.Modules(), "wait_for")
	var lost *connector.UnreachableError
	for _, args := range [][]any{{"port", 1}, {"path", "/x", "search_regex", "a"}} {
		_, err := moduletest.Try(t, spec, value.NewDict(args...), moduletest.Options{Conn: moduletest.Unreachable{}})
		if !errors.As(err, &lost) {
			t.Errorf("got %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	for _, args := range [][]any{{"delay", 60}, {"path", "/no/such"}} {
		_, err := moduletest.Try(t, spec, value.NewDict(args...), moduletest.Options{Context: ctx})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}
	if r := run(t, "wait_for", moduletest.Options{Check: true}); !r.Skipped {
		t.Errorf("got %+v", r)
	}
}

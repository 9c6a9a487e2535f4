package connector_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/connector/local"
)

// account is a connection that keeps account of late work, which here is a line in a file.
type account struct {
	t    *testing.T
	conn connector.Connector
	log  string
}

func newAccount(t *testing.T) *account {
	return &account{t, connector.PersistentShell(local.New()), filepath.Join(t.TempDir(), "log")}
}

func (a *account) run(c connector.Command) string {
	a.t.Helper()
	out, _, exit := connectortest.Output(a.t, a.conn, c)
	if exit.Code != 0 {
		a.t.Fatalf("%q: %+v", c.Line, exit)
	}
	return out
}

func (a *account) due(line string) {
	a.run(connector.Command{Line: line, Deferral: connector.Deferred})
}
func (a *account) done()        { a.run(connector.Command{Line: "false", Deferral: connector.DeferredDone}) }
func (a *account) work() string { return "echo done >>" + a.log }

// may reports whether a patient command may leave its work undone.
func (a *account) may() bool {
	a.t.Helper()
	cmd := connector.Script{Code: `echo "$KK_DEFER$OTHER"`}.Command()
	cmd.IgnoresDeferred, cmd.Env = true, map[string]string{"OTHER": "x"}
	out := strings.TrimSpace(a.run(cmd))
	if strings.TrimPrefix(out, "1") != "x" {
		a.t.Fatalf("got %q", out)
	}
	return out == "1x"
}

// wantDone checks how often the work was done.
func (a *account) wantDone(what string, want int) {
	a.t.Helper()
	text, _ := os.ReadFile(a.log)
	if got := strings.Count(string(text), "done"); got != want {
		a.t.Errorf("%s: the work was done %d times, want %d", what, got, want)
	}
}

func TestLateWorkIsDoneOnce(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	t.Cleanup(func() { a.conn.Close() })
	for range 3 {
		a.due(a.work())
		a.may()
	}
	a.wantDone("after patient commands", 0)
	if out := a.run(connector.Command{Line: "cat " + a.log}); out != "done\n" {
		t.Errorf("a command that is not patient sees %q", out)
	}
	a.run(connector.Command{Line: "true"})
	a.wantDone("after another", 1)
	a.due(a.work())
	if err := connector.Flush(context.Background(), a.conn); err != nil {
		t.Error(err)
	}
	a.wantDone("after Flush", 2)
	a.due(a.work())
	if err := a.conn.Close(); err != nil {
		t.Error(err)
	}
	a.wantDone("after Close", 3)
}

func TestWhetherWorkMayBeLate(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	t.Cleanup(func() { a.conn.Close() })
	for what, step := range map[string]func() bool{
		"at first":              func() bool { return false },
		"after it was done":     func() bool { a.may(); a.done(); return true },
		"after a command":       func() bool { a.may(); a.done(); a.run(connector.Command{Line: "true"}); return false },
		"done before a command": func() bool { a.may(); a.run(connector.Command{Line: "true"}); a.done(); return false },
	} {
		a.run(connector.Command{Line: "true"})
		want := step()
		for range 2 { // also after a patient command
			if got := a.may(); got != want {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
	}
}

func TestLateWorkThatFails(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	t.Cleanup(func() { a.conn.Close() })
	a.due("echo why >&2; exit 3")
	_, err := a.conn.Run(context.Background(), connector.Command{Line: "true"})
	if err == nil || !strings.Contains(err.Error(), "which an earlier task deferred, exited with status 3: why") {
		t.Errorf("got %v", err)
	}
	a.run(connector.Command{Line: "true"}) // it is reported once
	a.due(a.work())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := a.conn.Run(ctx, connector.Command{Line: "true"}); err == nil {
		t.Error("a cancelled command has no error")
	}
	a.run(connector.Command{Line: "true"})
	a.wantDone("after one that was cancelled", 1)
}

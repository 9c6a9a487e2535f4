package ssh_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/redact"
)

// script runs code as one of kk's own scripts and returns what it printed.
func script(t *testing.T, c connector.Connector, code string) string {
	t.Helper()
	out, stderr, exit := connectortest.Output(t, c, connector.Script{Code: code}.Command())
	if exit.Code != 0 || stderr != "" {
		t.Fatalf("%q: %+v, %q", code, exit, stderr)
	}
	return out
}

// waitForShell waits until two scripts run in the same shell: a persistent one.
func waitForShell(t *testing.T, c connector.Connector) (pid string) {
	t.Helper()
	for range 100 {
		if one, two := shellOf(t, c), shellOf(t, c); one == two {
			return one
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("there is no persistent shell")
	return ""
}

// shellOf is the number of the shell that forks scripts, or of the fork's parent.
func shellOf(t *testing.T, c connector.Connector) string {
	t.Helper()
	return script(t, c, `read -r _ _ _ up _ </proc/self/stat; echo "$up"`)
}

func TestContractOfShellThatStays(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	asked := connectortest.NewUser(t, "p4ss-word", "/bin/bash", "%s ALL=(ALL) ALL")
	csh := connectortest.NewUser(t, "p4ss-word", "/bin/csh", "")
	sudo := connector.BecomeOptions{Password: new(redact.Set).Secret("p4ss-word")}
	for name, tc := range map[string]struct {
		user   string
		become *connector.BecomeOptions
		whole  bool
	}{
		"root":           {user: d.User, whole: true},
		"another shell":  {user: csh},
		"sudo, password": {user: asked, become: &sudo, whole: true},
		"su, other password": {user: asked, become: &connector.BecomeOptions{Method: "su", User: csh,
			Password: sudo.Password}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract := connectortest.BriefContract
			if tc.whole {
				contract = connectortest.Contract
			}
			contract(t, func(t *testing.T) connector.Connector {
				o := options(d)
				o.User = tc.user
				c := connector.PersistentShell(connect(t, o))
				if tc.become != nil {
					c = connector.Become(c, *tc.become)
				}
				waitForShell(t, c)
				return connectortest.Scripts(c)
			})
		})
	}
}

func TestShellThatStaysMakesRoom(t *testing.T) {
	t.Parallel()
	for _, most := range []string{"1", "2"} {
		t.Run("MaxSessions "+most, func(t *testing.T) {
			t.Parallel()
			d := connectortest.StartSSHD(t, "MaxSessions "+most)
			c := connector.PersistentShell(connect(t, options(d)))
			for range 5 {
				for range 4 {
					if out := script(t, c, "echo script"); out != "script\n" {
						t.Errorf("got %q", out)
					}
				}
				start := time.Now()
				mustRun(t, c, "echo command", "command\n")
				out, _, _ := connectortest.Output(t, c, connector.Command{Line: "cat", Stdin: strings.NewReader("in")})
				if out != "in" || time.Since(start) > 20*time.Second {
					t.Errorf("got %q after %s", out, time.Since(start))
				}
			}
			connectortest.BriefContract(t, func(t *testing.T) connector.Connector {
				return connectortest.Scripts(connector.PersistentShell(connect(t, options(d))))
			})
		})
	}
}

// TestShellOfYesterday: a user whose groups may have changed since gets a new shell.
func TestShellOfYesterday(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	o := options(d)
	o.User = connectortest.NewUser(t, "p4ss-word", "/bin/sh", "%s ALL=(ALL) NOPASSWD:ALL")
	c := connector.PersistentShell(connect(t, o))
	root := connector.Become(c, connector.BecomeOptions{})
	own, roots := waitForShell(t, c), waitForShell(t, root)
	script(t, root, "true")
	if again := waitForShell(t, c); again != own {
		t.Error("a new shell for no reason")
	}
	mustRun(t, root, "true", "")
	if again := waitForShell(t, root); again != roots {
		t.Error("a new shell for root, who has all rights anyway")
	}
	renews := connector.Script{Code: "true", Renews: true}.Command()
	connectortest.Output(t, root, renews)
	if again := waitForShell(t, c); again == own {
		t.Error("the shell has outdated groups after a script")
	}
	own = waitForShell(t, c)
	mustRun(t, c, "true", "")
	if again := waitForShell(t, c); again == own {
		t.Error("the shell has outdated groups after a command")
	}
}

func TestConnectionLostUnderScript(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	c := connector.PersistentShell(connect(t, options(d)))
	waitForShell(t, c)
	done := make(chan error, 1)
	begun := filepath.Join(t.TempDir(), "begun")
	go func() {
		_, err := c.Run(context.Background(), connector.Script{Code: `: >"$1"; sleep 30`, Args: []string{begun}}.Command())
		done <- err
	}()
	for script(t, c, "ls "+filepath.Dir(begun)) == "" {
		time.Sleep(20 * time.Millisecond)
	}
	// The server's process for this connection is the parent of the session's shell.
	if _, err := c.Run(context.Background(), connector.Command{Line: "kill -KILL $PPID; sleep 5"}); err == nil {
		t.Error("the connection is still open")
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "lost the connection") {
		t.Errorf("got %v", err)
	}
	if out := script(t, c, "echo again"); out != "again\n" {
		t.Errorf("got %q", out)
	}
}

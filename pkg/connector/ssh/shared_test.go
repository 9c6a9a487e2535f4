package ssh_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/connector/ssh"
)

// member is a Host that uses s.
func member(t testing.TB, s *ssh.Shared, o ssh.Options) *ssh.Host {
	t.Helper()
	h, err := s.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func logins(d *connectortest.SSHD) int { return strings.Count(d.Log(), "Accepted publickey") }

// behind is the options of a host behind a jump host.
func behind(t *testing.T, d, bastion *connectortest.SSHD) ssh.Options {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "config")
	text := "Host edge\n HostName 127.0.0.1\n Port " + strconv.Itoa(bastion.Port) + "\n User root\n IdentityFile " +
		bastion.KeyFile +
		"\nHost 127.0.0.1\n IdentityFile " + d.KeyFile + "\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options(d)
	o.ConfigFile, o.ProxyJump, o.PrivateKeyFiles = conf, "edge", nil
	o.KnownHosts = []string{d.KnownHosts, bastion.KnownHosts}
	return o
}

func TestOneConnectionToTheJumpHost(t *testing.T) {
	t.Parallel()
	d, bastion := connectortest.StartSSHD(t), connectortest.StartSSHD(t)
	o := behind(t, d, bastion)
	shared := ssh.NewShared()
	var all sync.WaitGroup
	hosts := make([]*ssh.Host, 8)
	for i := range hosts {
		hosts[i] = member(t, shared, o)
		all.Go(func() { mustRun(t, hosts[i], "echo hi", "hi\n") })
	}
	all.Wait()
	if n := logins(bastion); n != 1 {
		t.Errorf("%d logins at the jump host, want 1", n)
	}
	for _, h := range hosts[1:] {
		h.Close()
	}
	mustRun(t, hosts[0], "echo still", "still\n")
	hosts[0].Close()
	for range 300 { // the last user closes the connection
		if strings.Contains(bastion.Log(), "Disconnected from user root") || strings.Contains(bastion.Log(),
			"Connection closed by") ||
			strings.Contains(bastion.Log(), "Received disconnect") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	mustRun(t, member(t, shared, o), "echo again", "again\n")
	if n := logins(bastion); n != 2 {
		t.Errorf("%d logins at the jump host, want 2: the first connection must be closed", n)
	}
}

func TestJumpHostThatIsDownIsTriedOnce(t *testing.T) {
	t.Parallel()
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	shared := ssh.NewShared()
	o := ssh.Options{Host: "x", ConfigFile: "none", AgentSocket: "none", HostKey: ssh.Insecure,
		ConnectTimeout: 500 * time.Millisecond,
		ProxyJump:      deaf.Addr().String()}
	gone, cancel := context.WithCancel(context.Background())
	first := member(t, shared, o)
	var all sync.WaitGroup
	all.Go(func() { _, _ = first.Run(gone, connector.Command{Line: "true"}) })
	for range 5 {
		all.Go(func() { wantUnreachable(t, member(t, shared, o), "no answer within 500ms") })
	}
	cancel() // must not cancel the attempts of the others
	all.Wait()
}

func TestKnownHostsAreReadOnce(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	file := filepath.Join(t.TempDir(), "known_hosts")
	write := func(lines ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	line := knownhosts.Line([]string{knownhosts.HashHostname(knownhosts.Normalize(d.Addr))}, d.HostKey)
	write("# hashed", line)
	o := options(d)
	o.KnownHosts = []string{file}
	shared := ssh.NewShared()
	mustRun(t, member(t, shared, o), "echo hashed", "hashed\n")
	// Changes by others are detected.
	write("# nobody")
	wantUnreachable(t, member(t, shared, o), "is not known")
	o.HostKey = ssh.AcceptNew
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() { mustRun(t, member(t, shared, o), "echo new", "new\n") })
	}
	all.Wait()
	if text, _ := os.ReadFile(file); strings.Count(string(text), "\n") != 2 {
		t.Errorf("known_hosts has\n%s", text)
	}
	// What this run accepted must not change.
	other := connectortest.StartSSHD(t)
	p := connectortest.DelayProxy(t, d.Addr, 0)
	moved := o
	_, port, _ := net.SplitHostPort(p.Addr)
	moved.Port, _ = strconv.Atoi(port)
	mustRun(t, member(t, shared, moved), "echo proxy", "proxy\n")
	p.Redirect(other.Addr)
	wantUnreachable(t, member(t, shared, moved), "HAS CHANGED")
}

// TestBadLineOfKnownHosts: a line that cannot be read does not affect the hosts of other
// lines, and a new host's key can be added below it.
func TestBadLineOfKnownHosts(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	good, err := os.ReadFile(d.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		text   string
		policy ssh.HostKeyPolicy
	}{
		"strict":     {"node1 ssh-new AAAA\n\x00\x00\n" + string(good), ssh.Strict},
		"accept-new": {"node1 ssh-new AAAA\n\x00\x00", ssh.AcceptNew},
	} {
		t.Run(what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "known_hosts")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			o := options(d)
			o.KnownHosts, o.HostKey = []string{file}, c.policy
			for range 2 {
				mustRun(t, member(t, ssh.NewShared(), o), "echo reached", "reached\n")
			}
		})
	}
}

// BenchmarkManyKnownHosts is what a host costs with a known_hosts of 10 000 lines.
func BenchmarkManyKnownHosts(b *testing.B) {
	d := connectortest.StartSSHD(b)
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "10.%d.%d.%d %s", i>>16, i>>8&255, i&255, xssh.MarshalAuthorizedKey(d.HostKey))
	}
	fmt.Fprintf(&text, "[127.0.0.1]:%d %s", d.Port, xssh.MarshalAuthorizedKey(d.HostKey))
	file := filepath.Join(b.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, files := range map[string][]string{"one": {d.KnownHosts}, "10000": {file}} {
		b.Run(name, func(b *testing.B) {
			shared := ssh.NewShared()
			o := options(d)
			o.KnownHosts = files
			for b.Loop() {
				h := member(b, shared, o)
				if _, err := h.Run(context.Background(), connector.Command{Line: "/bin/true"}); err != nil {
					b.Fatal(err)
				}
				h.Close()
			}
		})
	}
}

// TestHostThatStalls answers no keepalive: a host that lost its power.
func TestHostThatStalls(t *testing.T) {
	t.Parallel()
	p, o := through(t, 0)
	o.KeepAlive = 100 * time.Millisecond
	h := connect(t, o)
	mustRun(t, h, "echo one", "one\n")
	p.Stall()
	_, err := h.Run(context.Background(), connector.Command{Line: "echo two"})
	var lost *connector.UnreachableError
	if !errors.As(err, &lost) {
		t.Errorf("got %v, want an UnreachableError", err)
	}
}

// TestWaitingShellThatDies leaves the connection as good as it was.
func TestWaitingShellThatDies(t *testing.T) {
	t.Parallel()
	h := connect(t, options(connectortest.StartSSHD(t)))
	input := func() {
		t.Helper()
		if out, _, _ := connectortest.Output(t, h, connector.Command{Line: "cat",
			Stdin: strings.NewReader("in")}); out != "in" {
			t.Errorf("got %q", out)
		}
	}
	for range 5 { // more often than it is started again
		input()
		// The parent of this command's shell is the sshd that has the waiting shell, too.
		mustRun(t, h, `for d in 1 2 3 4 5 6 7 8 9 10; do for p in /proc/[0-9]*; do
			{ read -r l <$p/stat; } 2>/dev/null || continue
			l=${l##*) }; set -- $l; [ "$2" = "$PPID" ] && [ "$p" != "/proc/$$" ] && kill -9 ${p#/proc/} && break 2; done; sleep 0.05; done; sleep 0.3`, "")
		input()
	}
	mustRun(t, h, "echo fine", "fine\n")
}

package ssh_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/connector/ssh"
	"kubekey/pkg/redact"
)

func mustRun(t *testing.T, c connector.Connector, line, want string) {
	t.Helper()
	if out, stderr, exit := connectortest.Output(t, c, connector.Command{Line: line}); out != want || stderr != "" {
		t.Errorf("%q printed %q and %q (%+v), want %q", line, out, stderr, exit, want)
	}
}

// wantUnreachable checks that a command fails with an UnreachableError whose reason contains want.
func wantUnreachable(t *testing.T, c connector.Connector, want ...string) {
	t.Helper()
	_, err := c.Run(context.Background(), connector.Command{Line: "true"})
	var lost *connector.UnreachableError
	if !errors.As(err, &lost) {
		t.Fatalf("got %v, want an UnreachableError", err)
	}
	for _, w := range want {
		if !strings.Contains(lost.Reason, w) {
			t.Errorf("the reason is %q, want %q in it", lost.Reason, w)
		}
	}
}

func TestContractOfOtherLoginShells(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	for _, shell := range []string{"/usr/bin/fish", "/bin/csh"} {
		t.Run(filepath.Base(shell), func(t *testing.T) {
			t.Parallel()
			o := options(d)
			o.User = connectortest.NewUser(t, "p4ss-word", shell, "")
			connectortest.BriefContract(t, func(t *testing.T) connector.Connector { return connect(t, o) })
		})
	}
}

func TestFewSessions(t *testing.T) {
	t.Parallel()
	for _, most := range []string{"1", "2"} {
		t.Run("MaxSessions "+most, func(t *testing.T) {
			t.Parallel()
			d := connectortest.StartSSHD(t, "MaxSessions "+most)
			connectortest.BriefContract(t, func(t *testing.T) connector.Connector { return connect(t, options(d)) })
		})
	}
}

// TestFewSessionsUnderBecome: killing a command of another user needs a session too, and
// must not wait for that of the command.
func TestFewSessionsUnderBecome(t *testing.T) {
	t.Parallel()
	asked := connectortest.NewUser(t, "p4ss-word", "/bin/sh", "%s ALL=(ALL) ALL")
	for _, most := range []string{"1", "2"} {
		t.Run("MaxSessions "+most, func(t *testing.T) {
			t.Parallel()
			d := connectortest.StartSSHD(t, "MaxSessions "+most)
			connectortest.BriefContract(t, func(t *testing.T) connector.Connector {
				o := options(d)
				o.User = asked
				return connector.Become(connect(t, o), connector.BecomeOptions{Password: new(redact.Set).Secret("p4ss-word")})
			})
		})
	}
}

func TestHostKeys(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	other := connectortest.StartSSHD(t)
	text, err := os.ReadFile(other.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	port := func(d *connectortest.SSHD) string { return "]:" + strconv.Itoa(d.Port) }
	changed := strings.Replace(string(text), port(other), port(d), 1)
	file := func(content string) string {
		f := filepath.Join(t.TempDir(), "known_hosts")
		if err := os.WriteFile(f, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	o := options(d)
	o.KnownHosts = []string{file("# nothing")}
	wantUnreachable(t, connect(t, o), "is not known: ssh-ed25519 SHA256:", o.KnownHosts[0], "ssh-keyscan -p",
		"--ssh-host-key accept-new")
	o.HostKey = ssh.AcceptNew
	mustRun(t, connect(t, o), "echo hi", "hi\n")
	o.HostKey = ssh.Strict
	mustRun(t, connect(t, o), "echo hi", "hi\n")
	o.HostKey, o.KnownHosts = ssh.AcceptNew, []string{file("# comment\n" + changed)}
	wantUnreachable(t, connect(t, o), "HAS CHANGED", o.KnownHosts[0]+":2", "ssh-keygen -f")
	o.HostKey = ssh.Insecure
	mustRun(t, connect(t, o), "echo hi", "hi\n")
}

func TestNoSessionAllowed(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t, "MaxSessions 0")
	wantUnreachable(t, connect(t, options(d)), "refuses to open a session", "MaxSessions of sshd")
}

func TestPreciseReasons(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := free.Addr().(*net.TCPAddr).Port
	free.Close()
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	for name, tc := range map[string]struct {
		change func(*ssh.Options)
		want   string
	}{
		"refused": {func(o *ssh.Options) { o.Port = closed }, "connection refused: nothing listens on port"},
		"name":    {func(o *ssh.Options) { o.Address = "no-such-host.invalid" }, "cannot be resolved"},
		"silent": {func(o *ssh.Options) {
			o.Port = deaf.Addr().(*net.TCPAddr).Port
			o.ConnectTimeout = 300 * time.Millisecond
		}, "no answer within 300ms"},
		"no login":  {func(o *ssh.Options) { o.User = "no-such-user" }, "cannot log in to node1"},
		"no key":    {func(o *ssh.Options) { o.PrivateKeyFiles = []string{"/no/key"} }, "private key /no/key"},
		"not a key": {func(o *ssh.Options) { o.PrivateKeyFiles = []string{d.KnownHosts} }, "not a private key"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(d)
			tc.change(&o)
			wantUnreachable(t, connect(t, o), tc.want)
		})
	}
}

func TestPassword(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t, "PasswordAuthentication yes")
	o := options(d)
	o.User = connectortest.NewUser(t, "p4ss-word", "/bin/sh", "")
	o.PrivateKeyFiles, o.PrivateKey = nil, redact.Secret{}
	o.Password = new(redact.Set).Secret("p4ss-word")
	mustRun(t, connect(t, o), "id -un", o.User+"\n")
	o.Password = new(redact.Set).Secret("wrong-one")
	wantUnreachable(t, connect(t, o), "the host refused", "password")
}

func TestProxyJumpAndConfigFile(t *testing.T) {
	t.Parallel()
	d, bastion := connectortest.StartSSHD(t), connectortest.StartSSHD(t)
	conf := filepath.Join(t.TempDir(), "config")
	text := "Host node1\n HostName 127.0.0.1\n Port " + strconv.Itoa(d.Port) +
		"\n User root\n ProxyJump edge\n IdentityFile " + d.KeyFile +
		"\nHost edge\n HostName 127.0.0.1\n Port " + strconv.Itoa(bastion.Port) + "\n User root\n IdentityFile " +
		bastion.KeyFile + "\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := ssh.Options{Host: "node1", ConfigFile: conf, AgentSocket: "none", KnownHosts: []string{d.KnownHosts,
		bastion.KnownHosts}}
	mustRun(t, connect(t, o), "echo hi", "hi\n")
	if !strings.Contains(bastion.Log(), "Accepted publickey for root") {
		t.Errorf("the connection did not go through the jump host: %s", bastion.Log())
	}
}

func through(t *testing.T, rtt time.Duration) (*connectortest.Proxy, ssh.Options) {
	t.Helper()
	d := connectortest.StartSSHD(t)
	p := connectortest.DelayProxy(t, d.Addr, rtt)
	_, port, err := net.SplitHostPort(p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	o := options(d)
	o.Port, err = strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	o.HostKey = ssh.Insecure
	return p, o
}

func TestConnectionLost(t *testing.T) {
	t.Parallel()
	p, o := through(t, 0)
	h := connect(t, o)
	mustRun(t, h, "echo one", "one\n")
	p.Cut()
	time.Sleep(50 * time.Millisecond) // until the end has been seen
	mustRun(t, h, "echo two", "two\n")
	if n := p.Connections(); n != 1 {
		t.Errorf("%d connections, want one", n)
	}
	mark := filepath.Join(t.TempDir(), "ran")
	go func() {
		for {
			if _, err := os.Stat(mark); err == nil {
				p.Cut()
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	_, err := h.Run(context.Background(), connector.Command{Line: "echo x >>" + mark + "; sleep 3"})
	var lost *connector.UnreachableError
	if !errors.As(err, &lost) || !strings.Contains(lost.Reason, "while a command ran") {
		t.Errorf("got %v", err)
	}
	if ran, _ := os.ReadFile(mark); string(ran) != "x\n" {
		t.Errorf("the command ran %d times", bytes.Count(ran, []byte("x")))
	}
	mustRun(t, h, "echo three", "three\n")
}

func TestCloseEndsCommands(t *testing.T) {
	t.Parallel()
	h := connect(t, options(connectortest.StartSSHD(t)))
	mustRun(t, h, "echo one", "one\n")
	time.AfterFunc(50*time.Millisecond, func() { h.Close() })
	if _, err := h.Run(context.Background(), connector.Command{Line: "sleep 2"}); err == nil {
		t.Error("a command outlives Close")
	}
	if _, err := h.Run(context.Background(), connector.Command{Line: "true"}); err == nil {
		t.Error("a closed connector runs commands")
	}
}

func TestBadOptions(t *testing.T) {
	for want, o := range map[string]ssh.Options{
		"no host is given":         {},
		"host key policy":          {Host: "x", ConfigFile: "none", HostKey: "maybe"},
		"is not between 1 and":     {Host: "x", ConfigFile: "none", Port: 70000},
		"read ssh configuration":   {Host: "x", ConfigFile: "/no/such/file"},
		"port \"y\" is not a numb": {Host: "x", ConfigFile: "none", ProxyJump: "a:y"},
		"has an empty host":        {Host: "x", ConfigFile: "none", ProxyJump: "a,,b"},
	} {
		if _, err := ssh.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

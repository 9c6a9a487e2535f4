package ssh_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/connector/ssh"
	"kubekey/pkg/redact"
)

// overTurns is a host behind a proxy that counts round trips.
func overTurns(t *testing.T, d *connectortest.SSHD) (*connectortest.Turns, ssh.Options) {
	t.Helper()
	p := connectortest.TurnProxy(t, d.Addr)
	o := options(d)
	o.HostKey = ssh.Insecure
	_, port, err := net.SplitHostPort(p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if o.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	return p, o
}

// wantTrips checks how many round trips f needs. A busy machine makes it look like
// more, never like less, so the least of a few tries counts, each after prepare.
func wantTrips(t *testing.T, p *connectortest.Turns, name string, want int, f func(), prepare ...func()) {
	t.Helper()
	least := 1 << 30
	for try := 0; try < 4 && least > want; try++ {
		for _, before := range prepare {
			before()
		}
		p.WaitIdle()
		before := p.Count()
		f()
		least = min(least, p.Count()-before)
	}
	if least != want {
		t.Errorf("%s took %d round trips, want %d", name, least, want)
	}
}

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	p, o := overTurns(t, d)
	h := connect(t, o)
	mustRun(t, h, "true", "")
	dir := t.TempDir()
	content := 0
	put := func(text string) func() {
		return func() {
			content++
			f := connector.File{Path: filepath.Join(dir, "f"), Size: -1}
			if _, err := connector.Put(context.Background(), h, f, strings.NewReader(text+strconv.Itoa(content))); err != nil {
				t.Error(err)
			}
		}
	}
	input := func(h connector.Connector) func() {
		return func() {
			if out, _, _ := connectortest.Output(t, h, connector.Command{Line: "cat",
				Stdin: strings.NewReader("x")}); out != "x" {
				t.Errorf("got %q", out)
			}
		}
	}
	command := func() { mustRun(t, h, "/bin/true", "") }
	get := func() {
		var b bytes.Buffer
		if _, err := connector.Get(context.Background(), h, filepath.Join(dir, "g"), &b, nil); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "g"), []byte("get me"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantTrips(t, p, "a command", 1, command)
	// OpenSSH opens a window when the command starts. From then on a shell waits.
	p.WaitIdle()
	var fresh *ssh.Host
	wantTrips(t, p, "the first command with input", 2, func() { input(fresh)() }, func() {
		fresh = connect(t, o)
		mustRun(t, fresh, "true", "")
	})
	input(h)()
	wantTrips(t, p, "a command with input", 1, input(h))
	wantTrips(t, p, "a command beside the waiting shell", 1, command)
	wantTrips(t, p, "put, small", 1, put("small"))
	wantTrips(t, p, "put, big", 2, put(strings.Repeat("x", 100_000)))
	wantTrips(t, p, "get", 1, get)
	wantTrips(t, p, "a command, then put, twice", 4, func() {
		for range 2 {
			command()
			put("small")()
		}
	})
	root := connector.Become(h, connector.BecomeOptions{Password: new(redact.Set).Secret("not asked for")})
	wantTrips(t, p, "become with a password", 1, func() { mustRun(t, root, "true", "") })
}

package bench

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"
)

// fleet is many hosts in this process: an SSH server on every address of
// 127.0.0.0/8, which runs the commands that it is asked for on this machine. An
// sshd for each connection would take more than all that is measured.
type fleet struct {
	dir       string
	inventory string
	closed    int // a port where nobody listens
}

const (
	// Of a hundred hosts, number 99 is not there, number 50 and 0 fail at the end.
	unreachableAt = 99
	failAt        = 50
)

// newFleet starts the server and writes an inventory of hosts n1, n2, ...
func newFleet(tb testing.TB, hosts int) *fleet {
	tb.Helper()
	// Not below TempDir of the test: its name would make every path long.
	dir, err := os.MkdirTemp("", "kk-fleet-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	server, hostKey := serverConfig(tb)
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	go serve(l, server, dir)
	f := &fleet{dir: dir, closed: freePort(tb)}
	port := l.Addr().(*net.TCPAddr).Port
	key := writeKey(tb, filepath.Join(dir, "key"))
	var known, inv strings.Builder
	fmt.Fprintf(&inv, "all:\n  vars:\n    ansible_user: root\n    ansible_ssh_private_key_file: %s\n    ansible_ssh_common_args: -o UserKnownHostsFile=%s/known_hosts\n    dir: %s/files\n  hosts:\n", key, dir, dir)
	for i := 1; i <= hosts; i++ {
		addr, at := fmt.Sprintf("127.20.%d.%d", i/250, i%250+1), port
		if i%100 == unreachableAt {
			at = f.closed
		}
		fmt.Fprintf(&known, "[%s]:%d %s", addr, at, ssh.MarshalAuthorizedKey(hostKey))
		fmt.Fprintf(&inv, "    n%d: {ansible_host: %s, ansible_port: %d, number: %d}\n", i, addr, at, i)
	}
	write(tb, dir, "known_hosts", known.String())
	f.inventory = write(tb, dir, "inventory.yaml", inv.String())
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o755); err != nil {
		tb.Fatal(err)
	}
	return f
}

func serverConfig(tb testing.TB) (*ssh.ServerConfig, ssh.PublicKey) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		tb.Fatal(err)
	}
	c := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	c.AddHostKey(signer)
	return c, signer.PublicKey()
}

func serve(l net.Listener, config *ssh.ServerConfig, dir string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // the test ended
		}
		go func() {
			defer c.Close()
			_, channels, requests, err := ssh.NewServerConn(c, config)
			if err != nil {
				return
			}
			go ssh.DiscardRequests(requests)
			for ch := range channels {
				go session(ch, dir)
			}
		}()
	}
}

// session runs the command of one session, as sshd does.
func session(open ssh.NewChannel, dir string) {
	ch, requests, err := open.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(false, nil)
			continue
		}
		var line struct{ Text string }
		_ = r.Reply(ssh.Unmarshal(r.Payload, &line) == nil, nil)
		go ssh.DiscardRequests(requests)
		status := struct{ Code uint32 }{command(ch, line.Text, dir)}
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(&status))
		return
	}
}

func command(ch ssh.Channel, line, dir string) (code uint32) {
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "USER=root", "SHELL=/bin/sh"}
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return 127
	}
	go func() {
		// Ends with the connection at the latest, and then the command has no input either.
		_, _ = io.Copy(in, ch)
		in.Close()
	}()
	_ = cmd.Wait()
	return uint32(cmd.ProcessState.ExitCode())
}

// writeKey writes a new private key to a file, and returns the file's name.
func writeKey(tb testing.TB, file string) string {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "fleet")
	if err != nil {
		tb.Fatal(err)
	}
	return write(tb, filepath.Dir(file), filepath.Base(file), string(pem.EncodeToMemory(block)))
}

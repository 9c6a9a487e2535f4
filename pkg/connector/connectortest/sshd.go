package connectortest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// SSHD is a real sshd on a loopback port, with its own keys. It accepts logins of its own
// user, and of any other user if the test runs as root.
type SSHD struct {
	Addr       string // 127.0.0.1:port
	Port       int
	User       string // the user who runs the test
	KeyFile    string // a private key that it accepts for every user
	HostKey    ssh.PublicKey
	KnownHosts string // a known_hosts file that has HostKey
	Config     string // its sshd_config
	cmd        *exec.Cmd
	log        *lockedBuffer
	t          testing.TB
}

// StartSSHD starts an sshd with additional config lines. It skips the test where sshd is not
// installed or the test does not run as root. It is stopped at the end of the test.
func StartSSHD(t testing.TB, config ...string) *SSHD {
	t.Helper()
	bin := findSSHD(t)
	// Not t.TempDir: other users must be able to read authorized_keys.
	dir, err := os.MkdirTemp("", "kk-sshd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := &SSHD{User: "root", KeyFile: filepath.Join(dir, "key"), KnownHosts: filepath.Join(dir, "known_hosts"),
		Config: filepath.Join(dir, "sshd_config"), Port: freePort(t), t: t}
	d.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(d.Port))
	d.HostKey = newKey(t, filepath.Join(dir, "host_key"))
	authorized := filepath.Join(dir, "authorized_keys")
	writeFile(t, authorized, string(ssh.MarshalAuthorizedKey(newKey(t, d.KeyFile))))
	writeFile(t, d.KnownHosts, fmt.Sprintf("[127.0.0.1]:%d %s", d.Port, ssh.MarshalAuthorizedKey(d.HostKey)))
	// The start-up files of the real home folder must not affect the test.
	home := filepath.Join(dir, "home")
	if err := errors.Join(os.Mkdir(home, 0o777), os.Chmod(home, 0o777)); err != nil { // fish writes there
		t.Fatal(err)
	}
	lines := append(config, // the first value of a keyword wins
		"ListenAddress "+d.Addr, "HostKey "+filepath.Join(dir, "host_key"), "AuthorizedKeysFile "+authorized,
		"PidFile none", "SetEnv HOME="+home, "StrictModes no",
		"PermitRootLogin yes", "UsePAM no", "PasswordAuthentication no",
		"MaxStartups 100:30:200", "LogLevel VERBOSE")
	writeFile(t, d.Config, strings.Join(lines, "\n")+"\n")
	d.Start(bin)
	return d
}

func findSSHD(t testing.TB) string {
	t.Helper()
	const bin = "/usr/sbin/sshd"
	if _, err := os.Stat(bin); err != nil {
		t.Skipf("%s does not exist: install openssh-server to run this test", bin)
	}
	if os.Getuid() != 0 {
		t.Skip("a test sshd needs root")
	}
	// Debian creates this folder only when its own service starts.
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	return bin
}

// Start starts the server (again) and waits until it listens.
func (d *SSHD) Start(bin string) {
	d.t.Helper()
	d.log = &lockedBuffer{}
	d.cmd = exec.Command(bin, "-D", "-e", "-f", d.Config)
	d.cmd.Stderr = d.log
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	cmd := d.cmd
	d.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 200 {
		c, err := net.Dial("tcp", d.Addr)
		if err == nil {
			c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	d.t.Fatalf("sshd does not listen:\n%s", d.Log())
}

// Restart stops the server and all its connections and starts it again.
func (d *SSHD) Restart() {
	d.t.Helper()
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	d.Start("/usr/sbin/sshd")
}

// Log returns what the server has logged.
func (d *SSHD) Log() string { return d.log.String() }

func newKey(t testing.TB, file string) ssh.PublicKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writeFile(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

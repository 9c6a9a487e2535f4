package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPasswordLogin(t *testing.T) {
	c := newController(t)
	password := devPassword(t, c.lab)
	hosts := map[string]vars{
		"password": c.sshd(t, 0, 2201, "PubkeyAuthentication no", "KbdInteractiveAuthentication no"),
		"interactive": c.sshd(t, 0, 2202, "PubkeyAuthentication no", "PasswordAuthentication no",
			"KbdInteractiveAuthentication yes"),
		"either": c.sshd(t, 0, 2203, "KbdInteractiveAuthentication yes"),
	}
	for name, v := range hosts {
		hosts[name] = v.with("ansible_user", "dev", "ansible_password", password)
	}
	hosts["either"]["ansible_ssh_private_key_file"] = c.strangeKey(t) // is refused first
	o := c.runOn(t, hosts, ping, "-vvv")
	o.exits(t, 0)
	for name := range hosts {
		o.recap(t, name, "ok=1")
		hosts[name] = hosts[name].with("ansible_password", "wr0ng", "ansible_ssh_private_key_file", nil)
	}
	if strings.Contains(o.stdout+o.stderr, password) {
		t.Error("the password is shown")
	}
	o = c.runOn(t, hosts, ping)
	o.exits(t, 4)
	for name := range hosts {
		o.recap(t, name, "unreachable=1")
		o.says(t, "cannot log in to "+name)
	}
}

func TestEncryptedKey(t *testing.T) {
	c := newController(t)
	key := c.lockedKey(t, "open sesame")
	v := c.reach(0, "root").with("ansible_ssh_private_key_file", key)
	hosts := map[string]vars{
		"opened": v.with("ansible_private_key_passphrase", "open sesame"),
		"wrong":  v.with("ansible_private_key_passphrase", "open says me"),
		"locked": v,
	}
	o := c.runOn(t, hosts, ping, "-vvv")
	o.exits(t, 4)
	o.recap(t, "opened", "ok=1", "unreachable=0")
	o.recap(t, "wrong", "unreachable=1")
	o.recap(t, "locked", "unreachable=1")
	o.says(t, "the passphrase is wrong", "it is encrypted and no passphrase is given")
	for _, s := range []string{"open sesame", "open says me"} {
		if strings.Contains(o.stdout+o.stderr, s) {
			t.Errorf("the passphrase %q is shown", s)
		}
	}
}

// lockedKey is a copy of the lab's key that a passphrase opens.
func (c *controller) lockedKey(t *testing.T, passphrase string) string {
	t.Helper()
	text, err := os.ReadFile(c.lab.Hosts[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "id_locked")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	keygen(t, "-q", "-p", "-P", "", "-N", passphrase, "-f", path)
	return path
}

// The key is in the agent alone, or beside a file that only a passphrase opens.
func TestAgent(t *testing.T) {
	c := newController(t)
	dir, err := os.MkdirTemp("/tmp", "kk-agent") // a socket's path has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	agent := exec.CommandContext(t.Context(), "ssh-agent", "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		agent.Process.Kill()
		agent.Wait() // it was killed
	})
	eventually(t, "the agent listens", func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	add := exec.CommandContext(t.Context(), "ssh-add", "-q", c.lab.Hosts[0].Key)
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("ssh-add: %v: %s", err, out)
	}
	alone := c.reach(0, "root").with("ansible_ssh_private_key_file", nil)
	hosts := map[string]vars{
		"alone":  alone,
		"beside": alone.with("ansible_ssh_private_key_file", c.lockedKey(t, "open sesame")),
	}
	cmd := c.command(t, "run", c.write(t, "site.yaml", ping), "-i", c.inventory(t, hosts))
	cmd.Env = append(cmd.Env, "SSH_AUTH_SOCK="+socket)
	o := start(t, cmd).end(t)
	o.exits(t, 0)
	o.recap(t, "alone", "ok=1")
	o.recap(t, "beside", "ok=1")
	c.runOn(t, map[string]vars{"alone": alone}, ping).exits(t, 4) // without the agent
}

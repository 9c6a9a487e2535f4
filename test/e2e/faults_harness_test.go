package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/test/lab"
)

// vars are variables of one host in an inventory.
type vars map[string]any

// reach is what kk needs to know to log in to host i as a user.
func (c *controller) reach(i int, user string) vars {
	h := c.lab.Hosts[i]
	return vars{"ansible_host": h.Address, "ansible_user": user, "ansible_ssh_private_key_file": h.Key}
}

// with returns a copy of v with the pairs of a name and a value set; a nil value unsets.
func (v vars) with(pairs ...any) vars {
	out := vars{}
	for name, value := range v {
		out[name] = value
	}
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i].(string)
		if out[name] = pairs[i+1]; pairs[i+1] == nil {
			delete(out, name)
		}
	}
	return out
}

// inventory writes an inventory and returns its path. It is JSON, which is YAML too.
func (c *controller) inventory(t *testing.T, hosts map[string]vars) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"all": map[string]any{"hosts": hosts}})
	if err != nil {
		t.Fatal(err)
	}
	return c.write(t, "inventory.yaml", string(text))
}

// runOn writes a playbook and runs it on the hosts given.
func (c *controller) runOn(t *testing.T, hosts map[string]vars, playbook string, args ...string) outcome {
	t.Helper()
	return c.startOn(t, hosts, playbook, args...).end(t)
}

// startOn is runOn for a run that the test disturbs.
func (c *controller) startOn(t *testing.T, hosts map[string]vars, playbook string, args ...string) *running {
	t.Helper()
	args = append([]string{"run", c.write(t, "site.yaml", playbook), "-i", c.inventory(t, hosts)}, args...)
	return start(t, c.command(t, args...))
}

// running is a kk that runs in the background.
type running struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

func start(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{cmd: cmd}
	cmd.Stdout, cmd.Stderr = &r.stdout, &r.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// end waits for kk's end.
func (r *running) end(t *testing.T) outcome {
	t.Helper()
	err := r.cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run kk: %v", err)
	}
	return outcome{code: r.cmd.ProcessState.ExitCode(), stdout: r.stdout.String(), stderr: r.stderr.String()}
}

// says fails the test unless all the texts are in what kk printed.
func (o outcome) says(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(o.stdout+o.stderr, text) {
			t.Errorf("kk does not say %q\nstdout:\n%.4000s\nstderr:\n%.4000s", text, o.stdout, o.stderr)
		}
	}
}

// on runs a script as root on host i, past sshd, and returns what it printed.
func (c *controller) on(t *testing.T, i int, script string) string {
	t.Helper()
	out, err := c.lab.Exec(t.Context(), i, script)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// after runs a script as root on host i when the test ends.
func (c *controller) after(t *testing.T, i int, script string) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := c.lab.Exec(context.Background(), i, script); err != nil {
			t.Error(err)
		}
	})
}

// succeeds waits until a script ends well on host i.
func (c *controller) succeeds(t *testing.T, i int, what, script string) {
	t.Helper()
	eventually(t, what, func() bool {
		_, err := c.lab.Exec(t.Context(), i, script)
		return err == nil
	})
}

// sshd starts a second sshd on host i with options of its own, which ends with the
// test, and makes its host key known. It returns the variables that lead there.
func (c *controller) sshd(t *testing.T, i, port int, options ...string) vars {
	t.Helper()
	unit := fmt.Sprintf("sshd-%d", port)
	line := fmt.Sprintf("systemctl reset-failed %[1]s 2>/dev/null; systemd-run -q --unit=%[1]s /usr/sbin/sshd -D -p %d -o PidFile=none", unit, port)
	for _, o := range options {
		line += " -o '" + o + "'"
	}
	c.on(t, i, line)
	c.after(t, i, "systemctl stop "+unit)
	h := c.lab.Hosts[i]
	c.on(t, i, fmt.Sprintf("n=0; until ss -Htln | grep -q ':%d '; do n=$((n+1)); [ $n -lt 200 ]; sleep 0.05; done", port))
	c.know(t, fmt.Sprintf("[%s]:%d", h.Address, port), c.hostKey(t, i))
	return c.reach(i, "root").with("ansible_port", port)
}

// hostKey is the public key of host i's sshd, as known_hosts has it.
func (c *controller) hostKey(t *testing.T, i int) string {
	t.Helper()
	known, err := os.ReadFile(c.lab.KnownHosts())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(known)) {
		if name, key, _ := strings.Cut(strings.TrimSpace(line), " "); name == c.lab.Hosts[i].Address {
			return key
		}
	}
	t.Fatalf("no key of %s in %s", c.lab.Hosts[i].Name, c.lab.KnownHosts())
	return ""
}

func (c *controller) knownHosts() string { return filepath.Join(c.home, ".ssh/known_hosts") }

// know adds a host key to the controller's known_hosts.
func (c *controller) know(t *testing.T, name, key string) {
	t.Helper()
	f, err := os.OpenFile(c.knownHosts(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s %s\n", name, key); err != nil {
		t.Fatal(err)
	}
}

// devPassword is the password of the user dev.
func devPassword(t *testing.T, l *lab.Lab) string {
	t.Helper()
	text, err := os.ReadFile(l.PasswordFile())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// strangeKey makes a private key that no host lets in.
func (c *controller) strangeKey(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "id_stranger")
	keygen(t, "-q", "-t", "ed25519", "-N", "", "-f", path)
	return path
}

func keygen(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
}

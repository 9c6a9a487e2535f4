package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSecondRunChangesNothing(t *testing.T) {
	c := newController(t)
	playbook := `
- hosts: all
  gather_facts: false
  tasks:
    - name: Write a file
      copy:
        dest: /etc/greeting
        content: "hello from {{ inventory_hostname }}\n"
        mode: "0640"
`
	first := c.play(t, playbook)
	first.exits(t, 0)
	second := c.play(t, playbook)
	second.exits(t, 0)
	for i, h := range c.lab.Hosts {
		first.recap(t, h.Name, "ok=1", "changed=1", "failed=0")
		second.recap(t, h.Name, "ok=1", "changed=0", "failed=0")
		out, err := c.lab.Exec(t.Context(), i, "stat -c %a /etc/greeting; cat /etc/greeting")
		if want := "640\nhello from " + h.Name + "\n"; err != nil || out != want {
			t.Errorf("%s: %q, %v, want %q", h.Name, out, err, want)
		}
	}
}

func TestFailedHostDoesNotStopTheOthers(t *testing.T) {
	c := newController(t)
	o := c.play(t, `
- hosts: all
  gather_facts: false
  tasks:
    - name: Fail on the second host
      command: test {{ inventory_hostname }} != node2
      changed_when: false
    - name: Go on with the others
      command: "true"
      changed_when: false
`)
	o.exits(t, 2)
	o.recap(t, "node1", "ok=2", "failed=0")
	o.recap(t, "node2", "ok=0", "failed=1")
	o.recap(t, "node3", "ok=2", "failed=0")
}

func TestUnreachableHostIsToldFromAFailedOne(t *testing.T) {
	c := newController(t)
	if err := c.lab.PowerOff(2); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.lab.Start(t.Context(), 2); err != nil {
			t.Error(err)
		}
	}()
	o := c.play(t, "- {hosts: all, gather_facts: false, tasks: [{command: 'true'}]}\n")
	o.exits(t, 4)
	o.recap(t, "node1", "ok=1", "unreachable=0")
	o.recap(t, "node3", "ok=0", "unreachable=1")
}

func TestMistakeIsFoundBeforeAHostIsTouched(t *testing.T) {
	c := newController(t)
	o := c.play(t, `
- hosts: all
  gather_facts: false
  tasks:
    - command: touch /tmp/touched
    - copy: {dst: /etc/motd, content: hi}
`)
	o.exits(t, 4)
	if shown := o.stdout + o.stderr; !strings.Contains(shown, "site.yaml:6") || !strings.Contains(shown, `"dest"`) {
		t.Errorf("want the line and the right argument's name\n%s", shown)
	}
	for i, h := range c.lab.Hosts {
		if _, err := c.lab.Exec(t.Context(), i, "test ! -e /tmp/touched"); err != nil {
			t.Errorf("%s was touched: %v", h.Name, err)
		}
	}
}

func TestBecomeWithAndWithoutAPassword(t *testing.T) {
	c := newController(t)
	password, err := os.ReadFile(c.lab.PasswordFile())
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(password))
	h := c.lab.Hosts[0]
	inventory := c.write(t, "inventory.yaml", fmt.Sprintf(`
all:
  hosts:
    as_ops: {ansible_user: ops}
    as_dev: {ansible_user: dev, ansible_become_password: %s}
  vars: {ansible_host: %s, ansible_ssh_private_key_file: %s}
`, secret, h.Address, h.Key))
	playbook := c.write(t, "site.yaml", `
- hosts: all
  gather_facts: false
  become: true
  tasks:
    - command: id -un
      register: who
      changed_when: false
    - assert: {that: who.stdout == "root"}
`)
	o := c.kk(t, "run", playbook, "-i", inventory, "-v")
	o.exits(t, 0)
	o.recap(t, "as_ops", "ok=2")
	o.recap(t, "as_dev", "ok=2")
	if strings.Contains(o.stdout+o.stderr, secret) {
		t.Error("the password is in the output")
	}
}

func TestUnknownHostKeyIsRefused(t *testing.T) {
	c := newController(t)
	h := c.lab.Hosts[0]
	empty := c.write(t, "known_hosts", "")
	inventory := c.write(t, "inventory.yaml", fmt.Sprintf(`
all:
  hosts:
    node1:
      ansible_host: %s
      ansible_user: root
      ansible_ssh_private_key_file: %s
      ansible_ssh_common_args: -o UserKnownHostsFile=%s
`, h.Address, h.Key, empty))
	playbook := c.write(t, "site.yaml", "- {hosts: all, gather_facts: false, tasks: [{command: 'true'}]}\n")
	o := c.kk(t, "run", playbook, "-i", inventory)
	o.exits(t, 4)
	o.recap(t, "node1", "unreachable=1")
}

func TestInterruptEndsTheRemoteCommand(t *testing.T) {
	c := newController(t)
	playbook := c.write(t, "site.yaml", "- {hosts: node1, gather_facts: false, tasks: [{command: sleep 4242}]}\n")
	cmd := c.command(t, "run", playbook, "-i", c.lab.Inventory())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const sleeping = "pgrep -f '[s]leep 4242'"
	eventually(t, "the command starts", func() bool {
		_, err := c.lab.Exec(t.Context(), 0, sleeping)
		return err == nil
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // the exit code follows
	if code := cmd.ProcessState.ExitCode(); code != 99 {
		t.Errorf("exit code %d, want 99", code)
	}
	eventually(t, "the command ends", func() bool {
		_, err := c.lab.Exec(t.Context(), 0, sleeping)
		return err != nil
	})
}

// eventually waits for a condition on a host; its limit is generous, since it
// is there to end a broken test and not to measure.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("waited in vain: %s", what)
}

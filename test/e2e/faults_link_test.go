package e2e

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// lossPlaybook runs a command that lasts and one after it. The first host's
// command ends when its file appears; the others are done at once.
const lossPlaybook = `
- hosts: all
  gather_facts: false
  tasks:
    - name: Last
      shell: "touch /tmp/kk-started; sleep 3131"
      when: inventory_hostname == 'node1'
    - name: Follow
      command: "true"
      changed_when: false
`

func TestSSHDKilledDuringATask(t *testing.T) {
	c := newController(t)
	c.after(t, 0, "rm -f /tmp/kk-started; pkill -f '[s]leep 3131'; systemctl start ssh")
	run := c.startOn(t, map[string]vars{"node1": c.reach(0, "root"), "node2": c.reach(1, "root")}, lossPlaybook)
	c.succeeds(t, 0, "the command starts", "test -e /tmp/kk-started")
	if err := c.lab.KillSSHD(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	o := run.end(t)
	o.exits(t, 4)
	o.recap(t, "node1", "ok=0", "unreachable=1", "failed=0")
	o.recap(t, "node2", "ok=1", "unreachable=0", "failed=0")
	o.says(t, "lost the connection to node1", "the command may have finished or still run")
}

func TestSSHDKilledBetweenTasks(t *testing.T) {
	c := newController(t)
	c.after(t, 0, "rm -f /tmp/kk-away /tmp/kk-go")
	run := c.startOn(t, map[string]vars{"node1": c.reach(0, "root")}, `
- hosts: node1
  gather_facts: false
  tasks:
    - name: Connect
      command: "true"
    - name: Wait without the host
      shell: "touch away; until test -e go; do sleep 0.05; done"
      args: {chdir: `+c.work+`}
      delegate_to: localhost
      connection: local
    - name: Go on
      command: "true"
`)
	eventually(t, "the tasks pause", func() bool { return exists(c.work + "/away") })
	if err := c.lab.KillSSHD(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connection is gone", func() bool {
		out, err := exec.CommandContext(t.Context(), "ss", "-Htn", "state", "established", "dst",
			c.lab.Hosts[0].Address).Output()
		return err == nil && len(out) == 0
	})
	c.write(t, "go", "")
	o := run.end(t)
	o.exits(t, 0)
	o.recap(t, "node1", "ok=3", "unreachable=0", "failed=0")
}

// powerOnAfter boots host i when the test ends. Its /tmp is on its disk.
func (c *controller) powerOnAfter(t *testing.T, i int) {
	t.Helper()
	c.after(t, i, "rm -f /tmp/kk-started")
	t.Cleanup(func() {
		if err := c.lab.Start(context.Background(), i); err != nil {
			t.Error(err)
		}
	})
}

func TestHostThatLosesItsPowerDuringATask(t *testing.T) {
	c := newController(t)
	run := c.startOn(t, map[string]vars{"node1": c.reach(0, "root"), "node2": c.reach(1, "root")}, lossPlaybook)
	c.succeeds(t, 0, "the command starts", "test -e /tmp/kk-started")
	if err := c.lab.PowerOff(0); err != nil {
		t.Fatal(err)
	}
	c.powerOnAfter(t, 0)
	o := run.end(t)
	o.exits(t, 4)
	o.recap(t, "node1", "ok=0", "unreachable=1")
	o.recap(t, "node2", "ok=1", "unreachable=0")
	o.says(t, "lost the connection to node1")
}

// A host whose cable is pulled says nothing at all: only keepalive notices.
func TestHostThatFallsSilent(t *testing.T) {
	c := newController(t)
	c.after(t, 0, "rm -f /tmp/kk-started; pkill -f '[s]leep 3131'; true")
	hosts := map[string]vars{
		"node1": c.reach(0, "root").with("ansible_ssh_extra_args", "-o ServerAliveInterval=1 -o ConnectTimeout=2"),
		"node2": c.reach(1, "root"),
	}
	run := c.startOn(t, hosts, lossPlaybook)
	c.succeeds(t, 0, "the command starts", "test -e /tmp/kk-started")
	c.silence(t, 0)
	o := run.end(t)
	o.exits(t, 4)
	o.recap(t, "node1", "ok=0", "unreachable=1")
	o.recap(t, "node2", "ok=1", "unreachable=0")

	again := c.runOn(t, hosts, "- {hosts: all, gather_facts: false, tasks: [{command: 'true'}]}\n")
	again.exits(t, 4)
	again.recap(t, "node1", "unreachable=1")
	again.recap(t, "node2", "ok=1")
	again.says(t, "no answer within 2s", c.lab.Hosts[0].Address)
}

// silence drops every packet to and from host i until the test ends.
func (c *controller) silence(t *testing.T, i int) {
	t.Helper()
	c.on(t, i, "iptables -w -I INPUT -i eth0 -j DROP && iptables -w -I OUTPUT -o eth0 -j DROP")
	c.after(t, i, "iptables -w -D INPUT -i eth0 -j DROP; iptables -w -D OUTPUT -o eth0 -j DROP")
}

func TestHostWithoutSSHD(t *testing.T) {
	c := newController(t)
	hosts := map[string]vars{
		"closed":  c.reach(0, "root").with("ansible_port", 2299),
		"nowhere": c.reach(0, "root").with("ansible_host", "no-such-host.invalid"),
		"node2":   c.reach(1, "root"),
	}
	o := c.runOn(t, hosts, "- {hosts: all, gather_facts: false, tasks: [{command: 'true'}, {command: 'true'}]}\n")
	o.exits(t, 4)
	o.recap(t, "closed", "ok=0", "unreachable=1")
	o.recap(t, "nowhere", "ok=0", "unreachable=1")
	o.recap(t, "node2", "ok=2", "unreachable=0")
	o.says(t, "connection refused: nothing listens on port 2299", "the name no-such-host.invalid cannot be resolved")
}

// A failed login reports what was tried, without secrets.
func TestRefusedLogin(t *testing.T) {
	c := newController(t)
	const wrong = "wr0ng-passw0rd"
	stranger := c.strangeKey(t)
	hosts := map[string]vars{
		"badkey":  c.reach(0, "root").with("ansible_ssh_private_key_file", stranger),
		"badpass": c.reach(0, "dev").with("ansible_ssh_private_key_file", nil, "ansible_password", wrong),
		"nothing": c.reach(0, "dev").with("ansible_ssh_private_key_file", nil),
		"nokey":   c.reach(0, "root").with("ansible_ssh_private_key_file", "/no/such/key"),
	}
	o := c.runOn(t, hosts, "- {hosts: all, gather_facts: false, tasks: [{command: 'true'}]}\n")
	o.exits(t, 4)
	for host := range hosts {
		o.recap(t, host, "ok=0", "unreachable=1")
	}
	o.says(t, "cannot log in to badkey", "refused key "+stranger, "refused password", "no private key, agent or password",
		"/no/such/key")
	if strings.Contains(o.stdout+o.stderr, wrong) {
		t.Error("the wrong password is shown")
	}
}

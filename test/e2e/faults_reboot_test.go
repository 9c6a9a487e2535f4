package e2e

import (
	"context"
	"testing"
	"time"
)

// bootWhenDown stands in for the firmware of host i, until the test ends: nspawn
// ends with its host, and something has to switch it on again.
func (c *controller) bootWhenDown(t *testing.T, i int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil && c.lab.Hosts[i].Running() {
			time.Sleep(20 * time.Millisecond)
		}
		done <- c.lab.Start(context.Background(), i)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestReboot(t *testing.T) {
	c := newController(t)
	before := c.on(t, 0, "cat /proc/1/stat | cut -d' ' -f22")
	c.bootWhenDown(t, 0)
	// All hosts share the machine's kernel and so its boot_id: the start of PID 1 tells boots apart.
	o := c.runOn(t, map[string]vars{"node1": c.reach(0, "ops").with("ansible_become", true), "node2": c.reach(1, "root")},
		`
- hosts: all
  gather_facts: false
  tasks:
    - command: "true"
    - reboot: {boot_time_command: "cut -d' ' -f22 /proc/1/stat", reboot_timeout: 60}
      register: went
      when: inventory_hostname == "node1"
    - assert: {that: went is changed}
      when: inventory_hostname == "node1"
    - command: "true"
`)
	o.exits(t, 0)
	o.recap(t, "node1", "ok=4", "unreachable=0", "failed=0")
	o.recap(t, "node2", "ok=2", "unreachable=0", "failed=0")
	if after := c.on(t, 0, "cat /proc/1/stat | cut -d' ' -f22"); after == before {
		t.Error("the host has not been rebooted")
	}
}

func TestWaitForConnection(t *testing.T) {
	c := newController(t)
	if err := c.lab.PowerOff(0); err != nil {
		t.Fatal(err)
	}
	c.powerOnAfter(t, 0)
	run := c.startOn(t, map[string]vars{"node1": c.reach(0, "root")}, `
- hosts: all
  gather_facts: false
  tasks:
    - shell: touch trying
      args: {chdir: `+c.work+`}
      delegate_to: localhost
      connection: local
    - wait_for_connection: {timeout: 90, sleep: 1}
    - command: "true"
`)
	eventually(t, "kk runs", func() bool { return exists(c.work + "/trying") })
	if err := c.lab.Start(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	o := run.end(t)
	o.exits(t, 0)
	o.recap(t, "node1", "ok=3", "unreachable=0")
}

func TestWaitForConnectionInVain(t *testing.T) {
	c := newController(t)
	o := c.runOn(t, map[string]vars{"node1": c.reach(0, "root").with("ansible_port", 2299)}, `
- hosts: all
  gather_facts: false
  tasks:
    - wait_for_connection: {timeout: 3, sleep: 1}
`)
	o.exits(t, 2)
	o.recap(t, "node1", "failed=1")
	o.says(t, "timed out waiting for the connection", "connection refused")
}

// A connection that was there, and is lost under the feet of the wait.
func TestWaitForConnectionThatIsLost(t *testing.T) {
	c := newController(t)
	c.after(t, 0, "systemctl start ssh")
	run := c.startOn(t, map[string]vars{"node1": c.reach(0, "root")}, `
- hosts: all
  gather_facts: false
  tasks:
    - shell: "systemctl stop ssh; sleep 1; pkill -KILL -x sshd"
      ignore_unreachable: true
    - wait_for_connection: {timeout: 60, sleep: 1}
    - command: "true"
`)
	c.succeeds(t, 0, "sshd is gone", "! pgrep -x sshd")
	c.on(t, 0, "systemctl start ssh")
	o := run.end(t)
	o.exits(t, 0)
	o.recap(t, "node1", "unreachable=0", "failed=0")
}

package e2e

import (
	"strings"
	"syscall"
	"testing"
)

// endless runs a command with children under a name that is searched for: one in the
// background, one in a session of its own, one that ignores TERM. A file says
// that they run.
const endless = `
- hosts: all
  gather_facts: false
  become: "{{ become_it }}"
  tasks:
    - shell: >-
        setsid sleep NAME & (trap '' TERM; sleep NAME; sleep NAME) & nohup sleep NAME >/dev/null &
        touch /tmp/kk-endless/{{ inventory_hostname }}; sleep NAME; true
      LIMIT
    - command: "true"
`

// endlessHosts are the ways in which such a command can run on host 0.
func (c *controller) endlessHosts(t *testing.T) map[string]vars {
	t.Helper()
	c.on(t, 0, "mkdir -m 0777 /tmp/kk-endless")
	c.after(t, 0, "rm -r /tmp/kk-endless; pkill -KILL -f '[s]leep 5151'; true")
	return map[string]vars{
		"root":  c.reach(0, "root").with("become_it", false),
		"user":  c.reach(0, "ops").with("become_it", false),
		"sudo":  c.reach(0, "ops").with("become_it", true),
		"pass":  c.reach(0, "dev").with("become_it", true, "ansible_become_password", devPassword(t, c.lab)),
		"other": c.reach(0, "ops").with("become_it", true, "ansible_become_user", "dev"),
	}
}

func TestTimeoutEndsEveryProcessOfATask(t *testing.T) {
	c := newController(t)
	hosts := c.endlessHosts(t)
	o := c.runOn(t, hosts, strings.NewReplacer("NAME", "5151", "LIMIT", "timeout: 3").Replace(endless))
	o.exits(t, 2)
	for name := range hosts {
		o.recap(t, name, "ok=0", "failed=1", "unreachable=0")
		c.on(t, 0, "test -e /tmp/kk-endless/"+name) // it did run
	}
	o.says(t, "in the expected time frame (3) and was terminated")
	c.succeeds(t, 0, "nothing of it is left", "! pgrep -f '[s]leep 5151'")
}

func TestInterruptEndsEveryProcessOfATask(t *testing.T) {
	c := newController(t)
	hosts := c.endlessHosts(t)
	run := c.startOn(t, hosts, strings.NewReplacer("NAME", "5151", "LIMIT", "").Replace(endless))
	for name := range hosts {
		c.succeeds(t, 0, "the command starts as "+name, "test -e /tmp/kk-endless/"+name)
	}
	if err := run.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	run.end(t).exits(t, 99)
	c.succeeds(t, 0, "nothing of it is left", "! pgrep -f '[s]leep 5151'")
}

package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
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

// The first signal lets kk end what runs on the hosts, which takes its time where one
// does not answer; the second ends kk itself.
func TestSecondInterruptEndsAtOnce(t *testing.T) {
	c := newController(t)
	c.after(t, 0, "rm -f /tmp/kk-started; pkill -f '[s]leep 3131'; true")
	run := c.startOn(t, map[string]vars{"node1": c.reach(0, "root")}, lossPlaybook)
	c.succeeds(t, 0, "the command starts", "test -e /tmp/kk-started")
	c.silence(t, 0)
	ended := make(chan outcome)
	go func() { ended <- run.end(t) }()
	for {
		// An error says that kk has ended meanwhile.
		_ = run.cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-ended:
			if status := run.cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
				t.Errorf("kk went on to its own end, exit code %d", status.ExitStatus())
			}
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

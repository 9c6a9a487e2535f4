package e2e

import (
	"syscall"
	"testing"
)

// asyncPlaybook runs a job that ends when the test wants it, as root.
const asyncPlaybook = `
- hosts: all
  gather_facts: false
  become: true
  tasks:
    - name: Work
      shell: "touch /tmp/kk-started; until test -e /tmp/kk-go; do sleep 0.1; done; touch /tmp/kk-done"
      async: 120
      poll: 1
`

func asyncHost(t *testing.T) *controller {
	t.Helper()
	c := newController(t)
	c.on(t, 0, "rm -rf /root/.ansible_async") // jobs that others' tests left
	c.after(t, 0, "touch /tmp/kk-go; sleep 1; rm -rf /tmp/kk-started /tmp/kk-go /tmp/kk-done /root/.ansible_async; systemctl start ssh")
	return c
}

func TestJobGoesOnWhenTheConnectionBreaks(t *testing.T) {
	c := asyncHost(t)
	run := c.startOn(t, map[string]vars{"node1": c.reach(0, "ops")}, asyncPlaybook)
	c.succeeds(t, 0, "the job starts", "test -e /tmp/kk-started")
	if err := c.lab.KillSSHD(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	c.on(t, 0, "systemctl restart ssh; touch /tmp/kk-go")
	o := run.end(t)
	o.exits(t, 0)
	o.recap(t, "node1", "ok=1", "changed=1", "unreachable=0", "failed=0")
	if left := c.on(t, 0, "ls -A /root/.ansible_async"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

func TestJobGoesOnWhenKKIsKilled(t *testing.T) {
	c := asyncHost(t)
	run := c.startOn(t, map[string]vars{"node1": c.reach(0, "ops")}, asyncPlaybook)
	c.succeeds(t, 0, "the job starts", "test -e /tmp/kk-started")
	if err := run.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	run.end(t)
	c.on(t, 0, "touch /tmp/kk-go")
	c.succeeds(t, 0, "the job ends", "test \"$(ls -A /root/.ansible_async | wc -l)\" = 1 && grep -q '\"finished\": 1' /root/.ansible_async/j*")
	if got := c.on(t, 0, "stat -c %a /root/.ansible_async /root/.ansible_async/*"); got != "700\n600" {
		t.Errorf("modes of folder and file:\n%s", got)
	}
	jid := c.on(t, 0, "ls /root/.ansible_async")
	o := c.runOn(t, map[string]vars{"node1": c.reach(0, "ops")}, `
- hosts: all
  gather_facts: false
  become: true
  tasks:
    - async_status: {jid: `+jid+`}
      register: job
    - assert: {that: [job is finished, job.rc == 0]}
`)
	o.exits(t, 0)
}

func TestInterruptEndsTheJobThatIsWaitedFor(t *testing.T) {
	c := asyncHost(t)
	run := c.startOn(t, map[string]vars{"node1": c.reach(0, "ops")}, asyncPlaybook)
	c.succeeds(t, 0, "the job starts", "test -e /tmp/kk-started")
	if err := run.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	run.end(t).exits(t, 99)
	c.succeeds(t, 0, "nothing is left", "! pgrep -f '[u]ntil test -e /tmp/kk-go' && test ! -e /tmp/kk-done && [ -z \"$(ls -A /root/.ansible_async)\" ]")
}

func TestJobOfALostHostHasFailed(t *testing.T) {
	c := asyncHost(t)
	o := c.runOn(t, map[string]vars{"node1": c.reach(0, "root")}, `
- hosts: all
  gather_facts: false
  tasks:
    - command: sleep 3132
      async: 600
      poll: 0
      register: begun
    - shell: "kill -9 $(cat {{ begun.results_file }}.pid); pkill -9 -f '[s]leep 3132'"
    - async_status: {jid: "{{ begun.ansible_job_id }}"}
      register: job
      until: job is finished
      ignore_errors: true
    - assert: {that: [job is failed, job.msg is search('without a result')]}
`)
	o.exits(t, 0)
}

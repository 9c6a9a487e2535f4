package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// A server may allow one session at a time: then all waits its turn, the ending of a
// command too.
func TestFewSessions(t *testing.T) {
	c := newController(t)
	c.after(t, 0, "rm -f /tmp/kk-few-*; pkill -f '[s]leep 7171'; true")
	hosts := map[string]vars{
		"one": c.sshd(t, 0, 2211, "MaxSessions 1"),
		"two": c.sshd(t, 0, 2212, "MaxSessions 2"),
		"ten": c.sshd(t, 0, 2213, "MaxSessions 10"),
	}
	o := c.runOn(t, hosts, `
- hosts: all
  gather_facts: true
  tasks:
    - command: echo {{ item }}
      loop: "{{ range(30) }}"
      loop_control: {forks: 15}
      register: all
      changed_when: false
    - assert: {that: "all.results | map(attribute='stdout') | map('int') | list == range(30) | list"}
    - copy: {content: "{{ 'f' * 300000 }}", dest: "/tmp/kk-few-{{ inventory_hostname }}"}
    - shell: sleep 7171
      timeout: 2
      ignore_errors: true
    - command: "true"
`)
	o.exits(t, 0)
	for name := range hosts {
		o.recap(t, name, "ok=6", "ignored=1", "unreachable=0", "failed=0")
	}
	c.succeeds(t, 0, "the command is ended", "! pgrep -f '[s]leep 7171'")
}

// Fifty names lead to one sshd, which begins to drop connections at ten that have
// not logged in yet.
func TestManyHosts(t *testing.T) {
	c := newController(t)
	const n = 50
	base := c.lab.Hosts[0].Address
	subnet := base[:strings.LastIndexByte(base, '.')+1]
	var add, remove strings.Builder
	hosts := map[string]vars{}
	for i := range n {
		address := subnet + strconv.Itoa(151+i)
		fmt.Fprintf(&add, "ip address add %s/24 dev eth0\n", address)
		fmt.Fprintf(&remove, "ip address delete %s/24 dev eth0\n", address)
		c.know(t, address, c.hostKey(t, 0))
		hosts[fmt.Sprintf("h%02d", i)] = c.reach(0, "root").with("ansible_host", address, "number", i)
	}
	c.after(t, 0, remove.String()+"rm -rf /tmp/kk-many")
	c.on(t, 0, "set -e\n"+add.String()+"mkdir /tmp/kk-many")
	o := c.runOn(t, hosts, `
- hosts: all
  gather_facts: false
  tasks:
    - command: echo {{ number }}
      register: told
      changed_when: false
    - assert: {that: told.stdout|int == number}
    - copy: {content: "{{ inventory_hostname }}", dest: "/tmp/kk-many/{{ inventory_hostname }}"}
`, "--forks", strconv.Itoa(n))
	o.exits(t, 0)
	for name := range hosts {
		o.recap(t, name, "ok=3", "changed=1", "unreachable=0")
	}
	if got := c.on(t, 0, "ls /tmp/kk-many | wc -l"); got != strconv.Itoa(n) {
		t.Errorf("%s files were written, want %d", got, n)
	}
}

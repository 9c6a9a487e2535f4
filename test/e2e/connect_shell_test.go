package e2e

import (
	"fmt"
	"testing"
)

// shellPlaybook does what login shells read differently: quotes, variables, lines,
// exclamation marks, backslashes, input, become.
const shellPlaybook = `
- hosts: all
  gather_facts: true
  vars:
    odd: "it's \"$nope\" \\ back\\\\slash ` + "`id`" + ` !bang ~ * {a,b} ; | & # %s"
  tasks:
    - assert: {that: ansible_facts.hostname is defined}
    - command: {argv: [printf, '%s', "{{ odd }}"]}
      register: word
      changed_when: false
    - assert: {that: word.stdout == odd}
    - shell: |
        x='one two'
        for w in $x; do echo "$w!"; done
        printf '%s\n' 'a\nb' {{ odd | quote }}
      register: lines
      changed_when: false
    - assert: {that: "lines.stdout_lines == ['one!', 'two!', 'a\\\\nb', odd]"}
    - command: cat
      args: {stdin: "{{ odd }}\n{{ odd }}"}
      register: input
      changed_when: false
    - assert: {that: input.stdout == odd ~ '\n' ~ odd}
    - shell: printf %s "$ODD"
      environment: {ODD: "{{ odd }}"}
      register: environ
      changed_when: false
    - assert: {that: environ.stdout == odd}
    - copy: {content: "{{ odd }}", dest: "/tmp/kk shell '{{ ansible_user }}", mode: "0600"}
    - command: id -un
      become: true
      register: who
      changed_when: false
    - assert: {that: who.stdout == "root"}
    - shell: sleep 8181
      timeout: 2
      ignore_errors: true
    - file: {path: "/tmp/kk shell '{{ ansible_user }}", state: absent}
`

func TestLoginShells(t *testing.T) {
	c := newController(t)
	shells := map[string]string{"in-sh": "/bin/sh", "in-bash": "/bin/bash"}
	if _, err := c.lab.Exec(t.Context(), 0, "get() { apt-get install -q -y --no-install-recommends fish tcsh; }; { get || { apt-get update -q && get; }; } >/dev/null 2>&1"); err != nil {
		t.Log("fish and tcsh are left out, they cannot be installed:", err)
	} else {
		shells["in-fish"], shells["in-csh"] = "/usr/bin/fish", "/bin/tcsh"
	}
	hosts := map[string]vars{}
	for user, shell := range shells {
		c.on(t, 0, fmt.Sprintf(`set -e
useradd -m -s %[2]s %[1]s
cp -r /home/ops/.ssh /home/%[1]s && chown -R %[1]s /home/%[1]s/.ssh
echo '%[1]s ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/%[1]s`, user, shell))
		c.after(t, 0, fmt.Sprintf("rm -f /etc/sudoers.d/%[1]s; until userdel -rf %[1]s; do pkill -KILL -u %[1]s; sleep 0.1; done 2>/dev/null", user))
		hosts[user] = c.reach(0, user)
	}
	o := c.runOn(t, hosts, shellPlaybook)
	o.exits(t, 0)
	for user := range shells {
		o.recap(t, user, "ok=15", "ignored=1", "failed=0", "unreachable=0")
	}
	c.succeeds(t, 0, "the commands are ended", "! pgrep -f '[s]leep 8181'")
}

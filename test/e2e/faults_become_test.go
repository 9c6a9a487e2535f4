package e2e

import (
	"strings"
	"testing"
)

// whoAmI becomes root and says so.
const whoAmI = `
- hosts: all
  gather_facts: false
  become: true
  tasks:
    - {command: id -un, register: who, changed_when: false}
    - assert: {that: who.stdout == "root"}
`

func TestBecomeThatIsRefused(t *testing.T) {
	c := newController(t)
	c.on(t, 0, "useradd -m plain && echo plain:plain-Pa55 | chpasswd && cp -r /home/ops/.ssh /home/plain && chown -R plain /home/plain/.ssh")
	c.after(t, 0, "until userdel -rf plain; do pkill -KILL -u plain; sleep 0.1; done 2>/dev/null")
	const wrong = "wr0ng-passw0rd"
	hosts := map[string]vars{"good": c.reach(1, "ops")}
	refused := map[string]struct {
		v    vars
		says string
	}{
		"wrong": {c.reach(0, "dev").with("ansible_become_password", wrong),
			"become user root with sudo: the password was not accepted"},
		"missing":   {c.reach(0, "dev"), "become user root with sudo: a password is needed"},
		"stranger":  {c.reach(0, "plain").with("ansible_become_password", "plain-Pa55"), "the user has no permission to"},
		"badmethod": {c.reach(0, "dev").with("ansible_become_method", "{{ 'runas' }}"), `"runas" is not supported`},
		"nouser":    {c.reach(0, "ops").with("ansible_become_user", "nobody-here"), "become user nobody-here"},
		"badsu": {c.reach(0, "dev").with("ansible_become_method", "su", "ansible_become_password", wrong),
			"with su: the password was not accepted"},
		"nosu": {c.reach(0, "dev").with("ansible_become_method", "su"),
			"become user root with su: a password is needed"},
	}
	for name, r := range refused {
		hosts[name] = r.v
	}
	o := c.runOn(t, hosts, whoAmI)
	o.exits(t, 2)
	o.recap(t, "good", "ok=2", "failed=0")
	run, closing, _ := strings.Cut(o.stdout, "PLAY RECAP")
	for name, r := range refused {
		o.recap(t, name, "ok=0", "failed=1", "unreachable=0")
		if n, again := strings.Count(run+o.stderr, r.says), strings.Count(closing, r.says); n != 1 || again != 1 {
			t.Errorf("%s: %q is said %d times, and %d times below\n%s%s", name, r.says, n, again, o.stdout, o.stderr)
		}
	}
	if strings.Contains(o.stdout+o.stderr, wrong) {
		t.Error("the password is shown")
	}
}

// A password that was refused is not tried again, however many tasks and items want
// it: repeated tries lock accounts.
func TestWrongBecomePasswordIsTriedOnce(t *testing.T) {
	c := newController(t)
	c.on(t, 0, "useradd -m once && echo once:once-Pa55 | chpasswd && usermod -aG sudo once && cp -r /home/ops/.ssh /home/once && chown -R once /home/once/.ssh")
	c.after(t, 0, "until userdel -rf once; do pkill -KILL -u once; sleep 0.1; done 2>/dev/null")
	o := c.runOn(t, map[string]vars{"node1": c.reach(0, "once").with("ansible_become_password", "wr0ng")}, `
- hosts: all
  gather_facts: false
  become: true
  tasks:
    - command: id -un
      loop: [1, 2, 3, 4]
      ignore_errors: true
    - copy: {content: "{{ 'y' * 200000 }}", dest: /tmp/never}
`)
	o.exits(t, 2)
	o.says(t, "the password was not accepted")
	c.on(t, 0, "! test -e /tmp/never")
	tries := c.on(t, 0, "journalctl --sync; journalctl -q -o cat _COMM=sudo | grep -o 'once : .* incorrect password attempt' || :")
	if tries != "once : 1 incorrect password attempt" {
		t.Errorf("the host's journal has %q, want one attempt", tries)
	}
}

func TestBecomeWithSu(t *testing.T) {
	c := newController(t)
	const password = "R00t 'p\"a$s;s"
	c.on(t, 0, "usermod -p \"$(printf %s '"+strings.ReplaceAll(password, "'", `'\''`)+
		"' | openssl passwd -6 -stdin)\" root")
	c.after(t, 0, "usermod -p '*' root")
	o := c.runOn(t, map[string]vars{"node1": c.reach(0, "dev").with("ansible_become_method", "su",
		"ansible_become_password", password)}, `
- hosts: all
  become: true
  tasks:
    - {command: id -un, register: who, changed_when: false}
    - assert: {that: who.stdout == "root"}
    - copy: {content: "{{ 'y' * 200000 }}", dest: /root/by-su, mode: "0600"}
    - {command: wc -c, args: {stdin: "two\nlines"}, register: count, changed_when: false}
    - assert: {that: count.stdout|int == 10}
    - {command: id -un, become: false, register: plain, changed_when: false}
    - assert: {that: plain.stdout == "dev"}
    - {command: id -un, become_user: ops, vars: {ansible_become_method: sudo, ansible_become_password: `+"'"+devPassword(t, c.lab)+"'"+`}, register: other, changed_when: false}
    - assert: {that: other.stdout == "ops"}
`, "-v")
	o.exits(t, 0)
	if got := c.on(t, 0, "stat -c '%s %a %U' /root/by-su; rm /root/by-su"); got != "200000 600 root" {
		t.Errorf("the file is %q", got)
	}
	if strings.Contains(o.stdout+o.stderr, password) {
		t.Error("the password is shown")
	}
}

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shows lists the files under dir, as "name: secret", in which a secret is.
func shows(t *testing.T, dir string, secrets ...string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, s := range secrets {
			if strings.Contains(string(text), s) {
				found = append(found, path+": "+s)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Passwords and an environment with a secret are in use while the host's process
// list is read, again and again, by its root.
func TestSecretsAreNeverSeen(t *testing.T) {
	c := newController(t)
	login := devPassword(t, c.lab)
	const token, quiet = "t0ken-of-the-environment", "quiet-content-of-a-file"
	secrets := []string{login, token, quiet}
	c.on(t, 0, `cat >/tmp/watch-cmdlines <<'SH'
while [ ! -e /tmp/watch-stop ]; do
	for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$f 2>/dev/null; echo; done >>/tmp/watched
	sleep 0.02
done
SH
rm -f /tmp/watch-stop /tmp/watched; systemd-run -q --unit=watch-cmdlines sh /tmp/watch-cmdlines`)
	c.after(t, 0, "touch /tmp/watch-stop; systemctl stop watch-cmdlines; rm -f /tmp/watch-* /tmp/watched /tmp/secret-file")

	hosts := map[string]vars{"node1": c.reach(0, "dev").with("ansible_ssh_private_key_file", nil,
		"ansible_password", login, "ansible_become_password", login)}
	playbook := `
- hosts: all
  gather_facts: false
  become: true
  vars: {quiet: ` + quiet + `}
  tasks:
    - shell: 'test "$(printf %s "$TOKEN" | wc -c)" -eq ` + "24" + ` && sleep 1'
      environment: {TOKEN: "{{ token }}"}
      no_log: true
    - copy: {content: "{{ quiet }}", dest: /tmp/secret-file, mode: "0600"}
      no_log: true
    - command: cat /tmp/secret-file
      no_log: true
      loop: ["{{ quiet }}"]
    - command: cat
      args: {stdin: "{{ quiet }}"}
      no_log: true
    - shell: 'echo the password is {{ ansible_become_password }} && false'
      args: {executable: /bin/sh}
      when: leak is defined
    - copy: {content: "{{ quiet }}", dest: /no/such/folder/file}
      no_log: true
      ignore_errors: true
`
	for _, args := range [][]string{{"-vvvv", "--diff"}, {"-o", "json"}, {"-o", "ansible", "-vvv"},
		{"--check", "--diff", "-v"}} {
		o := c.runOn(t, hosts, playbook, append(args, "-e", "@"+c.write(t, "secrets.yaml", "token: "+token))...)
		if args[0] != "--check" {
			o.exits(t, 0)
		}
		for _, s := range secrets {
			if strings.Contains(o.stdout+o.stderr, s) {
				t.Errorf("kk %s shows %q\n%s%s", strings.Join(args, " "), s, o.stdout, o.stderr)
			}
		}
	}
	if n := c.on(t, 0, "grep -c 'sleep 1' /tmp/watched"); n == "0" {
		t.Error("the process list was not seen during the task")
	}
	c.on(t, 0, "systemctl stop watch-cmdlines") // it would see the search
	for _, s := range secrets {
		c.on(t, 0, "! grep -aF '"+s+"' /tmp/watched")
	}
	runs, err := filepath.Glob(filepath.Join(c.home, ".kk/runs/*"))
	if err != nil || len(runs) != 4 {
		t.Fatalf("journals %q, %v", runs, err)
	}
	if found := shows(t, filepath.Join(c.home, ".kk"), secrets...); len(found) > 0 {
		t.Errorf("secrets in the journal: %q", found)
	}
	if left := c.on(t, 0, "grep -lraF '"+quiet+"' /tmp /var/log /root /home --exclude=secret-file || :"); left != "" {
		t.Errorf("the content is in %s", left)
	}
}

// A password is hidden even where a playbook prints it, and when it comes back from the host.
func TestPrintedPasswordIsHidden(t *testing.T) {
	c := newController(t)
	login := devPassword(t, c.lab)
	hosts := map[string]vars{"node1": c.reach(0, "dev").with("ansible_become_password", login)}
	o := c.runOn(t, hosts, `
- hosts: all
  gather_facts: false
  become: true
  tasks:
    - debug: {msg: "it is {{ ansible_become_password }}"}
    - command: cat
      args: {stdin: "{{ ansible_become_password }}"}
    - fail: {msg: "{{ ansible_become_password }}"}
`, "-vvv")
	o.exits(t, 2)
	o.says(t, "it is ********")
	if strings.Contains(o.stdout+o.stderr, login) {
		t.Errorf("the password is shown\n%s%s", o.stdout, o.stderr)
	}
	if found := shows(t, filepath.Join(c.home, ".kk"), login); len(found) > 0 {
		t.Errorf("the password is in the journal: %q", found)
	}
}

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// maxMemory bounds what kk may use while a command prints 200 MB.
const maxMemory = 160 << 20

func TestCommandThatPrintsTooMuch(t *testing.T) {
	c := newController(t)
	sum := c.on(t, 0, "{ seq -f 'line %099.0f' 1900000; echo last; } | sha256sum | cut -c1-64")
	run := c.startOn(t, map[string]vars{"node1": c.reach(0, "root")}, `
- hosts: all
  gather_facts: false
  tasks:
    - shell: "seq -f 'line %099.0f' 1900000; echo last"
      register: much
      changed_when: false
    - assert:
        that:
          - much.stdout | length > 900000
          - much.stdout | length <= 1048576
          - much.stdout_truncated and much.stdout_bytes == 1900000 * 105 + 5
          - much.stdout_file is file
          - (lookup('pipe', 'sha256sum <' ~ much.stdout_file ~ ' | cut -c1-64')) == '`+sum+`'
          - much.stdout_lines[-1] == 'last'
          - much.stdout_lines[-2] | length == 104
          - much.stdout_lines[-2] is search('01900000$')
          - much.stdout_lines[0] | length == 104
        quiet: true
`)
	o := run.end(t)
	if o.code != 0 {
		t.Fatalf("exit code %d\n%.3000s\n%.3000s", o.code, o.stdout, o.stderr)
	}
	o.recap(t, "node1", "ok=2")
	o.says(t, "the whole output is in")
	usage := run.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if peak := usage.Maxrss << 10; peak > maxMemory {
		t.Errorf("kk used %d MiB at its peak, want at most %d", peak>>20, maxMemory>>20)
	}
}

func TestLargeFileIsFetchedWithLittleMemory(t *testing.T) {
	c := newController(t)
	sum := c.on(t, 0, "seq -f 'line %099.0f' 1900000 >/tmp/much; sha256sum </tmp/much | cut -c1-64")
	c.after(t, 0, "rm -f /tmp/much")
	run := c.startOn(t, map[string]vars{"node1": c.reach(0, "root")}, `
- hosts: all
  gather_facts: false
  tasks:
    - fetch: {src: /tmp/much, dest: `+c.work+`/fetched, flat: true}
    - command: sha256sum `+c.work+`/fetched
      register: got
      delegate_to: localhost
      connection: local
    - assert: {that: "got.stdout.startswith('`+sum+`')"}
`)
	o := run.end(t)
	o.exits(t, 0)
	usage := run.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if peak := usage.Maxrss << 10; peak > maxMemory {
		t.Errorf("kk used %d MiB at its peak, want at most %d", peak>>20, maxMemory>>20)
	}
}

func TestOutputsAreKeptApart(t *testing.T) {
	c := newController(t)
	for name, v := range map[string]vars{
		"plain": c.reach(0, "root"),
		"sudo":  c.reach(0, "dev").with("ansible_become", true, "ansible_become_password", devPassword(t, c.lab)),
	} {
		o := c.runOn(t, map[string]vars{name: v}, `
- hosts: all
  gather_facts: false
  tasks:
    - shell: "for i in 1 2 3; do echo out$i; echo err$i >&2; done; exit 7"
      register: r
      failed_when: r.rc != 7
      changed_when: false
    - assert:
        that:
          - r.stdout_lines == ['out1', 'out2', 'out3']
          - r.stderr_lines == ['err1', 'err2', 'err3']
    - shell: "printf 'a\\tb\\033[31mred\\r\\n  end  '; printf x >&2"
      register: odd
      changed_when: false
    - assert:
        that:
          - odd.stdout == 'a\tb\x1b[31mred\r\n  end  '
          - odd.stderr == 'x'
`)
		o.exits(t, 0)
		o.recap(t, name, "ok=4")
	}
}

// Bytes that are no text do not break the output, the journal or what follows; as a
// file they arrive unharmed.
func TestBinaryOutput(t *testing.T) {
	c := newController(t)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	source := filepath.Join(c.work, "every")
	if err := os.WriteFile(source, every, 0o600); err != nil {
		t.Fatal(err)
	}
	c.after(t, 0, "rm -f /tmp/every")
	playbook := `
- hosts: all
  gather_facts: false
  tasks:
    - copy: {src: ` + source + `, dest: /tmp/every}
    - command: cat /tmp/every
      register: raw
    - assert: {that: raw.stdout | length > 200}
    - slurp: {src: /tmp/every}
      register: slurped
    - copy: {content: "{{ slurped.content }}", dest: ` + c.work + `/base64}
      delegate_to: localhost
      connection: local
    - fetch: {src: /tmp/every, dest: ` + c.work + `/back, flat: true}
`
	c.runOn(t, map[string]vars{"node1": c.reach(0, "root")}, playbook, "-v").exits(t, 0)
	back, err := os.ReadFile(filepath.Join(c.work, "back"))
	if err != nil || string(back) != string(every) {
		t.Errorf("fetched %q, %v", back, err)
	}
	o := c.runOn(t, map[string]vars{"node1": c.reach(0, "root")}, playbook, "-o", "json")
	o.exits(t, 0)
	for line := range strings.Lines(o.stdout) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %q", line)
		}
	}
}

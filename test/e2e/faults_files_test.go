package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// bulk writes a file of so many MiB that do not compress, and returns its path.
func (c *controller) bulk(t *testing.T, mib int) string {
	t.Helper()
	path := filepath.Join(c.work, "bulk")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for i := range mib {
		for j := range block {
			block[j] = byte(j*(i+7) + j>>8)
		}
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// small mounts a disk of so many MiB on host i, with a file that has an old content.
func (c *controller) small(t *testing.T, i, mib int) {
	t.Helper()
	c.on(t, i, fmt.Sprintf("mkdir -p /mnt/small && mount -t tmpfs -o size=%dm small /mnt/small && echo old >/mnt/small/file", mib))
	c.after(t, i, "umount -l /mnt/small; rmdir /mnt/small")
}

// oldFileIsWhole fails the test unless the file is as [controller.small] made it,
// alone in its folder.
func (c *controller) oldFileIsWhole(t *testing.T, i int) {
	t.Helper()
	if got := c.on(t, i, "ls -A /mnt/small; cat /mnt/small/file"); got != "file\nold" {
		t.Errorf("on %s there is %q, want the old file alone", c.lab.Hosts[i].Name, got)
	}
}

// A file system that is read-only is not a lack of permission, which root never has.
func TestReadOnlyFileSystem(t *testing.T) {
	c := newController(t)
	c.small(t, 0, 4)
	c.on(t, 0, "mount -o remount,ro /mnt/small")
	for _, task := range []string{
		"copy: {content: new, dest: /mnt/small/file}",
		"lineinfile: {path: /mnt/small/file, line: new}",
		"file: {path: /mnt/small/new, state: directory}",
		"template: {src: a.j2, dest: /mnt/small/file}",
	} {
		o := c.runOn(t, map[string]vars{"node1": c.reach(0, "root")},
			"- {hosts: all, gather_facts: false, tasks: [{copy: {content: x, dest: "+c.work+
				"/a.j2}, delegate_to: localhost, connection: local}, {"+task+"}]}\n")
		o.exits(t, 2)
		if shown := o.stdout + o.stderr; !strings.Contains(shown, "ead-only file system") &&
			!strings.Contains(shown, "file system is read-only") {
			t.Errorf("%s says %s", task, shown)
		}
	}
	c.oldFileIsWhole(t, 0)
}

func TestDiskFullDuringACopy(t *testing.T) {
	c := newController(t)
	c.small(t, 0, 4)
	c.small(t, 1, 64)
	bulk := c.bulk(t, 16)
	for _, task := range []string{
		"copy: {src: " + bulk + ", dest: /mnt/small/file}",
		"copy: {content: \"{{ 'x' * 8000000 }}\", dest: /mnt/small/file}",
	} {
		o := c.runOn(t, map[string]vars{"node1": c.reach(0, "root"), "node2": c.reach(1, "root")},
			"- {hosts: all, gather_facts: false, tasks: [{"+task+"}]}\n")
		o.exits(t, 2)
		o.recap(t, "node1", "failed=1", "unreachable=0")
		o.recap(t, "node2", "ok=1", "changed=1")
		o.says(t, "/mnt/small", "No space left on device")
		c.oldFileIsWhole(t, 0)
	}
}

func TestDiskFullUnderSudo(t *testing.T) {
	c := newController(t)
	c.small(t, 0, 4)
	o := c.runOn(t, map[string]vars{"node1": c.reach(0, "ops").with("ansible_become", true)},
		"- {hosts: all, gather_facts: false, tasks: [{copy: {src: "+c.bulk(t, 16)+", dest: /mnt/small/file}}]}\n")
	o.exits(t, 2)
	o.says(t, "/mnt/small", "No space left on device")
	c.oldFileIsWhole(t, 0)
}

// Both copies are cut in the middle: the host's disk takes the file slowly, since
// it is large, and the signal comes once the temporary file has grown.
func TestSignalsDuringACopy(t *testing.T) {
	c := newController(t)
	bulk := c.bulk(t, 400)
	for _, test := range []struct {
		name   string
		user   string
		signal syscall.Signal
		code   int
	}{
		{"interrupt", "root", syscall.SIGINT, 99},
		{"interrupt under sudo", "ops", syscall.SIGINT, 99},
		{"terminate", "root", syscall.SIGTERM, 99},
		{"kill", "root", syscall.SIGKILL, -1},
		{"kill under sudo", "ops", syscall.SIGKILL, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.small(t, 0, 600)
			run := c.startOn(t, map[string]vars{"node1": c.reach(0, test.user).with("ansible_become", true)},
				"- {hosts: all, gather_facts: false, tasks: [{copy: {src: "+bulk+", dest: /mnt/small/file}}]}\n")
			c.succeeds(t, 0, "the copy has begun", "find /mnt/small -name '.kk-*' -size +1M | grep -q .")
			if err := run.cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			if o := run.end(t); o.code != test.code {
				t.Errorf("exit code %d, want %d\n%s%s", o.code, test.code, o.stdout, o.stderr)
			}
			c.succeeds(t, 0, "no temporary file is left", "! ls -A /mnt/small | grep -v '^file$'")
			c.oldFileIsWhole(t, 0)
		})
	}
}

// A copy to a host whose sshd dies leaves the old file, and the next run mends it.
func TestSSHDKilledDuringACopy(t *testing.T) {
	c := newController(t)
	bulk := c.bulk(t, 400)
	c.small(t, 0, 600)
	playbook := "- {hosts: all, gather_facts: false, tasks: [{copy: {src: " + bulk + ", dest: /mnt/small/file}}]}\n"
	hosts := map[string]vars{"node1": c.reach(0, "root")}
	run := c.startOn(t, hosts, playbook)
	c.succeeds(t, 0, "the copy has begun", "find /mnt/small -name '.kk-*' -size +1M | grep -q .")
	if err := c.lab.KillSSHD(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	o := run.end(t)
	o.exits(t, 4)
	o.recap(t, "node1", "unreachable=1", "failed=0")
	c.succeeds(t, 0, "no temporary file is left", "! ls -A /mnt/small | grep -v '^file$'")
	c.oldFileIsWhole(t, 0)
	if err := c.lab.Start(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	again := c.runOn(t, hosts, playbook)
	again.exits(t, 0)
	again.recap(t, "node1", "changed=1")
}

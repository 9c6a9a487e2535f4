package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"kubekey/test/lab"
)

// ssh runs a script on a host as the user, by the ssh client of the machine.
func ssh(t *testing.T, h *lab.Host, user, stdin, script string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ssh", "-F", "none", "-i", h.Key, "-o", "BatchMode=yes",
		"-o", "UserKnownHostsFile="+hosts.KnownHosts(), "-o", "StrictHostKeyChecking=yes",
		user+"@"+h.Address, script)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// want fails the test unless the script prints exactly what is given.
func want(t *testing.T, h *lab.Host, user, stdin, script, expected string) {
	t.Helper()
	if out, err := ssh(t, h, user, stdin, script); err != nil || out != expected {
		t.Errorf("%s@%s: %s: %v, printed %q, want %q", user, h.Name, script, err, out, expected)
	}
}

func TestLabUsersLogInAndBecomeRoot(t *testing.T) {
	l := needHosts(t)
	password, err := os.ReadFile(l.PasswordFile())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range l.Hosts {
		want(t, h, "root", "", "id -un", "root")
		want(t, h, "ops", "", "id -un; sudo -n id -un", "ops\nroot")
		want(t, h, "dev", string(password), "id -un; sudo -S -p '' id -un", "dev\nroot")
		if out, err := ssh(t, h, "dev", "", "sudo -n true"); err == nil {
			t.Errorf("dev on %s becomes root without a password: %q", h.Name, out)
		}
	}
}

func TestLabHostsRunSystemd(t *testing.T) {
	for _, h := range needHosts(t).Hosts {
		want(t, h, "root", "", "cat /proc/1/comm; systemctl is-system-running --wait", "systemd\nrunning")
		want(t, h, "root", "", "hostname; cat /etc/hostname", h.Name+"\n"+h.Name)
	}
}

func TestLabHostsDifferAndReachEachOther(t *testing.T) {
	l := needHosts(t)
	var ids []string
	for _, h := range l.Hosts {
		id, err := ssh(t, h, "root", "", "cat /etc/machine-id")
		if err != nil || len(id) != 32 || slices.Contains(ids, id) {
			t.Errorf("machine-id of %s: %q, %v, others %q", h.Name, id, err, ids)
		}
		ids = append(ids, id)
		for _, other := range l.Hosts {
			want(t, h, "root", "", "ping -q -c 1 -W 5 "+other.Address+" >/dev/null && echo reached", "reached")
		}
	}
}

func TestLabHostInstallsPackages(t *testing.T) {
	h := needHosts(t).Hosts[0]
	script := `{ apt-get update -q && apt-get install -q -y --no-install-recommends tree; } >/tmp/apt.log 2>&1 || cat /tmp/apt.log
command -v tree`
	want(t, h, "root", "", script, "/usr/bin/tree")
}

func TestLabHostHasItsOwnCgroups(t *testing.T) {
	for _, h := range needHosts(t).Hosts {
		want(t, h, "root", "", "systemd-run -q --wait --pipe -p MemoryMax=64M echo ran", "ran")
		want(t, h, "root", "", `for c in /sys/fs/cgroup/*/; do mkdir "$c/probe" && rmdir "$c/probe"; done; echo writable`,
			"writable")
	}
}

func TestLabHostKeepsItsDiskOverAPowerCut(t *testing.T) {
	l := needHosts(t)
	h := l.Hosts[2]
	want(t, h, "root", "", "echo kept >/etc/kept && sync && cat /etc/kept", "kept")
	if err := l.PowerOff(2); err != nil {
		t.Fatal(err)
	}
	if out, err := ssh(t, h, "root", "", "echo alive"); err == nil {
		t.Errorf("%s answers without power: %q", h.Name, out)
	}
	if err := l.Start(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	want(t, h, "root", "", "cat /etc/kept", "kept")
}

func TestLabSSHDComesBackAfterAKill(t *testing.T) {
	l := needHosts(t)
	before, err := l.Exec(t.Context(), 1, "systemctl show -P MainPID ssh")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.KillSSHD(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Start(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	after, err := l.Exec(t.Context(), 1, "systemctl show -P MainPID ssh")
	if err != nil || before == after {
		t.Errorf("sshd's process before the kill %q, after it %q, %v", before, after, err)
	}
	want(t, l.Hosts[1], "root", "", "echo back", "back")
}

func TestLabExecReportsFailure(t *testing.T) {
	_, err := needHosts(t).Exec(t.Context(), 0, "echo no such luck >&2; exit 3")
	if err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("error %v, want one with what the script wrote", err)
	}
}

func TestSecondLabWithFaults(t *testing.T) {
	needHosts(t)
	name := hosts.Name + "-odd"
	t.Cleanup(func() {
		if err := lab.Down(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	odd, err := lab.Up(t.Context(), lab.Options{Name: name, N: 2, Hosts: map[int]lab.HostOptions{
		1: {Hostname: "node_2", MemoryMB: 512, Addresses: []string{"192.168.77.1/24"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for script, expected := range map[string]string{
		"hostname": "node_2",
		"awk '/MemTotal/ {print $2}' /proc/meminfo":                          fmt.Sprint(512 << 10),
		"ip -o -4 address show eth0 | grep -c -e '192.168.77.1/24'":          "1",
		"cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null":        fmt.Sprint(512 << 20),
		"ping -q -c 1 -W 5 " + odd.Hosts[0].Address + " >/dev/null; echo $?": "0",
	} {
		out, err := odd.Exec(t.Context(), 1, script)
		if err != nil || strings.TrimSpace(out) != expected {
			t.Errorf("%s: printed %q, %v, want %q", script, out, err, expected)
		}
	}
}

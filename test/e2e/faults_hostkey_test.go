package e2e

import (
	"os"
	"strings"
	"testing"
)

const ping = "- {hosts: all, gather_facts: false, tasks: [{command: 'true'}]}\n"

// fingerprint is the SHA256 fingerprint of host i's key.
func (c *controller) fingerprint(t *testing.T, i int) string {
	t.Helper()
	return strings.Fields(c.on(t, i, "ssh-keygen -l -f /etc/ssh/ssh_host_ed25519_key.pub"))[1]
}

func (c *controller) setKnownHosts(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(c.knownHosts(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUnknownHostKeyIsExplained(t *testing.T) {
	c := newController(t)
	c.setKnownHosts(t, "")
	o := c.runOn(t, map[string]vars{"node1": c.reach(0, "root")}, ping)
	o.exits(t, 4)
	o.recap(t, "node1", "ok=0", "unreachable=1")
	o.says(t, "the host key of node1", "is not known", c.fingerprint(t, 0), "ssh-keyscan", "--ssh-host-key accept-new")
	if text, err := os.ReadFile(c.knownHosts()); err != nil || len(text) > 0 {
		t.Errorf("known_hosts was written to: %q, %v", text, err)
	}
}

func TestChangedHostKeyIsRefused(t *testing.T) {
	c := newController(t)
	c.setKnownHosts(t, c.lab.Hosts[0].Address+" "+c.hostKey(t, 1)+"\n"+c.lab.Hosts[2].Address+" "+c.hostKey(t, 2)+"\n")
	hosts := map[string]vars{"node1": c.reach(0, "root"), "node3": c.reach(2, "root")}
	for _, policy := range []string{"strict", "accept-new"} {
		o := c.runOn(t, hosts, ping, "--ssh-host-key", policy)
		o.exits(t, 4)
		o.recap(t, "node1", "ok=0", "unreachable=1")
		o.recap(t, "node3", "ok=1", "unreachable=0")
		o.says(t, "HAS CHANGED", "node1", c.fingerprint(t, 0), c.fingerprint(t, 1), c.knownHosts()+":1", "ssh-keygen -f")
	}
}

func TestNewHostKeysAreRemembered(t *testing.T) {
	c := newController(t)
	if err := os.RemoveAll(c.home + "/.ssh"); err != nil {
		t.Fatal(err)
	}
	hosts := map[string]vars{"node1": c.reach(0, "root"), "node2": c.reach(1, "root"), "node3": c.reach(2, "root")}
	c.runOn(t, hosts, ping, "--ssh-host-key", "accept-new").exits(t, 0)
	info, err := os.Stat(c.knownHosts())
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("known_hosts: %v, %v, want mode 0600", info, err)
	}
	known, err := os.ReadFile(c.knownHosts())
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range c.lab.Hosts {
		if n := strings.Count(string(known), h.Address+" "+c.hostKey(t, i)+"\n"); n != 1 {
			t.Errorf("%d lines for %s, want one\n%s", n, h.Name, known)
		}
	}
	c.runOn(t, hosts, ping).exits(t, 0)
	again, err := os.ReadFile(c.knownHosts())
	if err != nil || string(again) != string(known) {
		t.Errorf("a second run changed known_hosts: %v\n%s", err, again)
	}
}

func TestHostKeysAreNotCheckedOnRequest(t *testing.T) {
	c := newController(t)
	wrong := c.lab.Hosts[0].Address + " " + c.hostKey(t, 1) + "\n"
	c.setKnownHosts(t, wrong)
	for name, v := range map[string]vars{
		"option":   c.reach(0, "root").with("ansible_ssh_extra_args", "-o StrictHostKeyChecking=no"),
		"variable": c.reach(0, "root").with("ansible_host_key_checking", false),
	} {
		o := c.runOn(t, map[string]vars{name: v}, ping)
		o.exits(t, 0)
		o.recap(t, name, "ok=1")
	}
	if text, _ := os.ReadFile(c.knownHosts()); string(text) != wrong {
		t.Errorf("known_hosts was changed: %q", text)
	}
}

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// fromJump asserts that the connection came from node1.
const fromJump = `
- hosts: all
  gather_facts: false
  tasks:
    - shell: echo "$SSH_CONNECTION" | cut -d' ' -f1; hostname
      register: way
      changed_when: false
    - assert: {that: "way.stdout_lines == [jump, target]"}
    - copy: {content: "{{ 'j' * 300000 }}", dest: /tmp/by-jump}
    - file: {path: /tmp/by-jump, state: absent}
`

func TestJumpHost(t *testing.T) {
	c := newController(t)
	jump := c.lab.Hosts[0].Address
	c.write(t, "ssh_config", fmt.Sprintf(`
Host by-config
  HostName %s
  User root
  IdentityFile %s
  ProxyJump jumper
Host jumper
  HostName %s
  User ops
  IdentityFile %[2]s
`, c.lab.Hosts[1].Address, c.lab.Hosts[0].Key, jump))
	through := c.reach(1, "root").with("jump", jump, "target", c.lab.Hosts[1].Name)
	hosts := map[string]vars{
		"by-args":   through.with("ansible_ssh_common_args", "-J ops@"+jump),
		"by-option": through.with("ansible_ssh_common_args", "-o ProxyJump=ops@"+jump+":22 -o ControlMaster=auto"),
		"by-var":    through.with("ansible_ssh_proxy_jump", "ops@"+jump),
		"by-config": {"jump": jump, "target": c.lab.Hosts[1].Name, "ansible_ssh_common_args": "-F " + c.work + "/ssh_config"},
		"by-two": c.reach(0, "root").with("ansible_ssh_common_args", "-J ops@"+jump+",root@"+c.lab.Hosts[1].Address,
			"jump", c.lab.Hosts[1].Address, "target", c.lab.Hosts[0].Name),
	}
	o := c.runOn(t, hosts, fromJump)
	o.exits(t, 0)
	for name := range hosts {
		o.recap(t, name, "ok=4", "unreachable=0")
	}
}

func TestJumpHostInTheUsersConfig(t *testing.T) {
	c := newController(t)
	jump := c.lab.Hosts[0].Address
	gateway := jump[:strings.LastIndexByte(jump, '.')] + ".1"
	// "Host *" means the jump host as well, which is reached directly all the same;
	// ansible_host is what the patterns are held against, as it is what ssh is given.
	text := fmt.Sprintf("Host %s\n  User nobody\nHost *\n  ProxyJump ops@%s\n  ConnectTimeout 20\n",
		c.lab.Hosts[1].Address, jump)
	if err := os.WriteFile(c.home+"/.ssh/config", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := c.runOn(t, map[string]vars{
		"node1": c.reach(0, "root").with("jump", gateway, "target", c.lab.Hosts[0].Name),
		"node2": c.reach(1, "root").with("jump", jump, "target", c.lab.Hosts[1].Name),
		// ansible_ssh_proxy_jump beats the configuration.
		"node3": c.reach(2, "root").with("ansible_ssh_proxy_jump", "root@"+c.lab.Hosts[1].Address,
			"jump", c.lab.Hosts[1].Address, "target", c.lab.Hosts[2].Name),
	}, fromJump)
	o.exits(t, 0)
	o.recap(t, "node1", "ok=4")
	o.recap(t, "node2", "ok=4")
	o.recap(t, "node3", "ok=4")
}

func TestJumpHostThatFails(t *testing.T) {
	c := newController(t)
	jump := c.lab.Hosts[0].Address
	hosts := map[string]vars{
		"lost-jump":   c.reach(1, "root").with("ansible_ssh_proxy_jump", "ops@"+jump+":2299"),
		"lost-target": c.reach(1, "root").with("ansible_ssh_proxy_jump", "ops@"+jump, "ansible_port", 2299),
		"stranger":    c.reach(1, "root").with("ansible_ssh_proxy_jump", "nobody@"+jump),
	}
	o := c.runOn(t, hosts, ping)
	o.exits(t, 4)
	for name := range hosts {
		o.recap(t, name, "unreachable=1")
	}
	o.says(t, jump+":2299 by ssh: connection refused", "the jump host cannot connect to it", "cannot log in to "+jump)
}

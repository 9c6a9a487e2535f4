package e2e

import (
	"fmt"
	"strings"
	"testing"

	"kubekey/test/language"
)

// TestLanguageOverSSH runs the cases of test/language that say so on the hosts
// of the lab: what they expect of this machine holds over SSH.
func TestLanguageOverSSH(t *testing.T) {
	c := newController(t)
	inventory := c.write(t, "language.yaml", c.languageHosts())
	files, err := language.Cases("../language/testdata")
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range files {
		tc, err := language.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if !tc.SSH {
			continue
		}
		t.Run(name, func(t *testing.T) {
			tc.Run(t, language.Target{Inventory: inventory, Run: func(dir string, args ...string) (int, string, string) {
				o := (&controller{lab: c.lab, home: c.home, work: dir}).kk(t, args...)
				return o.code, o.stdout, o.stderr
			}})
		})
	}
}

// languageHosts is an inventory that leads h1, h2 and h3 to the lab's hosts.
func (c *controller) languageHosts() string {
	var out strings.Builder
	out.WriteString("all:\n  hosts:\n")
	for i, h := range c.lab.Hosts {
		fmt.Fprintf(&out, "    h%d: {ansible_host: %s, ansible_user: root, ansible_ssh_private_key_file: %s}\n", i+1,
			h.Address, h.Key)
	}
	fmt.Fprintf(&out, "  vars: {ansible_ssh_common_args: -o UserKnownHostsFile=%s}\n", c.lab.KnownHosts())
	return out.String()
}

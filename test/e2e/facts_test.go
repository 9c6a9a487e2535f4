package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const customFactsPlaybook = `
- hosts: all
  gather_subset: ["!all", local]
  tasks:
    - assert:
        that:
          - ansible_local.site.racks == [1, 2]
          - ansible_local.box.general.owner == 'ops team'
          - ansible_local.made.by == ansible_user
          - "'rc: 3' in ansible_local.broken"
          - ansible_facts.local == ansible_local
          - ansible_facts.memtotal_mb is undefined
    - setup: {fact_path: /opt/facts, gather_subset: [local], filter: [ansible_local]}
    - assert: {that: "ansible_local == {'other': {'a': 1}}"}
    - setup: {filter: ['ansible_kernel*', 'fq?n']}
      register: some
    - assert:
        that:
          - some.ansible_facts | list | sort == ['ansible_fqdn', 'ansible_kernel', 'ansible_kernel_version']
    - set_fact: {rank: first, cacheable: true}
`

const keptFactsPlaybook = `
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - assert: {that: [hostvars.box.rank == 'first', hostvars.box.ansible_kernel is defined]}
- hosts: box
  gather_subset: [min]
  tasks:
    - debug: {msg: "rank {{ rank | default('unknown') }}"}
`

// TestCustomFacts: what a host tells of itself in its facts.d, to a user who
// is not root, and what a later run still knows.
func TestCustomFacts(t *testing.T) {
	c := newController(t)
	c.on(t, 0, `set -e
mkdir -p /etc/ansible/facts.d /opt/facts
cd /etc/ansible/facts.d
echo '{"racks": [1, 2]}' >site.fact
printf '[general]\nowner = ops team\n' >box.fact
cat >made.fact <<'END'
#!/bin/sh
printf '{"by": "%s"}' "$(id -un)"
END
printf '#!/bin/sh\nexit 3\n' >broken.fact
chmod 755 made.fact broken.fact
echo '{"a": 1}' >/opt/facts/other.fact`)
	c.after(t, 0, "rm -rf /etc/ansible /opt/facts")
	hosts := map[string]vars{"box": c.reach(0, "ops")}
	c.write(t, "kk.yaml", "gathering: smart\nfact_caching: jsonfile\nfact_caching_connection: kept\n")

	o := c.runOn(t, hosts, customFactsPlaybook)
	o.exits(t, 0)
	o.recap(t, "box", "ok=7", "failed=0")

	kept := filepath.Join(c.work, "kept", "box.json")
	info, err := os.Stat(kept)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", kept, info, err)
	}
	o = c.runOn(t, hosts, keptFactsPlaybook)
	o.exits(t, 0)
	if strings.Contains(o.stdout, "Gathering Facts") || !strings.Contains(o.stdout, "rank first") {
		t.Errorf("facts were not known:\n%s", o.stdout)
	}
	o = c.runOn(t, hosts, strings.SplitAfter(keptFactsPlaybook, "is defined]}\n")[1], "--flush-cache")
	o.exits(t, 0)
	if !strings.Contains(o.stdout, "Gathering Facts") || !strings.Contains(o.stdout, "rank unknown") {
		t.Errorf("facts were not forgotten:\n%s", o.stdout)
	}
}

package peer

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"kubekey/test/lab"
)

// labHosts are two that begin alike, nil where skipReason says why there are none.
var (
	labHosts   *lab.Lab
	skipReason string
)

func TestMain(m *testing.M) {
	os.Exit(lab.Main(m, "peer", 2, func(l *lab.Lab, whyNot string) { labHosts, skipReason = l, whyNot }))
}

// prepare gives a host what Ansible's modules need of it.
const prepare = `hostnamectl hostname peer1
{ apt-get update -q && apt-get install -q -y --no-install-recommends python3 python3-apt python3-lxml python3-passlib python3-pexpect; } >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }`

// The tasks alter the system, so each program has a host of its own.
func TestResultsAreThoseOfAnsibleOnHosts(t *testing.T) {
	if labHosts == nil {
		t.Skip("needs the lab: " + skipReason)
	}
	ansible, kk := programs(t)
	var both sync.WaitGroup
	for i := range labHosts.Hosts {
		both.Go(func() {
			if out, err := labHosts.Exec(t.Context(), i, prepare); err != nil {
				t.Errorf("prepare %s: %v\n%s", labHosts.Hosts[i].Name, err, out)
			}
		})
	}
	if both.Wait(); t.Failed() {
		return
	}
	cases := readCases(t, "host", *pattern)
	compareAll(t, cases, func(t *testing.T, theirs bool) results {
		p, h := kk, labHosts.Hosts[1]
		if theirs {
			p, h = ansible, labHosts.Hosts[0]
		}
		all := p.run(t, cases, hostInventory(h), t.TempDir(), "/root/peer")
		return all.rename(t, h.Address, "ADDRESS")
	})
}

func hostInventory(h *lab.Host) string {
	const text = `peer: {hosts: {peer1: {ansible_host: %s, ansible_user: root, ansible_ssh_private_key_file: %s}}}
all:
  hosts: {control: {ansible_connection: local}}
  vars:
    ansible_python_interpreter: /usr/bin/python3
    ansible_ssh_common_args: -o UserKnownHostsFile=%s
`
	return strings.TrimLeft(fmt.Sprintf(text, h.Address, h.Key, labHosts.KnownHosts()), "\n")
}

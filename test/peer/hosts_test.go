package peer

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"

	"kubekey/test/lab"
)

// parts is how many runs each program shares the cases on hosts among: most of
// the time Ansible waits, and starts what it has sent.
const parts = 2

// labHosts begin alike: one for each program and part. It is nil where skipReason
// says why there are none.
var (
	labHosts   *lab.Lab
	skipReason string
)

func TestMain(m *testing.M) {
	os.Exit(lab.Main(m, "peer", 2*parts, func(l *lab.Lab, whyNot string) { labHosts, skipReason = l, whyNot },
		packages...))
}

// packages are what Ansible's modules need on a host, and what the tasks are about.
var packages = []string{
	"python3", "python3-apt", "python3-cryptography", "python3-lxml", "python3-paramiko", "python3-passlib",
	"python3-pexpect", "python3-pip",
	"python3-psycopg2", "python3-pymysql", "python3-venv", "acl", "attr", "firewalld", "gpg", "gpg-agent", "libcap2-bin",
	"locales", "mariadb-server", "parted",
	"postgresql", "ufw",
}

// prepare makes hosts the same: no task is about firewalld while it runs
// for others, no timer starts a service, and the one that hostnamectl starts
// does not go on for half a minute, as long as nobody needs it.
const prepare = `hostnamectl hostname peer1
systemctl disable --now firewalld
systemctl stop systemd-hostnamed '*.timer'
apt-get update -q >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }`

// The tasks alter the system, so each program has a host of its own.
func TestResultsAreThoseOfAnsibleOnHosts(t *testing.T) {
	t.Parallel() // most of the time is Ansible's, in one process
	if labHosts == nil {
		t.Skip("needs the lab: " + skipReason)
	}
	ansible, kk := programs(t)
	var all sync.WaitGroup
	for i := range labHosts.Hosts {
		all.Go(func() {
			if out, err := labHosts.Exec(t.Context(), i, prepare); err != nil {
				t.Errorf("prepare %s: %v\n%s", labHosts.Hosts[i].Name, err, out)
			}
		})
	}
	if all.Wait(); t.Failed() {
		return
	}
	cases := readCases(t, "host", *pattern)
	state, err := labHosts.Exec(t.Context(), 0, installed)
	if err != nil {
		t.Fatal(err)
	}
	compareAll(t, cases, newMemory(t, ansible, here(t)+prepare+state),
		func(t *testing.T, theirs bool, cases []*peerCase) results {
			p, hosts := kk, labHosts.Hosts[parts:]
			if theirs {
				p, hosts = ansible, labHosts.Hosts[:parts]
			}
			return p.runParts(t, share(cases), hosts)
		})
}

// share deals the cases out, so that each part has about as many steps.
func share(cases []*peerCase) [][]*peerCase {
	dealt, steps := make([][]*peerCase, parts), make([]int, parts)
	for _, c := range cases {
		least := 0
		for i := range steps {
			if steps[i] < steps[least] {
				least = i
			}
		}
		dealt[least] = append(dealt[least], c)
		steps[least] += len(c.steps())
	}
	return dealt
}

// runParts runs each part on a host of its own, side by side.
func (p program) runParts(t *testing.T, dealt [][]*peerCase, hosts []*lab.Host) results {
	t.Helper()
	found, dirs := make([]results, len(dealt)), make([]string, len(dealt))
	for i := range dirs {
		dirs[i] = t.TempDir() // that of the test below has a name too long for ssh's sockets
	}
	t.Run("parts", func(t *testing.T) {
		for i, cases := range dealt {
			if len(cases) == 0 {
				continue
			}
			t.Run(hosts[i].Name, func(t *testing.T) {
				t.Parallel()
				r := p.run(t, cases, hostInventory(hosts[i]), dirs[i], "/root/peer")
				found[i] = r.rename(t, hosts[i].Address, "ADDRESS")
			})
		}
	})
	all := results{}
	for _, r := range found {
		maps.Copy(all, r)
	}
	if t.Failed() {
		t.FailNow()
	}
	return all
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

package roles

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
)

const exportPackages = `
- name: Export packages
  hosts: localhost
  roles: [cluster]
  tasks:
    - name: Fetch packages
      include_role: {name: init, tasks_from: export_packages}
      vars: {export_arches: [amd64]}

    - name: Write offline file
      artifact_export:
        dest: "{{ playbook_dir }}/../packages.tar"
        cache: "{{ cluster_cache }}"
        packages: "{{ init_package_files }}"
`

const checkPackages = `
- name: Gather facts
  hosts: all

- import_playbook: packages.yaml

- name: Check offline file
  hosts: localhost
  gather_facts: false
  roles: [cluster]
  tasks:
    - name: Check packages
      artifact_check:
        artifact: "{{ artifact.files }}"
        packages: >-
          {{ cluster_members | map('extract', hostvars) | selectattr('packages_needed', 'defined')
          | map(attribute='packages_needed') | list }}
`

// sharedRegistry is a registry whose address is kept by keepalived.
const sharedRegistry = "image_registry: {vip: {address: 10.77.255.99}}\n"

// allRoles has a host of the registry, which lacks curl, and one that exports directories over NFS.
const allRoles = allNodes + `    image_registry: {hosts: {node2: }}
    nfs: {hosts: {node3: }}
`

// bare removes what other tests installed, and the package lists.
const bare = `dpkg --purge conntrack ebtables ethtool ipset socat nfs-kernel-server keepalived curl >/dev/null 2>&1; rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin`

// killed leaves on a host what kk leaves there if it is killed while it installs packages from a mounted image.
const killed = `cd /var/lib; mkdir -p kubekey-repository kubekey-repository.conf.lists/partial
mount -t tmpfs -o ro kubekey kubekey-repository
touch kubekey-repository.iso kubekey-repository.conf kubekey-repository.conf.list`

// leftovers are the files of kk on a host that installs packages, and the host's sources.
const leftovers = `ls -d /var/lib/kubekey-repository* /etc/yum.repos.d 2>/dev/null; ls /var/lib/apt/lists
find /etc/apt -type f | sort | xargs sha256sum`

// Hosts without a network and with empty package lists get their packages from an offline file.
func TestOSFromAnOfflineFile(t *testing.T) {
	p := newProject(t)
	p.write(t, "playbooks/export.yaml", exportPackages)
	config := "artifact: {distributions: [debian-12]}\nsystem: {timezone: Europe/Vienna}\nstorage: {nfs: {enabled: true}}\n"
	config += sharedRegistry
	p.kk(t, "export", allRoles, config).ok()
	first, err := os.ReadFile(p.path("packages.tar"))
	if err != nil {
		t.Fatal(err)
	}
	p.kk(t, "export", allRoles, config).changedNothing()

	var before []string
	for i := range hosts.Hosts {
		on(t, i, bare)
		before = append(before, on(t, i, leftovers))
	}
	t.Cleanup(func() {
		if err := hosts.Connect(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := hosts.Cut(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.cut = true
	config = "artifact: {files: [" + p.path("packages.tar") + "]}\nsystem: {timezone: Europe/Vienna}\n" +
		"storage: {nfs: {enabled: true}}\n" + sharedRegistry
	clean := func() {
		t.Helper()
		for i, want := range before {
			if after := on(t, i, leftovers); after != want {
				t.Errorf("node%d differs from before:\n%s", i+1, difference(want, after))
			}
		}
	}

	// Before anything is sent, a check lists what the file has not.
	p.write(t, "playbooks/check.yaml", checkPackages)
	find, err := os.ReadFile("../../builtin/playbooks/packages.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "playbooks/packages.yaml", string(find))
	wide := strings.Replace(config, "Vienna", "Vienna, packages: [vim]", 1)
	lacks := p.kk(t, "check", allRoles, wide)
	if want := "package vim for debian-12 amd64, needed by node1, node2, node3: kk artifact export --os debian-12 --arch " +
		"amd64 --package vim"; lacks.code != 4 || !strings.Contains(lacks.output, want) {
		t.Errorf("exit code %d, no %q\n%s", lacks.code, want, lacks.output)
	}
	p.kk(t, "check", allRoles, config).ok()
	clean()

	// A byte of a package that the hosts lack is changed.
	damaged := bytes.Replace(first, []byte("!<arch>\ndebian-binary"), []byte("!<arch>\nDebian-binary"), -1)
	p.write(t, "damaged.tar", string(damaged))
	r := p.role(t, "os", "main", "all", allRoles, strings.Replace(config, "packages.tar", "damaged.tar", 1))
	if r.code != 2 || !strings.Contains(r.output, "is damaged") {
		t.Errorf("exit code %d\n%s", r.code, r.output)
	}
	clean()

	p.role(t, "os", "main", "all", allRoles, config).ok()
	for i := range hosts.Hosts {
		got := on(t, i, "dpkg-query -W -f '${Package} ' conntrack ebtables ethtool ipset socat tzdata nfs-common")
		if got != "conntrack ebtables ethtool ipset nfs-common socat tzdata" {
			t.Errorf("node%d has %s", i+1, got)
		}
	}
	// What other roles need is there before they run.
	on(t, 1, "dpkg-query -W curl keepalived")
	on(t, 2, "dpkg-query -W nfs-kernel-server")
	clean()
	p.role(t, "os", "main", "all", allRoles, config).changedNothing()

	// What a run that was killed left is removed: where packages are missing, and where they are not.
	on(t, 1, "dpkg --purge socat >/dev/null 2>&1")
	for i := range 2 {
		on(t, i, killed)
	}
	p.role(t, "os", "main", "all", allRoles, config).ok()
	for i := range 2 {
		if mounts := on(t, i, "grep kubekey /proc/mounts || :"); mounts != "" {
			t.Errorf("node%d: still mounted:\n%s", i+1, mounts)
		}
	}
	on(t, 1, "dpkg-query -W socat")
	clean()
	p.role(t, "os", "main", "all", allRoles, config).changedNothing()

	// A directory of the user's, which comes before the offline file.
	on(t, 1, "dpkg --purge socat >/dev/null 2>&1")
	repository := p.path("work/cache/packages/debian-12/amd64")
	directory := strings.Replace(config, "Vienna", "Vienna, repository_iso: "+repository, 1)
	p.role(t, "os", "main", "all", allRoles, directory).ok()
	on(t, 1, "dpkg-query -W socat")
	clean()
	p.role(t, "os", "main", "all", allRoles, directory).changedNothing()
	if n, err := hosts.Escaped(t.Context()); err != nil || n != 0 {
		t.Errorf("%d packets tried to leave the hosts: %v", n, err)
	}
	p.role(t, "os", "delete", "all", allRoles, config).ok()
}

// Packages are resolved on a host that runs the distribution, and nothing of that remains there.
func TestPackagesOnAHost(t *testing.T) {
	p := newProject(t)
	p.write(t, "playbooks/export.yaml", exportPackages)
	const listing = "find /tmp /var/tmp /var/lib/apt /var/cache/apt /var/lib/dpkg \\( -type d -printf '%p\\n' -o -printf '%p %s %T@\\n' \\) | sort"
	before := on(t, 0, listing)
	config := "artifact: {distributions: [debian-12], packages_on: node1}\n"
	p.kk(t, "export", allNodes, config).ok()
	if after := on(t, 0, listing); after != before {
		t.Errorf("the host differs from before:\n%s", difference(before, after))
	}
	list, err := os.ReadFile(p.path("work/cache/packages/debian-12/amd64/Packages"))
	if err != nil || !strings.Contains(string(list), "\nPackage: conntrack\n") {
		t.Errorf("the list has no conntrack: %v\n%s", err, list)
	}
	p.kk(t, "export", allNodes, config).changedNothing()

	r := p.kk(t, "export", allNodes, strings.Replace(config, "debian-12", "debian-11", 1))
	if r.code != 2 || !strings.Contains(r.output, "the host runs debian-12, not debian-11: choose another host") {
		t.Errorf("exit code %d\n%s", r.code, r.output)
	}
}

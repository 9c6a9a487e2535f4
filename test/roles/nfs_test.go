package roles

import (
	"fmt"
	"strings"
	"testing"

	"kubekey/test/lab"
)

const nfsGroups = oneNode + "    nfs: {hosts: {node1: }}\n"

// Another host mounts what the role nfs exports, also after a reboot of the server, until the role removes it.
func testNFS(t *testing.T, l *lab.Lab) {
	p := newProject(t)
	p.lab = l
	config := "nfs: {exports: [{path: /srv/share}]}\n"
	p.role(t, "nfs", "main", "nfs", nfsGroups, config).ok()
	p.role(t, "nfs", "main", "nfs", nfsGroups, config).changedNothing()
	p.role(t, "nfs", "main", "nfs", nfsGroups, config, "--check").changedNothing()

	mount := fmt.Sprintf("mount -t nfs -o vers=4,soft,timeo=50 %s:/srv/share /mnt", l.Hosts[0].Address)
	onHost(t, l, 1, "modprobe nfs && "+mount+" && echo 'from node2' >/mnt/file && umount /mnt")
	if got := onHost(t, l, 0, "cat /srv/share/file"); got != "from node2" {
		t.Errorf("the exported file contains %q", got)
	}
	p.reboot(t, nfsGroups)
	if got := onHost(t, l, 1, mount+" && cat /mnt/file && umount /mnt"); got != "from node2" {
		t.Errorf("after a reboot the file contains %q", got)
	}

	p.role(t, "nfs", "delete", "nfs", nfsGroups, config).ok()
	if got := onHost(t, l, 1, mount+" 2>&1 || :"); !strings.Contains(got, "denied") && !strings.Contains(got, "No such") {
		t.Errorf("what is no longer exported is mounted: %q", got)
	}
	if got := onHost(t, l, 0, "cat /srv/share/file"); got != "from node2" {
		t.Errorf("the exported file contains %q", got)
	}
	p.role(t, "nfs", "delete", "nfs", nfsGroups, config).changedNothing()
}

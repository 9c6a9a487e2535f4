package roles

import (
	"fmt"
	"strings"
	"testing"

	"kubekey/test/lab"
)

// diskGroups has a host with these entries of storage_disks.
func diskGroups(entries ...string) string {
	return strings.Replace(oneNode, "{node1: }}", fmt.Sprintf("{node1: {storage_disks: [%s]}}}",
		strings.Join(entries, ", ")), 1)
}

const (
	etcdDisk       = `{devices: [/dev/ubdc], path: /var/lib/etcd, options: noatime}`
	containerdDisk = `{volume_group: data, logical_volume: images, size: 60%VG, path: /var/lib/containerd, ` +
		`filesystem: xfs}`
	otherDisk = `{devices: [/dev/ubdb], volume_group: data, logical_volume: rest, path: /srv/the data}`
)

// diskState is what could change on the disks of a host and around them.
const diskState = `blkid -p /dev/ubdb /dev/ubdc; grep -e ubdb -e ubdc -e mapper /proc/mounts; cat /etc/fstab; ls /srv`

// Disks get file systems, with and without LVM, and are mounted also after a reboot. Nothing on them is erased.
func testDisks(t *testing.T, l *lab.Lab) {
	p := newProject(t)
	p.lab = l
	onHost(t, l, 0, "rm -rf /var/lib/etcd /var/lib/containerd /srv/*")
	refused := func(prepare, undo, want string, entries ...string) {
		t.Helper()
		onHost(t, l, 0, prepare)
		before := onHost(t, l, 0, diskState)
		r := p.role(t, "disks", "main", "kube_worker", diskGroups(entries...), "")
		if r.code != 2 || !strings.Contains(r.output, want) {
			t.Errorf("exit code %d, no %q\n%s", r.code, want, r.output)
		}
		if after := onHost(t, l, 0, diskState); after != before {
			t.Errorf("the host differs from before:\n%s", difference(before, after))
		}
		onHost(t, l, 0, undo)
	}
	const erase = "wipefs -qa /dev/ubdc"
	refused("echo ',,' | sfdisk -q /dev/ubdc", erase, "/dev/ubdc has partitions", etcdDisk)
	refused("mkswap -q /dev/ubdc", erase, "/dev/ubdc contains swap, not ext4", etcdDisk)
	refused("mkfs.ext4 -q /dev/ubdc && mount /dev/ubdc /mnt", "umount /mnt && "+erase, "/dev/ubdc is mounted at /mnt",
		etcdDisk)
	refused("mkdir /var/lib/etcd && touch /var/lib/etcd/member", "rm -r /var/lib/etcd", "/var/lib/etcd is not empty",
		etcdDisk)
	refused("mkdir /var/lib/etcd && mount -t tmpfs none /var/lib/etcd", "umount /var/lib/etcd",
		"/var/lib/etcd is a mount point of none, not of /dev/ubdc", etcdDisk)
	refused(":", ":", "/dev/ubda is mounted at /", `{devices: [/dev/ubda], path: /data}`)
	refused(":", ":", "the host has no block device /dev/ubdx", `{devices: [/dev/ubdx], path: /data}`)
	refused(":", ":", "storage_disks[0].path is not an absolute path", `{devices: [/dev/ubdc], path: etcd}`)

	groups := diskGroups(etcdDisk, containerdDisk, otherDisk)
	onHost(t, l, 0, "mv /sbin/lvm /sbin/lvm.off") // as before lvm2 is installed
	before := onHost(t, l, 0, diskState)
	checked := p.role(t, "os", "main", "kube_worker", groups, "", "--check")
	onHost(t, l, 0, "mv /sbin/lvm.off /sbin/lvm")
	checked.ok()
	if after := onHost(t, l, 0, diskState); after != before {
		t.Errorf("check mode changed the host:\n%s", difference(before, after))
	}

	p.role(t, "os", "main", "kube_worker", groups, "").ok()
	onHost(t, l, 0, "for d in /var/lib/etcd /var/lib/containerd '/srv/the data'; do echo kept >\"$d/file\"; done")
	holds := func() {
		t.Helper()
		got := onHost(t, l, 0, `for d in /var/lib/etcd /var/lib/containerd '/srv/the data'; do
  echo "$(findmnt -n -o FSTYPE,SOURCE -M "$d" | tr -s ' ') $(cat "$d/file")"
done
findmnt -n -o OPTIONS -M /var/lib/etcd | grep -o noatime
lvs --noheadings -o lv_name,vg_name | sort
[ "$(vgs --noheadings --units b --nosuffix -o vg_free data)" -eq 0 ] && echo full`)
		want := "ext4 /dev/ubdc kept\nxfs /dev/mapper/data-images kept\next4 /dev/mapper/data-rest kept\nnoatime\n" +
			"images data\n  rest   data\nfull"
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("the host has\n%s\nwant\n%s", got, want)
		}
	}
	holds()
	p.role(t, "os", "main", "kube_worker", groups, "").changedNothing()
	p.role(t, "os", "main", "kube_worker", groups, "", "--check").changedNothing()
	p.reboot(t, groups)
	holds()
	p.role(t, "os", "main", "kube_worker", groups, "").changedNothing()

	// What a cluster leaves: disks and data are kept.
	p.role(t, "os", "delete", "kube_worker", groups, "").ok()
	holds()
	refused(":", ":", "/dev/ubdb belongs to the volume group data, not other",
		`{devices: [/dev/ubdb], volume_group: other, logical_volume: rest, path: /data}`)
	onHost(t, l, 0, `umount /var/lib/etcd /var/lib/containerd '/srv/the data' && vgremove -qfy data >/dev/null
wipefs -qa /dev/ubdb /dev/ubdc && sed -i -e /ubdc/d -e /UUID/d -e /data/d /etc/fstab`)
}

const lvmTasks = `
- name: Use LVM
  hosts: node1
  become: true
  tasks:
    - {name: Make group, lvg: {vg: kk, pvs: /dev/ubdb, remove_extra_pvs: false}}
    - {name: Grow group, lvg: {vg: kk, pvs: [/dev/ubdb, /dev/ubdc]}}
    - {name: Make volume, lvol: {vg: kk, lv: one, size: 24m, shrink: false}}
    - {name: Make file system, community.general.filesystem: {dev: /dev/kk/one, fstype: ext4}}
    - {name: Grow volume, lvol: {vg: kk, lv: one, size: 48m, resizefs: true}}
    - name: Shrink volume
      lvol: {vg: kk, lv: one, size: 8m}
      register: shrunk
      failed_when: "'without force=true' not in shrunk.msg"
    - name: Remove group
      lvg: {vg: kk, state: absent}
      register: removed
      failed_when: "'without force=true' not in removed.msg"
`

const lvmRemoved = `
- name: Remove LVM
  hosts: node1
  become: true
  tasks:
    - {name: Remove volume, lvol: {vg: kk, lv: one, state: absent, force: true}}
    - {name: Take a disk out of the group, lvg: {vg: kk, pvs: /dev/ubdb}}
    - {name: Remove group, lvg: {vg: kk, state: absent}}
`

// The modules lvg and lvol with a real LVM.
func testLVM(t *testing.T, l *lab.Lab) {
	p := newProject(t)
	p.lab = l
	p.write(t, "playbooks/lvm.yaml", lvmTasks)
	p.kk(t, "lvm", oneNode, "").ok()
	p.kk(t, "lvm", oneNode, "").changedNothing()
	got := onHost(t, l, 0, `lvs --noheadings --units m --nosuffix -o lv_name,lv_size; vgs --noheadings -o pv_count
tune2fs -l /dev/kk/one | awk '/^Block count/ { c = $3 } /^Block size/ { print c * $3 / 1048576 }'`)
	if strings.Join(strings.Fields(got), " ") != "one 48.00 2 48" {
		t.Errorf("LVM has %q", got)
	}
	p.write(t, "playbooks/removed.yaml", lvmRemoved)
	p.kk(t, "removed", oneNode, "").ok()
	if got := onHost(t, l, 0, "vgs --noheadings; pvs --noheadings -o vg_name | tr -d ' '"); got != "" {
		t.Errorf("LVM still has %q", got)
	}
}

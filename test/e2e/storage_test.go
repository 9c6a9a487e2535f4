package e2e

import (
	"strings"
	"testing"

	"kubekey/pkg/value"
)

func TestFilesystem(t *testing.T) {
	g := newTarget(t)
	g.needs("e2fsprogs xfsprogs dosfstools")
	t.Cleanup(func() { g.sh("rm -f '/srv/it'\\''s.img'") })
	g.sh("truncate -s 32M '/srv/it'\\''s.img'")
	dev := "/srv/it's.img"
	first, _ := g.twice("filesystem", "dev", dev, "fstype", "ext4", "opts", "-L 'a b'")
	g.sees(`blkid -c /dev/null -o value -s LABEL "/srv/it's.img"`, "a b")
	if dataOf(first, "fstype") != "ext4" || len(first.Diff) != 1 {
		t.Errorf("got %+v", first)
	}
	g.fails("is already used as ext4, use force=true to overwrite", "filesystem", "dev", dev, "fstype", "vfat")
	g.sh(`truncate -s 64M "/srv/it's.img"`)
	g.twice("filesystem", "dev", dev, "fstype", "ext4", "resizefs", true)
	g.sees(`tune2fs -l "/srv/it's.img" | awk '/^Block count/ { c = $3 } /^Block size/ { print c * $3 }'`, "67108864")
	if r := g.run("filesystem", "dev", dev, "fstype", "swap", "force", true, "uuid",
		"11111111-2222-3333-4444-555555555555"); !r.Changed {
		t.Errorf("got %+v", r)
	}
	g.sees(`blkid -c /dev/null -o value -s TYPE "/srv/it's.img"; blkid -c /dev/null -o value -s UUID "/srv/it's.img"`,
		"swap\n11111111-2222-3333-4444-555555555555")
	g.twice("filesystem", "dev", dev, "state", "absent")
	g.twice("filesystem", "dev", dev, "fstype", "vfat")
	g.fails("does not support resizing vfat", "filesystem", "dev", dev, "fstype", "vfat", "resizefs", true)
	g.sh(`wipefs -a "/srv/it's.img"; truncate -s 400M "/srv/it's.img"`)
	g.twice("filesystem", "dev", dev, "fstype", "xfs")
	g.same("filesystem", "dev", "/srv/none", "state", "absent")
	g.fails("Device /srv/none not found.", "filesystem", "dev", "/srv/none", "fstype", "ext4")
	g.fails("missing: fstype", "filesystem", "dev", dev)
	g.fails("is neither a device nor a file", "filesystem", "dev", "/srv", "fstype", "ext4")
}

func TestParted(t *testing.T) {
	g := newTarget(t)
	g.needs("parted")
	t.Cleanup(func() { g.sh("rm -f '/srv/a disk.img'") })
	g.sh("truncate -s 64M '/srv/a disk.img'")
	dev := "/srv/a disk.img"
	r := g.same("parted", "device", dev, "unit", "MiB")
	if value.Repr(dataOf(r, "partitions")) != "[]" {
		t.Errorf("got %s", value.Repr(r.Data))
	}
	first, again := g.twice("parted", "device", dev, "number", 1, "label", "gpt", "name", "my data", "part_start", "1MiB",
		"part_end", "16MiB", "flags", "lvm", "state", "present")
	if !strings.HasPrefix(value.Repr(dataOf(first, "script")), "'unit KiB mklabel gpt mkpart primary 1MiB 16MiB") ||
		value.Repr(dataOf(again, "script")) != "''" || len(first.Diff) != 1 {
		t.Errorf("got %s", value.Repr(first.Data))
	}
	if got := value.Repr(dataOf(again, "partitions")); got != "[{'num': 1, 'begin': 1024.0, 'end': 16384.0, 'size': 15360.0, 'unit': 'kib', 'fstype': '', 'name': 'my data', 'flags': ['lvm']}]" {
		t.Errorf("partitions are %s", got)
	}
	g.twice("parted", "device", dev, "number", 1, "label", "gpt", "part_end", "32MiB", "resize", true, "state", "present")
	g.twice("parted", "device", dev, "number", 2, "label", "gpt", "part_start", "50%", "part_end", "100%", "state",
		"present", "flags", []any{"boot", "esp"})
	g.twice("parted", "device", dev, "number", 1, "label", "gpt", "name", "other", "state", "present")
	g.twice("parted", "device", dev, "number", 2, "state", "absent")
	g.twice("parted", "device", dev, "number", 1, "part_end", "50%", "state", "present")
	g.sees("parted -sm '/srv/a disk.img' print | cut -d: -f6 | sed -n 2p", "msdos")
	g.fails("Could not stat device", "parted", "device", "/srv/none")
	g.fails("Error while running parted", "parted", "device", dev, "number", 2, "part_start", "90MiB", "part_end", "99MiB",
		"state", "present")
}

package general

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

func decode(t *testing.T, into any, pairs ...any) {
	t.Helper()
	if err := schema.Decode(into, value.NewDict(pairs...), &redact.Set{}); err != nil {
		t.Fatal(err)
	}
}

func TestVolumes(t *testing.T) {
	const mib = 1 << 20
	g := group{size: 1000 * mib, free: 400 * mib, extent: 4 * mib,
		volumes: map[string]volume{"old": {600 * mib, true}, "off": {4 * mib, false}}}
	for _, c := range []struct {
		args []any
		want string // expected commands or error
	}{
		{[]any{"lv", "new", "size", "10"}, "lvcreate --yes -n new -L 10485760b vg"},
		{[]any{"lv", "new", "size", "100%free", "pvs", "/dev/vdb", "opts", "-r 16"},
			"lvcreate --yes -r 16 -n new -l 100%FREE vg /dev/vdb"},
		{[]any{"lv", "old", "size", "600m"}, ""},
		{[]any{"lv", "old", "size", "599m"}, ""}, // the same number of extents
		{[]any{"lv", "old", "size", "700m", "resizefs", true}, "lvextend --yes --resizefs -L 734003200b vg/old"},
		{[]any{"lv", "old", "size", "+8m"}, "lvextend --yes -L 637534208b vg/old"},
		{[]any{"lv", "old", "size", "100%FREE"}, "lvextend --yes -L 1048576000b vg/old"},
		{[]any{"lv", "old", "size", "60%VG"}, ""},
		{[]any{"lv", "old", "size", "2g"}, "Not enough free space left"},
		{[]any{"lv", "old", "size", "100m"}, "no shrinking of vg/old without force=true"},
		{[]any{"lv", "old", "size", "100m", "shrink", false}, ""},
		{[]any{"lv", "old", "size", "100m", "force", true}, "lvreduce --yes --force -L 104857600b vg/old"},
		{[]any{"lv", "old", "active", false}, "lvchange -an vg/old"},
		{[]any{"lv", "off"}, "lvchange -ay vg/off"},
		{[]any{"lv", "old", "state", "absent"}, "no removal of logical volume old without force=true"},
		{[]any{"lv", "old", "state", "absent", "force", true}, "lvremove --force --yes vg/old"},
		{[]any{"lv", "gone", "state", "absent"}, ""},
		{[]any{"lv", "old", "snapshot", "snap", "size", "100m"}, "lvcreate --yes -s -n snap -L 104857600b vg/old"},
		{[]any{"thinpool", "pool", "size", "1g"}, "lvcreate --yes -L 1073741824b -T vg/pool"},
		{[]any{"lv", "thin", "thinpool", "pool", "size", "1t"}, "lvcreate --yes -n thin -V 1099511627776b -T vg/pool"},
		{[]any{"lv", "new"}, "No size given."},
		{[]any{"lv", "new", "size", "+1g"}, "does not exist yet"},
		{[]any{"lv", "new", "size", "lots"}, "Bad size specification of 'lots'"},
		{[]any{"lv", "new", "size", "120%VG"}, "cannot be larger than 100%"},
		{[]any{"lv", "-n", "size", "1"}, "must be a name of LVM"},
		{[]any{"lv", "thin", "thinpool", "pool", "size", "10%VG"}, "percentage not supported"},
	} {
		m := new(LVOL)
		err := schema.Decode(m, value.NewDict(append(c.args, "vg", "vg")...), &redact.Set{})
		var all [][]string
		if err == nil {
			var size volumeSize
			if size, err = parseVolumeSize(m.Size); err == nil {
				_, all, err = m.commands(g, size)
			}
		}
		var lines []string
		for _, words := range all {
			lines = append(lines, shell.Join(words...))
		}
		got := strings.Join(lines, "\n")
		if err != nil {
			if c.want == "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v, not %q", c.args, err, c.want)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%v: %q, not %q", c.args, got, c.want)
		}
	}
}

func TestPartitions(t *testing.T) {
	d := readDisk("BYT;\n/dev/vdb:10240KiB:virtblk:512:4096:gpt:Virtio: Block:;\n1:1024KiB:5120KiB:4096KiB:ext4:my data:boot, esp;\n", "KiB")
	if got := value.Repr(d.describe()); got != `{'disk': {'dev': '/dev/vdb', 'size': 10240.0, 'unit': 'kib', 'table': 'gpt', 'model': 'Virtio', 'logical_block': 512, 'physical_block': 4096}, `+
		`'partitions': [{'num': 1, 'begin': 1024.0, 'end': 5120.0, 'size': 4096.0, 'unit': 'kib', 'fstype': 'ext4', 'name': 'my data', 'flags': ['boot', 'esp']}]}` {
		t.Errorf("the disk reads as %s", got)
	}
	for _, c := range []struct {
		args []any
		want string
	}{
		{[]any{"number", 1, "label", "gpt"}, ""},
		{[]any{"number", 1, "label", "gpt", "name", "my data"}, ""},
		{[]any{"number", 1, "label", "gpt", "name", "new name"}, `unit KiB name 1 '"new name"'`},
		{[]any{"number", 1, "label", "gpt", "flags", "lvm"}, "unit KiB set 1 lvm on set 1 boot off set 1 esp off"},
		{[]any{"number", 1, "label", "gpt", "flags", "esp"}, ""},
		{[]any{"number", 1, "label", "gpt", "part_end", "5MiB", "resize", true}, ""},
		{[]any{"number", 1, "label", "gpt", "part_end", "100%", "resize", true}, "unit KiB resizepart 1 100%"},
		{[]any{"number", 2, "label", "gpt", "part_start", "5MiB", "part_end", "-1MiB", "fs_type", "xfs"},
			"unit KiB mkpart primary xfs 5MiB -1MiB"},
		{[]any{"number", 1}, "unit KiB mklabel msdos mkpart primary 0% 100%"},
		{[]any{"number", 1, "state", "absent"}, "rm 1"},
		{[]any{"number", 2, "state", "absent"}, ""},
	} {
		m := new(Parted)
		decode(t, m, append([]any{"device", "/dev/vdb", "state", "present"}, c.args...)...)
		if got := shell.Join(m.commands(d)...); got != c.want {
			t.Errorf("%v: %s, not %s", c.args, got, c.want)
		}
	}
	for text, args := range map[string][]any{
		"missing: number":          {"state", "present"},
		"greater then 0":           {"state", "present", "number", 0},
		"have no names":            {"state", "present", "number", 1, "name", "x"},
		"must be a place":          {"state", "present", "number", 1, "part_end", "rm 1"},
		"must be a flag or a file": {"state", "present", "number", 1, "flags", "-x"},
	} {
		err := schema.Decode(new(Parted), value.NewDict(append(args, "device", "/dev/vdb")...), &redact.Set{})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, not %q", args, err, text)
		}
	}
}

// standIn is this machine with fake LVM tools, because the real ones need a kernel with the device mapper. calls
// contains their calls.
type standIn struct {
	connector.Connector
	dir string
}

func (h standIn) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	c.Line = "PATH=" + shell.Quote(h.dir) + ":$PATH; export PATH; " + c.Line
	return h.Connector.Run(ctx, c)
}

func TestGroupsWithStandIns(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{
		"vgs":      `case $8 in lv_count) echo 1 ;; *) [ ! -e ` + dir + `/vg ] || echo data ;; esac`,
		"pvs":      `[ ! -e ` + dir + `/vg ] || case $8 in vg_name,pv_name) echo 'data|/dev/null' ;; *) [ "$9" != /dev/null ] || echo data ;; esac`,
		"pvcreate": "", "vgcreate": "touch " + dir + "/vg", "vgextend": "", "vgreduce": "", "vgremove": "rm " + dir + "/vg",
	} {
		text := "#!/bin/sh\ncase $0 in *vgs | *pvs) ;; *) echo \"${0##*/} $*\" >>" + dir + "/calls ;; esac\n" + body + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o := moduletest.Options{Conn: standIn{moduletest.Shell(), dir}, Diff: true}
	lvg := moduletest.Find(t, Modules(), "lvg")
	calls := func(want string) {
		t.Helper()
		got, err := os.ReadFile(dir + "/calls")
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("called\n%s%v, not\n%s", got, err, want)
		}
		if err := os.Remove(dir + "/calls"); err != nil {
			t.Error(err)
		}
	}
	// Tests have no block device, and /dev/null is not one: the check is disabled.
	s := hostscript.New(strings.Replace(lvmScript, "[ -b ", "[ -e ", 1), `lvg_main "$@"`).Set("vg", "data").Set("state",
		"present").Set("pesize", "4")
	s.Words = []string{"/dev/null"}
	if a, err := s.Run(context.Background(), o.Conn, false); err != nil || !a.Changed() {
		t.Errorf("got %q, %v", a, err)
	}
	calls("pvcreate -f -y /dev/null\nvgcreate -s 4 data /dev/null")
	if a, err := s.Run(context.Background(), o.Conn, false); err != nil || a.Changed() {
		t.Errorf("the second time %q, %v", a, err)
	}
	s.Words = []string{"/dev/zero"}
	if a, err := s.Flag("remove_extra_pvs", true).Run(context.Background(), o.Conn, false); err != nil || !a.Changed() {
		t.Errorf("got %q, %v", a, err)
	}
	calls("pvcreate -f -y /dev/zero\nvgextend data /dev/zero\nvgreduce data /dev/null")
	if _, err := moduletest.Try(t, lvg, value.NewDict("vg", "data", "state", "absent"), o); err == nil ||
		!strings.Contains(err.Error(), "non-empty volume group data without force=true") {
		t.Errorf("got %v", err)
	}
	moduletest.RunTwice(t, lvg, value.NewDict("vg", "data", "state", "absent", "force", true), o)
	calls("vgremove --force --yes data")
	for text, args := range map[string]*value.Dict{
		"No physical volumes given":        value.NewDict("vg", "data"),
		"must be the name of a volume gr":  value.NewDict("vg", "-x", "state", "absent"),
		"Device /dev/nosuch not found":     value.NewDict("vg", "data", "pvs", "/dev/nosuch"),
		"pvs must be an absolute path":     value.NewDict("vg", "data", "pvs", "vdb"),
		"pesize must be a size such as 4 ": value.NewDict("vg", "data", "pvs", "/dev/x", "pesize", "big"),
	} {
		if _, err := moduletest.Try(t, lvg, args, o); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s ended with %v, not %q", value.Repr(args), err, text)
		}
	}
}

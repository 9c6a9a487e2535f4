package system

import (
	"strings"
	"testing"

	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

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

func TestGroupsRejectBadArguments(t *testing.T) {
	for text, args := range map[string][]any{
		"No physical volumes given":        {"vg", "data"},
		"must be the name of a volume gr":  {"vg", "-x", "state", "absent"},
		"pvs must be an absolute path":     {"vg", "data", "pvs", "vdb"},
		"pesize must be a size such as 4 ": {"vg", "data", "pvs", "/dev/x", "pesize", "big"},
	} {
		err := schema.Decode(new(LVG), value.NewDict(args...), &redact.Set{})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, not %q", args, err, text)
		}
	}
}

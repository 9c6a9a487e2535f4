package general

import (
	"strings"
	"testing"

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

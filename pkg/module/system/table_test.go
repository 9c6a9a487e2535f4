package system

import (
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestMountTable(t *testing.T) {
	const table = "# <file system>\n/dev/sda1  /  ext4  defaults  0 1\nUUID=x   /data   xfs  noatime\n/swap none swap sw 0 0\n"
	cases := []struct {
		name  string
		mount Mount
		want  string // what becomes of the table; "" is nothing
	}{
		{"as it is, with other blanks", Mount{Path: "/", Src: "/dev/sda1", FSType: "ext4", PassNo: "1"}, ""},
		{"fields that are omitted", Mount{Path: "/data", Src: "UUID=x", FSType: "xfs", Opts: "noatime"}, ""},
		{"other options", Mount{Path: "/data", Src: "UUID=x", FSType: "xfs", Opts: "ro"},
			strings.Replace(table, "UUID=x   /data   xfs  noatime", "UUID=x /data xfs ro 0 0", 1)},
		{"further swap", Mount{Path: "none", Src: "/swap2", FSType: "swap", Opts: "sw"}, table + "/swap2 none swap sw 0 0\n"},
		{"the same swap", Mount{Path: "none", Src: "/swap", FSType: "swap", Opts: "sw"}, ""},
		{"blanks and backslashes", Mount{Path: "/a b", Src: `//srv/x\y`, FSType: "cifs"}, table +
			`//srv/x\134y /a\040b cifs defaults 0 0` + "\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.mount.Boot, c.mount.Dump = true, "0"
			if c.mount.PassNo == "" {
				c.mount.PassNo = "0"
			}
			want := c.want
			if want == "" {
				want = table
			}
			if got := c.mount.edit(table); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if again := c.mount.edit(want); again != want {
				t.Errorf("the second time the table becomes\n%s", again)
			}
			if gone := c.mount.without(c.mount.edit("")); gone != "" {
				t.Errorf("removed, there is left\n%s", gone)
			}
		})
	}
}

func TestMountedAt(t *testing.T) {
	const info = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /mnt/a\040b rw,noexec - tmpfs tmpfs rw,size=1024k
31 22 0:31 / /mnt/a\040b ro - tmpfs over rw
broken line
`
	on := mountedAt(info, "/mnt/a b")
	if on == nil || on.source != "over" || !on.hasOpts("ro,defaults,size=5m") || on.hasOpts("noexec") {
		t.Errorf("got %+v", on)
	}
	if mountedAt(info, "/mnt") != nil {
		t.Error("found a mount where there is none")
	}
}

func TestMountPresentInAFile(t *testing.T) {
	tab := filepath.Join(t.TempDir(), "my tab")
	args := value.NewDict("name", "/mnt/kk none", "src", "tmpfs", "fstype", "tmpfs", "state", "present", "fstab", tab,
		"boot", false)
	moduletest.RunTwice(t, spec(t, "mount"), args, moduletest.Options{Diff: true})
	if got := read(t, tab); got != "tmpfs /mnt/kk\\040none tmpfs defaults,noauto 0 0\n" {
		t.Errorf("got %q", got)
	}
	moduletest.RunTwice(t, spec(t, "mount"),
		value.NewDict("path", "/mnt/kk none", "state", "absent", "fstab", tab, "backup", true), moduletest.Options{})
	if kept, _ := filepath.Glob(tab + ".*~"); read(t, tab) != "" || len(kept) != 1 {
		t.Errorf("got %q, backups %q", read(t, tab), kept)
	}
	for text, args := range map[string][]any{
		"absolute path, ":      {"path", "x", "state", "unmounted"},
		"got \"/x\\n":          {"path", "/x\ny", "state", "unmounted"},
		"dash":                 {"path", "/x", "state", "present", "src", "-a", "fstype", "b"},
		"missing: src":         {"path", "/x", "state", "ephemeral"},
		"does not use a table": {"path", "/x", "state", "ephemeral", "src", "a", "fstype", "b", "fstab", "/y"},
		"is not mounted":       {"path", "/kk-none", "state", "remounted"},
		"is not a folder":      {"path", tab, "state", "mounted", "src", "a", "fstype", "b", "fstab", tab},
	} {
		fails(t, text, "mount", moduletest.Options{}, args...)
	}
}

func TestMountPlans(t *testing.T) {
	const proc = "22 1 8:1 / /proc rw - proc proc rw\n"
	for _, c := range []struct {
		mount  Mount
		table  string
		action string
	}{
		{Mount{State: "mounted", Src: "proc", FSType: "proc"}, "proc /proc proc defaults 0 0\n", ""},
		{Mount{State: "mounted", Src: "proc", FSType: "proc", Opts: "ro"}, "proc /proc proc defaults 0 0\n", "remount"},
		{Mount{State: "mounted", Src: "other", FSType: "proc"}, "proc /proc proc defaults 0 0\n", "swap"},
		{Mount{State: "mounted", Src: "proc", FSType: "none", Opts: "bind"}, "proc /proc none rbind 0 0\n", "swap"},
		// mounted already, and not in the table
		{Mount{State: "mounted", Src: "proc", FSType: "proc"}, "", ""},
		{Mount{State: "mounted", Src: "proc", FSType: "proc", Opts: "rw"}, "", ""},
		{Mount{State: "mounted", Src: "proc", FSType: "proc", Opts: "ro"}, "", "remount"},
		{Mount{State: "mounted", Src: "UUID=1", FSType: "ext4"}, "", ""},
		{Mount{State: "mounted", Src: "/same", FSType: "none", Opts: "bind"}, "", ""},
		{Mount{State: "mounted", Src: "other", FSType: "proc"}, "", "swap"},
		{Mount{State: "ephemeral", Src: "proc", FSType: "proc", Opts: "rw"}, "", ""},
		{Mount{State: "ephemeral", Src: "proc", FSType: "proc", Opts: "ro"}, "", "remount"},
		{Mount{State: "ephemeral", Src: "/x", FSType: "none", Opts: "bind"}, "", ""},
		{Mount{State: "absent"}, "proc /proc proc defaults 0 0\n", "umount"},
		{Mount{State: "unmounted"}, "", "umount"},
		{Mount{State: "remounted"}, "", "remount"},
	} {
		c.mount.Path, c.mount.Boot, c.mount.Dump, c.mount.PassNo = "/proc", true, "0", "0"
		a := hostscript.Answer{"text": {c.table + "x"}, "mounts": {proc}, "folder": {"1"}, "there": {"1"}}
		switch c.mount.Src {
		case "UUID=1":
			a["source"], a["device"] = []string{"/dev/sda1"}, []string{"8:1"}
		case "/same":
			a["same"] = []string{"1"}
		}
		p, err := c.mount.plan(a)
		if err != nil || p.action != c.action {
			t.Errorf("%+v: action %q, %v, want %q", c.mount, p.action, err, c.action)
		}
	}
}

func TestSysctlFile(t *testing.T) {
	const text = "# note\n; other\nvm.swappiness = 10\n-kernel.x=1\nvm.swappiness=20\nnet.a.b = 1 2   3\n"
	for _, c := range []struct{ name, want, state, file string }{
		{"vm.swappiness", "10", "present", strings.Replace(text, "vm.swappiness=20\n", "", 1)},
		{"vm.swappiness", "30", "present", "# note\n; other\nvm.swappiness=30\n-kernel.x=1\nnet.a.b = 1 2   3\n"},
		{"net.a.b", "1 2 3", "present", text},
		{"kernel.x", "1", "present", text},
		{"kernel.x", "", "absent", strings.Replace(text, "-kernel.x=1\n", "", 1)},
		{"fs.new", "5", "present", text + "fs.new=5\n"},
		{"fs.new", "", "absent", text},
	} {
		m := Sysctl{Name: c.name, State: c.state}
		if got := m.edit(text, c.want); got != c.file {
			t.Errorf("%+v: got\n%s", c, got)
		}
	}
	if m := (Sysctl{Name: "a", State: "present"}); m.edit("a=1", "1") != "a=1" || m.edit("b=1", "1") != "b=1\na=1\n" {
		t.Error("a file whose last line has no end is not kept, or not ended")
	}
}

func TestSysctlOnAHost(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"sysctl": `case "$*" in *bad*) echo "cannot stat /proc/sys/bad" >&2; exit 1 ;; esac`})
	file := filepath.Join(h.Dir, "k.conf")
	o := moduletest.Options{Conn: h}
	moduletest.RunTwice(t, spec(t, "sysctl"), value.NewDict("key", "kernel.kk", "val", "on", "sysctl_file", file), o)
	if got, calls := read(t, file), h.Calls(); got != "kernel.kk=1\n" || calls != "sysctl -p "+file {
		t.Errorf("wrote %q, ran %q", got, calls)
	}
	run(t, "sysctl", o, "name", "kernel.bad", "value", "a  b", "sysctl_file", file, "sysctl_set", true, "ignoreerrors",
		true)
	if calls := h.Calls(); calls != "sysctl -w kernel.bad=a b\nsysctl -e -p "+file {
		t.Errorf("ran %q", calls)
	}
	fails(t, "setting kernel.bad failed: cannot stat", "sysctl", o, "name", "kernel.bad", "value", "c", "sysctl_file",
		file, "sysctl_set", true)
	for _, v := range []any{true, "yes", "1"} {
		run(t, "sysctl", o, "name", "kernel.kk", "value", v, "sysctl_file", file)
	}
	run(t, "sysctl", o, "name", "kernel.kk", "value", false, "sysctl_file", file, "reload", false)
	run(t, "sysctl", o, "name", "kernel.kk", "value", "off", "sysctl_file", file)
	fails(t, "must be a string", "sysctl", o, "name", "a", "value", []any{1})
	fails(t, "one line", "sysctl", o, "name", "a", "value", "1\n2")
	fails(t, "must be the name", "sysctl", o, "name", "../../etc", "value", "1")
}

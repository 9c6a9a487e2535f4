package system

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

//go:embed mount.sh
var mountScript string

// Mount is the module mount.
type Mount struct {
	Path   string  `kk:"path,required,path,alias=name" doc:"mount point"`
	Src    string  `kk:"src,path" doc:"device, folder (with opts: bind), HOST:/PATH, or a name such as tmpfs"`
	FSType string  `kk:"fstype" doc:"type of the file system"`
	Opts   string  `kk:"opts" doc:"mount options, separated by commas. Default: defaults"`
	Dump   string  `kk:"dump" default:"0" doc:"fifth field in fstab"`
	PassNo string  `kk:"passno" default:"0" doc:"sixth field in fstab: order of file system checks at boot"`
	State  string  `kk:"state,required" choices:"absent,mounted,present,unmounted,remounted,ephemeral" doc:"mounted: in fstab and mounted; present: in fstab; unmounted: not mounted, fstab unchanged; absent: neither, and the mount point is removed; remounted: mount again with the options in fstab; ephemeral: mounted, but not in fstab"`
	Fstab  *string `kk:"fstab,path" doc:"path of the table. Default: /etc/fstab"`
	Boot   bool    `kk:"boot" default:"yes" doc:"whether to mount at boot; no adds the option noauto"`
	Backup bool    `kk:"backup" default:"no" doc:"keep the previous table next to the new one"`
}

func mountSpec() module.Spec {
	return module.Spec{
		Name: "mount", Collection: "ansible.posix",
		Summary: "Mounts file systems and manages fstab.",
		Notes: []string{
			"A file system that is already mounted without a line in fstab remains mounted: the line is added, and it is " +
				"remounted if its options differ.",
			"Changed opts of a mounted file system are applied by a remount; a changed src, and any change of a bind " +
				"mount, by unmounting and mounting again.",
			"If mounting fails, a new line in fstab is reverted.",
		},
		Examples: []string{
			"- name: Mount the data disk\n  mount:\n    path: /var/lib/etcd\n    src: /dev/vdb\n    fstype: ext4\n" +
				"    opts: noatime\n    state: mounted",
			"- name: Bind mount a folder\n  mount:\n    path: /srv/www\n    src: /data/www\n    fstype: none\n" +
				"    opts: bind\n    state: mounted",
		},
		Returns: []module.Return{
			{Key: "name", Type: "path", Doc: "mount point"},
			{Key: "src", Type: "path", Doc: "the argument, if given"},
			{Key: "fstype", Type: "str", Doc: "the argument, if given"},
			{Key: "opts", Type: "str", Doc: "mount options, as written in fstab"},
			{Key: "dump", Type: "str", Doc: "the argument"},
			{Key: "passno", Type: "str", Doc: "the argument"},
			{Key: "fstab", Type: "path", Doc: "path of the table"},
			{Key: "boot", Type: "str", Doc: "no if boot: no added noauto to the options, otherwise yes"},
			{Key: "backup_file", Type: "path", Doc: "backup of the table, or empty"},
		},
		New: func() module.Runner { return new(Mount) },
	}
}

// mountPlan holds the changes to make.
type mountPlan struct {
	action string // of mount.sh
	write  bool
	rmdir  bool
	before string // the table
	after  string
}

func (p mountPlan) changes() bool { return p.action != "" || p.write || p.rmdir }

func isMountPoint(p string) bool { return schema.Absolute(p) || p == "none" || p == "swap" }

// Rules implements schema.Ruled.
func (*Mount) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("path"),
		schema.Looks("an absolute path, none or swap", isMountPoint, "path"),
		schema.Looks("one line", schema.OneLine, "src", "fstype", "opts", "dump", "passno"),
		schema.Looks("a word that does not begin with a dash", schema.NoDash, "src", "fstype"),
		schema.Needs("src", "fstype").If("state", "mounted", "present", "ephemeral"),
		schema.Refuses("fstab").If("state", "ephemeral").
			Says("fstab has no effect with state: ephemeral, which does not use a table"),
	}
}

// Run implements module.Runner.
func (m *Mount) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	m.Path = path.Clean(m.Path)
	read := hostscript.New(mountScript, "mount_read").Set("path", m.Path).Set("src", m.Src).Set("fstab", m.fstab())
	a, err := c.Probe(ctx, read)
	if err != nil {
		return module.Result{}, err
	}
	plan, err := m.plan(a)
	if err != nil {
		return module.Result{}, err
	}
	r := module.ResultOf(a, m.described()...)
	r.Changed = plan.changes()
	if plan.write {
		c.Show(&r, m.fstab(), plan.before, plan.after)
	}
	act := hostscript.New(mountScript, "mount_act").Args(m)
	act.Set("fstab", m.fstab()).Set("action", plan.action).Set("old", plan.before)
	act.Flag("write", plan.write).Flag("rmdir", plan.rmdir)
	return c.Act(ctx, r, act, plan.after)
}

// described holds the keys of the mount in the result, in pairs.
func (m *Mount) described() []any {
	boot := "yes"
	if m.opts() != m.Opts && !m.Boot {
		boot = "no"
	}
	pairs := []any{"name", m.Path, "opts", m.opts(), "dump", m.Dump, "passno", m.PassNo, "fstab", m.fstab(), "boot",
		boot, "backup_file", ""}
	if m.Src != "" {
		pairs = append(pairs, "src", m.Src)
	}
	if m.FSType != "" {
		pairs = append(pairs, "fstype", m.FSType)
	}
	return pairs
}

func (m *Mount) fstab() string {
	if m.Fstab == nil {
		return "/etc/fstab"
	}
	return *m.Fstab
}

// opts is mount options, as written in fstab.
func (m *Mount) opts() string {
	opts := m.Opts
	if opts == "" {
		opts = "defaults"
	}
	if !m.Boot && !slices.Contains(strings.Split(opts, ","), "noauto") {
		opts += ",noauto"
	}
	return opts
}

// plan compares the actual with the desired state.
func (m *Mount) plan(a hostscript.Answer) (mountPlan, error) {
	p := mountPlan{before: strings.TrimSuffix(a.Get("text"), "x")}
	p.after = p.before
	on := mountedAt(a.Get("mounts"), m.Path)
	if real := a.Get("real"); on == nil && real != "" {
		on = mountedAt(a.Get("mounts"), real)
	}
	switch m.State {
	case "present":
		p.after = m.edit(p.before)
	case "absent":
		p.after = m.without(p.before)
		if on != nil {
			p.action = "umount"
		}
	case "unmounted":
		if on != nil {
			p.action = "umount"
		}
	case "remounted":
		if on == nil {
			return p, fmt.Errorf("%s is not mounted: use state: mounted to mount it", m.Path)
		}
		p.action = "remount"
	case "ephemeral":
		return p, m.planEphemeral(&p, on)
	case "mounted":
		p.after = m.edit(p.before)
		if a.Has("there") && !a.Has("folder") && !m.binds() {
			return p, fmt.Errorf("%s is not a folder", m.Path)
		}
		p.action = m.bring(p, on, a)
	}
	p.write = p.after != p.before
	p.rmdir = m.State == "absent" && a.Has("folder") && (p.write || on != nil)
	return p, nil
}

// bring is the action that applies the table to the mounted file system.
func (m *Mount) bring(p mountPlan, on *mounted, a hostscript.Answer) string {
	switch {
	case on == nil:
		return "mount"
	case p.after == p.before:
		return ""
	case m.sourceOf(p.before) == "" && m.isMounted(on, a): // mounted without a line
		if m.binds() || on.hasOpts(m.Opts) {
			return ""
		}
		return "remount"
	case m.binds() || m.sourceOf(p.before) != escape(m.Src):
		return "swap"
	}
	return "remount"
}

// isMounted reports whether the source is mounted there, under any of its names.
func (m *Mount) isMounted(on *mounted, a hostscript.Answer) bool {
	if m.binds() {
		return a.Has("same")
	}
	return on.source == m.Src || on.source == a.Get("source") || on.device != "" &&
		on.device == deviceNumber(a.Get("device"))
}

// deviceNumber is MAJOR:MINOR in decimal, from the hexadecimal output of stat.
func deviceNumber(hex string) string {
	major, minor, _ := strings.Cut(hex, ":")
	a, err := strconv.ParseUint(major, 16, 32)
	b, err2 := strconv.ParseUint(minor, 16, 32)
	if err != nil || err2 != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d", a, b)
}

func (m *Mount) binds() bool {
	return slices.ContainsFunc(strings.Split(m.Opts, ","), func(o string) bool { return o == "bind" || o == "rbind" })
}

func (m *Mount) planEphemeral(p *mountPlan, on *mounted) error {
	switch {
	case on == nil:
		p.action = "ephemeral"
	case m.binds():
	case on.source != m.Src:
		//nolint:staticcheck // the text users know
		return fmt.Errorf("Ephemeral mount point is already mounted with a different source: %s", on.source)
	case !on.hasOpts(m.Opts):
		p.action = "remount"
	}
	return nil
}

// mounted is one line of /proc/self/mountinfo.
type mounted struct {
	source string
	device string // MAJOR:MINOR
	opts   []string
}

// hasOpts reports whether all options are effective, as far as the kernel shows them.
func (on *mounted) hasOpts(opts string) bool {
	for _, o := range strings.Split(opts, ",") {
		if o == "" || o == "defaults" || strings.Contains(o, "=") {
			continue
		}
		if !slices.Contains(on.opts, o) {
			return false
		}
	}
	return true
}

// mountedAt finds the mount at a path, the topmost if there are several.
func mountedAt(info, at string) *mounted {
	var found *mounted
	for _, line := range module.Lines(info) {
		left, right, _ := strings.Cut(line, " - ")
		f, g := strings.Fields(left), strings.Fields(right)
		if len(f) < 6 || len(g) < 3 || unescape(f[4]) != at {
			continue
		}
		found = &mounted{source: unescape(g[1]), device: f[2],
			opts: append(strings.Split(f[5], ","), strings.Split(g[2], ",")...)}
	}
	return found
}

// escape writes a field of the table: blanks, tabs and backslashes are octal.
func escape(field string) string {
	return strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`).Replace(field)
}

func unescape(field string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(field)
}

// line is the mount as written in the table.
func (m *Mount) line() string {
	return strings.Join([]string{escape(m.Src), escape(m.Path), escape(m.FSType), escape(m.opts()), m.Dump, m.PassNo}, " ")
}

// mine reports whether a line of the table is for the path. Swap has no path, so its
// source is compared.
func (m *Mount) mine(line string) bool {
	f := strings.Fields(line)
	if len(f) < 3 || strings.HasPrefix(f[0], "#") || unescape(f[1]) != m.Path {
		return false
	}
	if m.Path == "none" || m.Path == "swap" {
		return unescape(f[0]) == m.Src
	}
	return true
}

// sourceOf is the first field of the line for the path.
func (m *Mount) sourceOf(text string) string {
	for _, line := range module.Lines(text) {
		if m.mine(line) {
			return strings.Fields(line)[0]
		}
	}
	return ""
}

// edit applies the desired line to the table. A line with the same fields is kept
// as it is, including its blanks.
func (m *Mount) edit(text string) string {
	out := module.Lines(text)
	found := false
	for i, line := range out {
		if !m.mine(line) {
			continue
		}
		found = true
		if !m.says(line) {
			out[i] = m.line()
		}
	}
	if !found {
		return module.JoinLines(append(out, m.line()))
	}
	if after := module.JoinLines(out); after != text+"\n" {
		return after
	}
	return text
}

func (m *Mount) says(line string) bool {
	f := strings.Fields(line)
	for len(f) < 6 {
		f = append(f, []string{"", "", "", "defaults", "0", "0"}[len(f)])
	}
	return slices.Equal(f[:6], strings.Fields(m.line()))
}

func (m *Mount) without(text string) string {
	all := module.Lines(text)
	out := slices.DeleteFunc(slices.Clone(all), m.mine)
	if len(out) == len(all) {
		return text
	}
	return module.JoinLines(out)
}

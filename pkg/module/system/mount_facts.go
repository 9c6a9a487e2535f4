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
	"kubekey/pkg/value"
)

//go:embed mount_facts.sh
var mountFactsScript string

// MountFacts is the module mount_facts.
type MountFacts struct {
	Devices   []string `kk:"devices" doc:"patterns (* ? [...]) of devices to return. Default: all"`
	FSTypes   []string `kk:"fstypes" doc:"patterns of file system types to return. Default: all"`
	Sources   []string `kk:"sources" default:"all" doc:"tables to read: dynamic (what is mounted), static (/etc/fstab), all (both), or files. If a mount point is in several, the first one counts"`
	Timeout   float64  `kk:"timeout" default:"5" doc:"seconds to wait for the sizes of a file system"`
	OnTimeout string   `kk:"on_timeout" default:"error" choices:"error,warn,ignore" doc:"how to report a timeout of a file system"`
	Aggregate bool     `kk:"include_aggregate_mounts" default:"no" doc:"also return all mounts as a list, including several of one mount point"`
}

func mountFactsSpec() module.Spec {
	return module.Spec{
		Name:     "mount_facts",
		Summary:  "Returns mounts as facts, with their sizes.",
		Notes:    []string{"The tables are read directly; no mount command is run."},
		Examples: []string{"- name: Gather the disks\n  mount_facts:\n    devices: /dev/*\n    sources: dynamic"},
		Returns: []module.Return{{Key: "ansible_facts", Type: "dict", Doc: "mount_points: by path, each with device, " +
			"fstype, options, dump, passno, size_total, size_available, block_* and inode_* counts, uuid and " +
			"ansible_context (source, source_data); aggregate_mounts: a list of the same"}},
		Check: module.Harmless,
		New:   func() module.Runner { return new(MountFacts) },
	}
}

// Rules implements schema.Ruled.
func (*MountFacts) Rules() schema.Rules {
	return schema.Rules{
		schema.Parses("all, dynamic, static or an absolute path", isMountSource, "sources"),
	}
}

func isMountSource(s string) error {
	if s != "all" && s != "dynamic" && s != "static" && !path.IsAbs(s) {
		return fmt.Errorf("sources must be all, dynamic, static or absolute paths, not %q", s)
	}
	return nil
}

// files are the tables to read.
func (m *MountFacts) files() []string {
	dynamic, static := []string{"/etc/mtab", "/proc/mounts", "/etc/mnttab"},
		[]string{"/etc/fstab", "/etc/vfstab", "/etc/filesystems"}
	var out []string
	for _, s := range m.Sources {
		switch {
		case s == "all":
			out = append(append(out, dynamic...), static...)
		case s == "dynamic":
			out = append(out, dynamic...)
		case s == "static":
			out = append(out, static...)
		case path.IsAbs(s):
			out = append(out, s)
		}
	}
	return out
}

// Run implements module.Runner.
func (m *MountFacts) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(mountFactsScript, `mount_facts_main "$@"`)
	s.Words = m.files()
	a, err := c.Probe(ctx, s)
	if err != nil {
		return module.Result{}, err
	}
	all, err := m.mounts(a)
	if err != nil {
		return module.Result{}, err
	}
	points := value.NewDict()
	var paths []string
	for _, d := range all {
		at, _ := d.Get("mount")
		if !points.Has(at) {
			points.Set(at, d)
			paths = append(paths, value.Str(at))
		}
	}
	r := module.Result{Facts: value.NewDict("mount_points", points)}
	if m.Aggregate {
		list := make([]any, len(all))
		for i, d := range all {
			list[i] = d
		}
		r.Facts.Set("aggregate_mounts", list)
	}
	return r, m.sizes(ctx, c, paths, all, &r)
}

// mounts are the lines of the tables that match.
func (m *MountFacts) mounts(a hostscript.Answer) ([]*value.Dict, error) {
	uuids := map[string]string{}
	for _, line := range module.Lines(a.Get("uuids")) {
		if device, uuid, ok := strings.Cut(line, " "); ok {
			uuids[device] = uuid
		}
	}
	if err := a.Together("file", "table"); err != nil {
		return nil, err
	}
	var out []*value.Dict
	for i, file := range a["file"] {
		for _, line := range module.Lines(a["table"][i]) {
			f := strings.Fields(line)
			if len(f) < 4 || strings.HasPrefix(f[0], "#") {
				continue
			}
			device, at, fstype := unescapeMount(f[0]), unescapeMount(f[1]), f[2]
			desired, err := m.wants(device, fstype)
			if err != nil {
				return nil, err
			}
			if !desired {
				continue
			}
			d := value.NewDict("device", device, "mount", at, "fstype", fstype, "options", f[3], "dump", field(f, 4),
				"passno", field(f, 5), "uuid", "N/A")
			if id := uuids[device]; id != "" {
				d.Set("uuid", id)
			}
			d.Set("ansible_context", value.NewDict("source", file, "source_data", line))
			out = append(out, d)
		}
	}
	return out, nil
}

func field(f []string, i int) int {
	if i >= len(f) {
		return 0
	}
	n, _ := strconv.Atoi(f[i])
	return n
}

// unescapeMount decodes three octal digits, which tables write for blanks and backslashes.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

func (m *MountFacts) wants(device, fstype string) (bool, error) {
	for _, c := range []struct {
		patterns []string
		text     string
	}{{m.Devices, device}, {m.FSTypes, fstype}} {
		found := len(c.patterns) == 0
		for _, p := range c.patterns {
			// in these patterns a star matches slashes too
			ok, err := path.Match(strings.ReplaceAll(p, "/", "\x01"), strings.ReplaceAll(c.text, "/", "\x01"))
			if err != nil {
				return false, fmt.Errorf("pattern %q: %w", p, err)
			}
			found = found || ok
		}
		if !found {
			return false, nil
		}
	}
	return true, nil
}

// sizes queries the sizes of mount points, in one script.
func (m *MountFacts) sizes(ctx context.Context, c *module.Call, paths []string, all []*value.Dict,
	r *module.Result) error {
	s := hostscript.New(mountFactsScript, `mount_facts_sizes "$@"`).Args(m)
	s.Words = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !path.IsAbs(p) })
	a, err := c.Probe(ctx, s)
	if err != nil {
		return err
	}
	if err := a.Together("folder", "size"); err != nil {
		return err
	}
	for i, folder := range a["folder"] {
		for _, d := range all {
			if at, _ := d.Get("mount"); at == folder {
				setSizes(d, strings.Fields(a["size"][i]))
			}
		}
	}
	for _, folder := range a["late"] {
		msg := fmt.Sprintf("Timed out or failed getting the size of mount %s", folder)
		switch m.OnTimeout {
		case "error":
			if m.isMounted(folder, all) {
				return fmt.Errorf("%s", msg)
			}
		case "warn":
			r.Warnings = append(r.Warnings, msg)
		}
	}
	return nil
}

// isMounted distinguishes a mount from a line of fstab that is not mounted, whose folder may be missing.
func (m *MountFacts) isMounted(folder string, all []*value.Dict) bool {
	return slices.ContainsFunc(all, func(d *value.Dict) bool {
		at, _ := d.Get("mount")
		from, _ := d.Get("ansible_context")
		source, _ := from.(*value.Dict).Get("source")
		return at == folder && (source == "/etc/mtab" || source == "/proc/mounts")
	})
}

// setSizes reads the numbers of stat: fundamental and optimal size of blocks;
// blocks in all, for users, free; inodes in all, free.
func setSizes(d *value.Dict, words []string) {
	if len(words) != 7 {
		return
	}
	var n [7]int
	for i, w := range words {
		n[i], _ = strconv.Atoi(w)
	}
	d.Set("size_total", n[0]*n[2])
	d.Set("size_available", n[0]*n[3])
	d.Set("block_size", n[1])
	d.Set("block_total", n[2])
	d.Set("block_available", n[3])
	d.Set("block_used", n[2]-n[3])
	d.Set("inode_total", n[5])
	d.Set("inode_available", n[6])
	d.Set("inode_used", n[5]-n[6])
}

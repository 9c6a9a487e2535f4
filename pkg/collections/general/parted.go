package general

import (
	"context"
	_ "embed"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

//go:embed parted.sh
var partedScript string

// Parted is the module parted.
type Parted struct {
	Device string   `kk:"device,required,path" doc:"device on the host, or an image file"`
	Number *int     `kk:"number" doc:"number of the partition; needed unless state is info"`
	State  string   `kk:"state" default:"info" choices:"absent,info,present" doc:"whether the partition should exist; info only returns the partitions"`
	Label  string   `kk:"label" default:"msdos" choices:"aix,amiga,bsd,dvh,gpt,loop,mac,msdos,pc98,sun" doc:"type of the partition table; a different existing one is replaced, with all partitions"`
	Type   string   `kk:"part_type" default:"primary" choices:"extended,logical,primary" doc:"type of a new partition in an msdos table"`
	Start  string   `kk:"part_start" default:"0%" doc:"start of a new partition: a number and a parted unit, such as 1MiB or 10%; a leading - counts from the end"`
	End    string   `kk:"part_end" default:"100%" doc:"end of the partition"`
	Name   string   `kk:"name" doc:"its name, in a gpt table"`
	Flags  []string `kk:"flags" doc:"exact flags of the partition"`
	FSType string   `kk:"fs_type" doc:"file system type of a new partition; no file system is created"`
	Align  string   `kk:"align" default:"optimal" choices:"cylinder,minimal,none,optimal" doc:"how new partitions are aligned"`
	Unit   string   `kk:"unit" default:"KiB" choices:"s,B,KB,KiB,MB,MiB,GB,GiB,TB,TiB,%%,cyl,chs,compact" doc:"unit of sizes in the result"`
	Resize bool     `kk:"resize" default:"no" doc:"resize an existing partition to part_end"`
}

func partedSpec() module.Spec {
	return module.Spec{
		Name: "parted", Collection: "community.general",
		Summary: "Creates, changes and removes partitions, or returns them.",
		Notes:   []string{"The host needs parted.", "An existing partition is not moved; resize only moves its end."},
		Examples: []string{
			"- name: Create a partition for LVM\n  parted:\n    device: /dev/vdb\n    number: 1\n    label: gpt\n" +
				"    name: data\n    flags: [lvm]\n    state: present",
			"- name: Read the partitions\n  parted:\n    device: /dev/vdb\n    unit: MiB\n  register: vdb",
		},
		Returns: []module.Return{
			{Key: "disk", Type: "dict", Doc: "dev, size, unit, table, model, logical_block and physical_block"},
			{Key: "partitions", Type: "list of dict", Doc: "num, begin, end, size, unit, fstype, name and flags of each"},
			{Key: "script", Type: "str", Doc: "the parted commands, run or predicted"},
		},
		New: func() module.Runner { return new(Parted) },
	}
}

// disk is the output of parted for a device.
type disk struct {
	data       *value.Dict
	table      string
	partitions []partition
	size       float64 // in bytes
	sector     int
}

type partition struct {
	num                     int
	begin, end, size        any
	unit, fstype, name, raw string // raw is the end as parted prints it
	flags                   []string
}

// Rules implements schema.Ruled.
func (*Parted) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("number").If("state", "absent", "present"),
		schema.Between("number", 1, schema.NoLimit).Says("The partition number must be greater then 0."),
		schema.Refuses("name").If("label", "msdos").Says("partitions of an msdos table have no names"),
		schema.Looks("a place on a disk: a number and a unit of parted, such as 1MiB or 50%", partedPlace.MatchString,
			"part_start", "part_end"),
		schema.Looks("a flag or a file system of parted", isPartedWord, "fs_type", "flags"),
	}
}

// Run implements module.Runner.
func (m *Parted) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	d, r, err := m.look(ctx, c)
	if err != nil {
		return r, err
	}
	commands := m.commands(d)
	r.Changed = len(commands) > 0
	if r.Changed && !c.Check {
		s := m.script(`parted_act "$@"`)
		s.Words = commands
		a, err := s.Run(ctx, c.Conn, false)
		if err != nil {
			return refused(a), err
		}
		after := readDisk(a.Get("disk"), m.Unit)
		c.Show(&r, m.Device, d.describe(), after.describe())
		d = after
	}
	r.Data = d.describe()
	r.Data.Set("script", m.displayed(commands))
	return r, nil
}

// isPartedWord accepts texts that can be a flag or a file system.
func isPartedWord(word string) bool {
	return strings.Trim(strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz0123456789_-()") == "" &&
		!strings.HasPrefix(word, "-")
}

var partedPlace = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?\s*(s|B|[KMGT]i?B|%|cyl)$`)

func (m *Parted) script(call string) *hostscript.Script {
	return hostscript.New(partedScript, call).Args(m)
}

// refused returns the result of a failed parted command.
func refused(a hostscript.Answer) module.Result {
	if !a.Has("rc") {
		return module.Result{}
	}
	return module.Result{Data: value.NewDict("rc", a.Number("rc"), "out", a.Get("out"), "err", a.Get("err"))}
}

func (m *Parted) look(ctx context.Context, c *module.Call) (disk, module.Result, error) {
	a, err := c.Probe(ctx, m.script("parted_look"))
	if err != nil {
		return disk{}, refused(a), err
	}
	return readDisk(a.Get("disk"), m.Unit), module.Result{}, nil
}

// commands returns the parted commands to run.
func (m *Parted) commands(d disk) []string {
	if m.State == "info" {
		return nil
	}
	number := strconv.Itoa(*m.Number)
	at := slices.IndexFunc(d.partitions, func(p partition) bool { return p.num == *m.Number })
	if m.State == "absent" {
		if at < 0 {
			return nil
		}
		return []string{"rm", number}
	}
	var w, more []string
	if d.table != m.Label {
		w, at = append(w, "mklabel", m.Label), -1
	}
	var now partition
	if at < 0 {
		w = append(w, "mkpart", m.Type)
		if m.FSType != "" {
			w = append(w, m.FSType)
		}
		w = append(w, m.Start, m.End)
	} else {
		now = d.partitions[at]
		if m.Resize && !m.endsThere(d, now) {
			w = append(w, "resizepart", number, m.End)
		}
	}
	if m.Name != "" && now.name != m.Name {
		more = append(more, "name", number, `"`+strings.ReplaceAll(m.Name, `"`, `\"`)+`"`) // quoted for parted
	}
	return append(m.measured(w), m.measured(append(more, m.flags(number, now.flags)...))...)
}

// measured returns commands, preceded by the unit of their numbers.
func (m *Parted) measured(commands []string) []string {
	if len(commands) == 0 {
		return nil
	}
	return append([]string{"unit", m.Unit}, commands...)
}

// displayed returns the commands in the format of the result.
func (m *Parted) displayed(commands []string) string {
	if m.State == "info" {
		return "unit '" + m.Unit + "' print"
	}
	words := slices.Clone(commands)
	for i, word := range words {
		if strings.HasPrefix(word, `"`) {
			words[i] = shell.Quote(word)
		}
	}
	return strings.Join(words, " ")
}

func (m *Parted) flags(number string, have []string) []string {
	if m.Flags == nil {
		return nil
	}
	var w []string
	for _, f := range m.Flags {
		if !slices.Contains(have, f) {
			w = append(w, "set", number, f, "on")
		}
	}
	for _, f := range have {
		if !slices.Contains(m.Flags, f) && !slices.Contains(m.Flags, "esp") { // esp implies boot
			w = append(w, "set", number, f, "off")
		}
	}
	return w
}

// endsThere reports whether a partition ends at part_end, allowing for the alignment by parted.
func (m *Parted) endsThere(d disk, p partition) bool {
	want, ok1 := d.bytes(m.End)
	have, ok2 := d.bytes(p.raw)
	return ok1 && ok2 && math.Abs(want-have) <= 2<<20
}

// bytes converts a position on the disk to bytes. It returns false for units that depend on the disk's geometry.
func (d disk) bytes(place string) (float64, bool) {
	text, negative := strings.CutPrefix(strings.ReplaceAll(place, " ", ""), "-")
	number := strings.TrimRight(text, "%BKMGTisckyl")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, false
	}
	unit := strings.ToLower(text[len(number):])
	factors := map[string]float64{"": 1e6, "b": 1, "s": float64(d.sector), "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
		"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "%": d.size / 100}
	factor, known := factors[unit]
	if negative {
		return d.size - n*factor, known
	}
	return n * factor, known
}

func (d disk) describe() *value.Dict {
	parts := []any{}
	for _, p := range d.partitions {
		parts = append(parts, value.NewDict("num", p.num, "begin", p.begin, "end", p.end, "size", p.size, "unit", p.unit,
			"fstype", p.fstype, "name", p.name, "flags", value.List(p.flags)))
	}
	return value.NewDict("disk", d.data, "partitions", parts)
}

// readDisk parses the output of `parted -m`: fields separated by colons, lines that end with a semicolon.
func readDisk(text, unit string) disk {
	d := disk{data: value.NewDict("dev", "", "size", 0.0, "unit", strings.ToLower(unit), "table", "unknown", "model", "")}
	for _, line := range strings.Split(text, "\n") {
		f := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), ";"), ":")
		switch {
		case len(f) >= 7 && strings.HasPrefix(f[0], "/"):
			d.table = f[5]
			logical, _ := strconv.Atoi(f[3])
			physical, _ := strconv.Atoi(f[4])
			d.data = value.NewDict("dev", f[0], "size", amount(f[1]), "unit", strings.ToLower(unit), "table", f[5], "model",
				f[6],
				"logical_block", logical, "physical_block", physical)
			d.sector = logical
			d.size, _ = d.bytes(f[1])
		case len(f) >= 7:
			num, err := strconv.Atoi(f[0])
			if err != nil {
				continue
			}
			p := partition{num: num, begin: amount(f[1]), end: amount(f[2]), size: amount(f[3]), unit: strings.ToLower(unit),
				fstype: f[4], name: f[5], raw: f[2]}
			for _, flag := range strings.Split(f[6], ",") {
				if flag = strings.TrimSpace(flag); flag != "" {
					p.flags = append(p.flags, flag)
				}
			}
			d.partitions = append(d.partitions, p)
		}
	}
	return d
}

// amount returns the number before a unit. A text without a number is returned unchanged.
func amount(text string) any {
	n, err := strconv.ParseFloat(strings.TrimRight(text, "%BKMGTkibscyl"), 64)
	if err != nil {
		return text
	}
	return n
}

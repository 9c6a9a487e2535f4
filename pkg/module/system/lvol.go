package system

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// LVOL is the module lvol.
type LVOL struct {
	VG       string   `kk:"vg,required" doc:"volume group"`
	LV       string   `kk:"lv" doc:"logical volume; needed unless only thinpool is created"`
	Size     string   `kk:"size" doc:"size in MiB, or with a unit (b, s, k, m, g, t, p, e), or a share: 60%VG, 100%FREE, 50%PVS; with a leading + or - it is relative"`
	Opts     string   `kk:"opts" doc:"further options of lvcreate"`
	State    string   `kk:"state" default:"present" choices:"absent,present" doc:"whether the volume should exist"`
	Active   bool     `kk:"active" default:"yes" doc:"whether it is active"`
	Force    bool     `kk:"force" default:"no" doc:"allow shrinking and removing the volume"`
	Shrink   bool     `kk:"shrink" default:"yes" doc:"shrink a volume that is larger than size"`
	Resize   bool     `kk:"resizefs" default:"no" doc:"resize the file system with it"`
	Snapshot string   `kk:"snapshot" doc:"name of a snapshot of lv; state applies to it"`
	ThinPool string   `kk:"thinpool" doc:"thin pool for lv; without lv, the pool to create"`
	PVs      []string `kk:"pvs" doc:"physical volumes to take extents from"`
}

func lvolSpec() module.Spec {
	return module.Spec{
		Name: "lvol", Collection: "community.general",
		Summary: "Manages an LVM logical volume, a snapshot, or a thin pool.",
		Notes: []string{
			"The host needs lvm2. Removing a volume destroys its data, and shrinking may: both need force.",
			"size: 100%FREE never shrinks an existing volume.",
		},
		Examples: []string{
			"- name: Create a volume for etcd\n  lvol:\n    vg: data\n    lv: etcd\n    size: 10g",
			"- name: Use the remaining space\n  lvol:\n    vg: data\n    lv: images\n    size: 100%FREE\n    resizefs: true",
		},
		Returns: []module.Return{
			{Key: "vg", Type: "str", Doc: "volume group"},
			{Key: "lv", Type: "str", Doc: "the volume, snapshot or pool"},
			{Key: "size", Type: "int", Doc: "size before the task, in bytes; missing if it did not exist"},
		},
		New: func() module.Runner { return new(LVOL) },
	}
}

// group is a volume group with its volumes. Sizes are in bytes.
type group struct {
	size, free, extent int64
	volumes            map[string]volume
}

type volume struct {
	size   int64
	active bool
}

// Rules implements schema.Ruled.
func (*LVOL) Rules() schema.Rules {
	return schema.Rules{
		schema.Looks("a name of LVM", lvmName.MatchString, "vg", "lv", "snapshot", "thinpool"),
		schema.Needs("vg"),
		schema.Parses("a size", isVolumeSize, "size"),
		schema.AtLeastOne("lv", "thinpool"),
		schema.Needs("lv").With("snapshot"),
		schema.AtMostOne("snapshot", "thinpool"),
		schema.Looks("a size without percent", noShare, "size").With("thinpool").With("lv").
			Says("Thin volume sizing with percentage not supported."),
		schema.Looks("plain words", lvmWords.MatchString, "opts"),
	}
}

// Run implements module.Runner.
func (m *LVOL) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	size, err := parseVolumeSize(m.Size)
	if err != nil {
		return module.Result{}, err
	}
	a, err := c.Probe(ctx, hostscript.New(lvmScript, "lvol_look").Args(m).Flag("check", c.Check))
	if err != nil {
		if c.Check && strings.HasSuffix(err.Error(), "does not exist.") { // an earlier task would perhaps create it
			return module.Result{Changed: m.State == "present", Data: value.NewDict("vg", m.VG, "lv", m.name())}, nil
		}
		return module.Result{}, err
	}
	g, err := readGroup(a)
	if err != nil {
		return module.Result{}, err
	}
	what, commands, err := m.commands(g, size)
	if err != nil {
		return module.Result{}, err
	}
	for i, words := range commands {
		act := hostscript.New(lvmScript, `lvol_act "$@"`).Set("what", what[i])
		act.Words = words
		if c.Check {
			break
		}
		if _, err := act.Run(ctx, c.Conn, false); err != nil {
			return module.Result{}, err
		}
	}
	r := module.Result{Changed: len(commands) > 0, Data: value.NewDict("vg", m.VG, "lv", m.name())}
	had, there := g.volumes[m.name()]
	if there {
		r.Data.Set("size", int(had.size))
	}
	c.Show(&r, m.VG+"/"+m.name(), "", strings.Join(what, "\n")+"\n")
	return r, nil
}

// name returns the name of the volume that state applies to.
func (m *LVOL) name() string {
	switch {
	case m.Snapshot != "":
		return m.Snapshot
	case m.LV != "":
		return m.LV
	}
	return m.ThinPool
}

// volumeSize is the parsed argument size.
type volumeSize struct {
	sign    string // "", "+" or "-"
	number  float64
	percent bool
	of      string // VG, FREE, PVS or ORIGIN
	bytes   int64  // if not a percentage
}

var volumeShare = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)%(VG|PVS|FREE|ORIGIN)$`)

func isVolumeSize(text string) error {
	_, err := parseVolumeSize(text)
	return err
}

func noShare(text string) bool {
	size, err := parseVolumeSize(text)
	return err != nil || !size.percent
}

func parseVolumeSize(text string) (volumeSize, error) {
	var s volumeSize
	if text == "" {
		return s, nil
	}
	bad := fmt.Errorf("Bad size specification of '%s'", text) //nolint:staticcheck // the text users know
	if text[0] == '+' || text[0] == '-' {
		s.sign, text = text[:1], text[1:]
	}
	if g := volumeShare.FindStringSubmatch(strings.ToUpper(text)); g != nil {
		s.percent, s.of = true, g[2]
		s.number, _ = strconv.ParseFloat(g[1], 64)
		if s.number > 100 && s.of != "ORIGIN" {
			return s, fmt.Errorf("Size percentage cannot be larger than 100%%") //nolint:staticcheck // the text users know
		}
		return s, nil
	}
	if !lvmSize.MatchString(text) {
		return s, bad
	}
	unit := strings.ToLower(text[len(text)-1:])
	factor, known := map[string]float64{"b": 1, "s": 512, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
		"p": 1 << 50, "e": 1 << 60}[unit]
	if !known {
		factor, unit = 1<<20, ""
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(strings.ToLower(text), unit), 64)
	if err != nil {
		return s, bad
	}
	s.number, s.bytes = n, int64(n*factor)
	return s, nil
}

// option returns the size as an option of lvcreate and similar commands.
func (s volumeSize) option() []string {
	if s.percent {
		return []string{"-l", s.sign + strconv.FormatFloat(s.number, 'f', -1, 64) + "%" + s.of}
	}
	return []string{"-L", s.sign + strconv.FormatInt(s.bytes, 10) + "b"}
}

// desired returns the new size, in whole extents, of a volume of had bytes.
func (s volumeSize) desired(g group, had int64) int64 {
	n := s.bytes
	if s.percent {
		base := g.size
		if s.of == "FREE" {
			base = g.free
		}
		n = int64(float64(base) * s.number / 100)
	}
	switch {
	case s.sign == "+":
		n = had + n
	case s.sign == "-":
		n = had - n
	case s.of == "FREE": // for an existing volume only the free space
		n = had + n
	}
	if s.percent {
		return n / g.extent * g.extent
	}
	return (n + g.extent - 1) / g.extent * g.extent
}

// commands returns the commands to run, and their descriptions for errors.
func (m *LVOL) commands(g group, size volumeSize) (what []string, all [][]string, err error) {
	full := m.VG + "/" + m.name()
	had, there := g.volumes[m.name()]
	add := func(text string, words ...string) {
		what, all = append(what, text+" "+full), append(all, words)
	}
	switch {
	case m.State == "absent" && !there:
	case m.State == "absent" && !m.Force:
		//nolint:staticcheck // the text users know
		err = fmt.Errorf("Sorry, no removal of logical volume %s without force=true.", m.name())
	case m.State == "absent":
		add("remove", "lvremove", "--force", "--yes", full)
	case !there && m.Size == "" && m.Snapshot == "":
		err = errors.New("No size given.") //nolint:staticcheck // the text users know
	case !there && size.sign != "":
		//nolint:staticcheck // the text users know
		err = fmt.Errorf("Bad size specification of '%s': %s does not exist yet", m.Size, full)
	case !there:
		add("make", m.create(size)...)
		if !m.Active && m.Snapshot == "" {
			add("deactivate", "lvchange", "-an", full)
		}
	default:
		if m.Size != "" && m.Snapshot == "" {
			var words []string
			if words, err = m.resize(g, size, had.size, full); words != nil {
				add("resize", words...)
			}
		}
		switch {
		case m.Active && !had.active:
			add("activate", "lvchange", "-ay", full)
		case !m.Active && had.active:
			add("deactivate", "lvchange", "-an", full)
		}
	}
	return what, all, err
}

func (m *LVOL) create(size volumeSize) []string {
	w := append([]string{"lvcreate", "--yes"}, strings.Fields(m.Opts)...)
	switch {
	case m.Snapshot != "":
		w = append(w, "-s", "-n", m.Snapshot)
		if m.Size != "" {
			w = append(w, size.option()...)
		}
		return append(w, m.VG+"/"+m.LV)
	case m.ThinPool != "" && m.LV != "":
		return append(w, "-n", m.LV, "-V", size.option()[1], "-T", m.VG+"/"+m.ThinPool)
	case m.ThinPool != "":
		return append(append(w, size.option()...), "-T", m.VG+"/"+m.ThinPool)
	}
	return append(append(append(w, "-n", m.LV), size.option()...), append([]string{m.VG}, m.PVs...)...)
}

func (m *LVOL) resize(g group, size volumeSize, had int64, full string) ([]string, error) {
	want := size.desired(g, had)
	tool := "lvextend"
	switch {
	case want == had, want < had && !m.Shrink && size.sign == "":
		return nil, nil
	case want > had && want-had > g.free:
		//nolint:staticcheck // the text users know
		return nil, fmt.Errorf("Logical Volume %s could not be extended. Not enough free space left (%d bytes required "+
			"/ %d bytes available)", full, want-had, g.free)
	case want < had && want < 1:
		return nil, fmt.Errorf("Sorry, no shrinking of %s to 0 permitted.", full) //nolint:staticcheck // the text users know
	case want < had && !m.Force:
		//nolint:staticcheck // the text users know
		return nil, fmt.Errorf("Sorry, no shrinking of %s without force=true", full)
	case want < had:
		tool = "lvreduce"
	}
	w := []string{tool, "--yes"}
	if tool == "lvreduce" {
		w = append(w, "--force")
	}
	if m.Resize {
		w = append(w, "--resizefs")
	}
	return append(append(w, "-L", strconv.FormatInt(want, 10)+"b", full), m.PVs...), nil
}

// readGroup parses the output of vgs and lvs.
func readGroup(a hostscript.Answer) (group, error) {
	f := strings.Split(a.Get("group"), "|")
	if len(f) != 4 {
		return group{}, fmt.Errorf("vgs of the host answered %q", a.Get("group"))
	}
	g := group{size: bytesOf(f[1]), free: bytesOf(f[2]), extent: max(bytesOf(f[3]), 1), volumes: map[string]volume{}}
	for _, line := range a["volume"] {
		if f := strings.Split(line, "|"); len(f) >= 3 {
			g.volumes[f[0]] = volume{bytesOf(f[1]), f[2] == "active"}
		}
	}
	return g, nil
}

func bytesOf(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}

package system

import (
	"context"
	_ "embed"
	"regexp"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed lvm.sh
var lvmScript string

// LVG is the module lvg.
type LVG struct {
	VG          string   `kk:"vg,required" doc:"name of the volume group"`
	PVs         []string `kk:"pvs,path" doc:"physical devices of the group; needed to create it"`
	PESize      string   `kk:"pesize" default:"4" doc:"size of an extent, in MiB or with a unit (b, s, k, m, g, t)"`
	PVOptions   string   `kk:"pv_options" doc:"further options of pvcreate"`
	VGOptions   string   `kk:"vg_options" doc:"further options of vgcreate"`
	PVResize    bool     `kk:"pvresize" default:"no" doc:"grow physical volumes to the size of their devices"`
	RemoveExtra bool     `kk:"remove_extra_pvs" default:"yes" doc:"remove devices that are not in pvs"`
	State       string   `kk:"state" default:"present" choices:"absent,present" doc:"whether the volume group should exist"`
	Force       bool     `kk:"force" default:"no" doc:"remove the group even if it has logical volumes"`
}

func lvgSpec() module.Spec {
	return module.Spec{
		Name: "lvg", Collection: "community.general",
		Summary: "Manages an LVM volume group.",
		Notes:   []string{"The host needs lvm2. A device in another volume group is rejected."},
		Examples: []string{"- name: A group of two disks\n  lvg:\n    vg: data\n    pvs:\n      - /dev/vdb1\n" +
			"      - /dev/vdc1"},
		Returns: []module.Return{{Key: "vg", Type: "str", Doc: "the volume group"}},
		New:     func() module.Runner { return new(LVG) },
	}
}

var (
	lvmName  = regexp.MustCompile(`^[A-Za-z0-9_+.][A-Za-z0-9_+.-]*$`)
	lvmWords = regexp.MustCompile(`^[A-Za-z0-9_+.,:=/@% -]*$`)
	lvmSize  = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[bBsSkKmMgGtTpPeE]?$`)
)

// Rules implements schema.Ruled.
func (*LVG) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("vg"),
		schema.Looks("the name of a volume group", lvmName.MatchString, "vg"),
		schema.Needs("pvs").If("state", "present").Says("No physical volumes given."),
		schema.Entries("pvs", 1, schema.NoLimit).If("state", "present").Says("No physical volumes given."),
		schema.Looks("a size such as 4 or 128k", lvmSize.MatchString, "pesize"),
		schema.Looks("plain words", lvmWords.MatchString, "pv_options", "vg_options"),
		schema.Looks("an absolute path", schema.Absolute, "pvs"),
	}
}

// Run implements module.Runner.
func (m *LVG) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(lvmScript, `lvg_main "$@"`).Args(m)
	s.Words = m.PVs
	r, _, err := c.Do(ctx, s, "vg", m.VG)
	c.Show(&r, m.VG, value.NewDict(), value.NewDict("state", m.State, "pvs", value.List(m.PVs)))
	return r, err
}

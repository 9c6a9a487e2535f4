package system

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/google/shlex"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed filesystem.sh
var filesystemScript string

// Filesystem is the module filesystem.
type Filesystem struct {
	Dev    string `kk:"dev,required,path,alias=device" doc:"device on the host, or an image file"`
	Type   string `kk:"fstype,alias=type" choices:"btrfs,ext2,ext3,ext4,f2fs,lvm,swap,vfat,xfs" doc:"type of the file system; lvm creates a physical volume"`
	State  string `kk:"state" default:"present" choices:"absent,present" doc:"present creates the file system; absent wipes its signatures, which makes its data inaccessible"`
	Force  bool   `kk:"force" default:"no" doc:"create it even if the device already has a file system; all data is lost in each run of the task"`
	Resize bool   `kk:"resizefs" default:"no" doc:"grow the file system to the size of the device: ext2 to ext4, lvm, and mounted xfs and btrfs"`
	Opts   string `kk:"opts" doc:"additional options of mkfs, in shell syntax"`
	UUID   string `kk:"uuid" doc:"UUID of a new file system; for ext2 to ext4, xfs, btrfs and swap"`
}

func filesystemSpec() module.Spec {
	return module.Spec{
		Name: "filesystem", Collection: "community.general",
		Summary: "Creates, grows or wipes a file system on a device.",
		Notes: []string{
			"A device with a file system of another type is rejected unless force is set; a mounted one always.",
			"The host needs blkid and wipefs (util-linux) and the tools of the file system.",
		},
		Examples: []string{
			"- name: Create a file system for data\n  filesystem:\n    dev: /dev/vdb\n    fstype: ext4\n    opts: -L data",
		},
		Returns: []module.Return{
			{Key: "dev", Type: "str", Doc: "the device"},
			{Key: "fstype", Type: "str", Doc: "type of the file system before the task, empty if there was none"},
		},
		New: func() module.Runner { return new(Filesystem) },
	}
}

// Rules implements schema.Ruled.
func (*Filesystem) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("fstype").If("state", "present"),
		schema.Refuses("uuid").If("fstype", "vfat", "f2fs", "lvm").Says("uuid cannot be set for {fstype}"),
		schema.AtMostOne("resizefs", "uuid"),
	}
}

// Run implements module.Runner.
func (m *Filesystem) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	words, err := shlex.Split(m.Opts)
	if err != nil {
		return module.Result{}, fmt.Errorf("opts: %w", err)
	}
	s := hostscript.New(filesystemScript, `filesystem_main "$@"`).Args(m)
	s.Words = words
	after := m.Type
	if m.State == "absent" {
		after = ""
	}
	r, a, err := c.Do(ctx, s, "dev", m.Dev, "fstype", after)
	if before := a.Get("before"); before != after {
		c.Show(&r, m.Dev, value.NewDict("fstype", before), value.NewDict("fstype", after))
	}
	return r, err
}

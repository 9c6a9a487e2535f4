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
	Dev    string `kk:"dev,required,path,alias=device" doc:"device of the host, or a file that holds an image"`
	Type   string `kk:"fstype,alias=type" choices:"btrfs,ext2,ext3,ext4,f2fs,lvm,swap,vfat,xfs" doc:"kind of file system; lvm makes a physical volume"`
	State  string `kk:"state" default:"present" choices:"absent,present" doc:"absent wipes the signatures of the file system, and with them its content"`
	Force  bool   `kk:"force" default:"no" doc:"make it though there is one already; what is there is lost, each time that the task runs"`
	Resize bool   `kk:"resizefs" default:"no" doc:"let it grow to the size of the device: ext2 to ext4, lvm, and xfs and btrfs that are mounted"`
	Opts   string `kk:"opts" doc:"options of mkfs, as words of a shell"`
	UUID   string `kk:"uuid" doc:"UUID of a new file system; for ext2 to ext4, xfs, btrfs and swap"`
}

func filesystemSpec() module.Spec {
	return module.Spec{
		Name: "filesystem", Collection: "community.general",
		Summary: "Make a file system on a device, let it grow, or wipe it.",
		Notes: []string{
			"A device that holds another kind of file system is refused unless force is given; one that is mounted always.",
			"The host needs blkid and wipefs (util-linux) and the tools of the file system.",
		},
		Examples: []string{
			"- name: A file system for data\n  filesystem:\n    dev: /dev/vdb\n    fstype: ext4\n    opts: -L data",
		},
		Returns: []module.Return{
			{Key: "dev", Type: "str", Doc: "the device"},
			{Key: "fstype", Type: "str", Doc: "what is on it now, empty if nothing"},
		},
		New: func() module.Runner { return new(Filesystem) },
	}
}

// Rules implements schema.Ruled.
func (*Filesystem) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("fstype").If("state", "present"),
		schema.Refuses("uuid").If("fstype", "vfat", "f2fs", "lvm").Says("uuid cannot be given for {fstype}"),
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

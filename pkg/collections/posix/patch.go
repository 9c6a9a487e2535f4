package posix

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"path"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

//go:embed patch.sh
var patchScript string

// Patch is the module patch.
type Patch struct {
	Src       string `kk:"src,required,path,alias=patchfile,file=files,away=remote_src" doc:"the patch, a file of the control node, searched in files/ of the role; with remote_src a path on the host"`
	Dest      string `kk:"dest,path,alias=originalfile" doc:"file of the host to patch. Default: the files that the patch names"`
	BaseDir   string `kk:"basedir,path" doc:"folder on the host that the names in the patch are relative to. Default: that of dest"`
	Strip     int    `kk:"strip" default:"0" doc:"number of leading folders to strip from the names in the patch"`
	RemoteSrc bool   `kk:"remote_src" default:"no" doc:"src is a path on the host"`
	Backup    bool   `kk:"backup" default:"no" doc:"keep numbered backups of the files"`
	Binary    bool   `kk:"binary" default:"no" doc:"keep carriage returns at line ends"`
	IgnoreWS  bool   `kk:"ignore_whitespace" default:"no" doc:"ignore differences in the amount of whitespace"`
	State     string `kk:"state" default:"present" choices:"absent,present" doc:"present applies the patch, absent reverts it"`
}

func patchSpec() module.Spec {
	return module.Spec{
		Name: "patch", Collection: "ansible.posix",
		Summary: "Applies a patch to files on the host, or reverts it.",
		Notes: []string{
			"The host needs patch. A dry run of reverting the patch shows whether it is already applied.",
			"A patch that does not apply changes no file.",
		},
		Examples: []string{
			"- name: Fix the start script\n  patch:\n    src: start.patch\n    dest: /srv/app/start.sh\n    backup: true",
			"- name: Apply a patch on the host to a folder\n  patch:\n    src: /srv/app/release.patch\n" +
				"    remote_src: true\n    basedir: /srv/app\n    strip: 1",
		},
		New: func() module.Runner { return new(Patch) },
	}
}

// Rules implements schema.Ruled.
func (*Patch) Rules() schema.Rules {
	return schema.Rules{
		schema.AtLeastOne("dest", "basedir"),
		schema.Between("strip", 0, schema.NoLimit),
	}
}

// Run implements module.Runner.
func (m *Patch) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(patchScript, "patch_main").Args(m)
	if m.BaseDir == "" {
		s.Set("basedir", path.Dir(m.Dest))
	}
	if !m.RemoteSrc {
		file, err := c.Find("files", m.Src)
		if err != nil {
			return module.Result{}, err
		}
		text, err := c.Files.ReadFile(file)
		if err != nil {
			return module.Result{}, fmt.Errorf("read the patch: %w", err)
		}
		s.Stdin = bytes.NewReader(text)
	}
	a, err := s.Run(ctx, c.Conn, c.Check)
	return module.ResultOf(a), err
}

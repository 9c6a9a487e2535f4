package system

import (
	"context"
	_ "embed"
	"regexp"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

//go:embed modprobe.sh
var modprobeScript string

// Modprobe is the module modprobe.
type Modprobe struct {
	Name       string `kk:"name,required" doc:"name of the kernel module"`
	State      string `kk:"state" default:"present" choices:"absent,present" doc:"whether the module should be loaded"`
	Params     string `kk:"params" doc:"parameters of the module when it is loaded"`
	Persistent string `kk:"persistent" default:"disabled" choices:"disabled,absent,present" doc:"whether to load the module with its parameters at boot (/etc/modules-load.d, /etc/modprobe.d); disabled does not change that"`
}

func modprobeSpec() module.Spec {
	return module.Spec{
		Name: "modprobe", Collection: "community.general",
		Summary: "Loads and unloads kernel modules.",
		Notes: []string{
			"A module built into the kernel counts as loaded. A kernel without loadable modules causes a warning instead " +
				"of a failure, since its features cannot be detected.",
			"The parameters of a module that is already loaded are not changed.",
		},
		Examples: []string{"- name: Load br_netfilter now and at boot\n  modprobe:\n    name: br_netfilter\n" +
			"    persistent: present"},
		Returns: []module.Return{
			{Key: "name", Type: "str", Doc: "name of the module"},
			{Key: "state", Type: "str", Doc: "the argument"},
			{Key: "params", Type: "str", Doc: "the argument"},
		},
		New: func() module.Runner { return new(Modprobe) },
	}
}

var (
	moduleName   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)
	moduleParams = regexp.MustCompile(`^[^\n*?\[\\]*$`)
)

// Rules implements schema.Ruled.
func (*Modprobe) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name"),
		schema.Looks("the name of a kernel module", moduleName.MatchString, "name"),
		schema.Looks("NAME=VALUE parameters on one line", moduleParams.MatchString, "params"),
	}
}

// Run implements module.Runner.
func (m *Modprobe) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(modprobeScript, "modprobe_main").Args(m)
	r, _, err := c.Do(ctx, s, "name", m.Name, "state", m.State, "params", m.Params)
	return r, err
}

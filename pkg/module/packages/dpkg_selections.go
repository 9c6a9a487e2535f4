package packages

import (
	"context"
	_ "embed"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed dpkg_selections.sh
var dpkgSelectionsScript string

// DpkgSelections is the module dpkg_selections.
type DpkgSelections struct {
	Name      string `kk:"name,required" doc:"name of the package"`
	Selection string `kk:"selection,required" choices:"install,hold,deinstall,purge" doc:"selection state: hold keeps the version"`
}

func dpkgSelectionsSpec() module.Spec {
	return module.Spec{
		Name:     "dpkg_selections",
		Summary:  "Sets the dpkg selection state of a package, such as hold.",
		Notes:    []string{"It does not install or remove packages."},
		Examples: []string{"- name: Hold the version of tar\n  dpkg_selections:\n    name: tar\n    selection: hold"},
		Returns: []module.Return{
			{Key: "before", Type: "str", Doc: "selection state before the task"},
			{Key: "after", Type: "str", Doc: "selection state after the task"},
		},
		New: func() module.Runner { return new(DpkgSelections) },
	}
}

// Rules implements schema.Ruled.
func (*DpkgSelections) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name"),
		packageNames(),
	}
}

// Run implements module.Runner.
func (m *DpkgSelections) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	r, a, err := c.Do(ctx, hostscript.New(dpkgSelectionsScript, "dpkg_selections_main").Args(m))
	if err != nil {
		return r, err
	}
	r.Data = value.NewDict("before", a.Get("before"), "after", m.Selection)
	c.ShowStates(&r, m.Name, "selection", a.Get("before"), m.Selection)
	return r, nil
}

package flow

import (
	"context"
	"time"

	"kubekey/pkg/facts"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

type setup struct {
	Subset   []string      `kk:"gather_subset" default:"all" doc:"subsets to gather: all, min, hardware, network, virtual, local; !NAME excludes one"`
	Filter   []string      `kk:"filter" doc:"shell patterns; only facts with matching names are returned"`
	Timeout  time.Duration `kk:"gather_timeout" default:"10" doc:"timeout of slow commands on the host"`
	FactPath string        `kk:"fact_path,path" default:"/etc/ansible/facts.d" doc:"folder on the host with custom facts"`
	Parallel any           `kk:"parallel" doc:"without effect: facts are gathered in one round trip"`
}

// CheckLiterals implements module.Checker.
func (m *setup) CheckLiterals() []schema.Problem {
	var out []schema.Problem
	if err := (facts.Options{Subset: m.Subset}).Check(); err != nil {
		out = append(out, schema.Problem{Path: "gather_subset", Msg: err.Error()})
	}
	if err := (facts.Options{Filter: m.Filter}).Check(); err != nil {
		out = append(out, schema.Problem{Path: "filter", Msg: err.Error()})
	}
	return out
}

// Run implements module.Runner.
func (m *setup) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	found, err := facts.Gather(ctx, c.Conn,
		facts.Options{Subset: m.Subset, Filter: m.Filter, Timeout: m.Timeout, FactPath: m.FactPath})
	if err != nil {
		return module.Result{}, err
	}
	return module.Result{Facts: prefixed(found), FactKind: module.Gathered}, nil
}

// prefixed gives facts their variable names. Facts about the gathering itself have no
// prefix.
func prefixed(found *value.Dict) *value.Dict {
	out := value.NewDict()
	for k, v := range found.All() {
		name, _ := k.(string)
		if name != "module_setup" && name != "gather_subset" {
			name = "ansible_" + name
		}
		out.Set(name, v)
	}
	return out
}

package packages

import (
	"context"
	"regexp"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// Apk is the module apk.
type Apk struct {
	Name        []string `kk:"name" doc:"names of packages; NAME=1.0, NAME~1 and the like select a version, NAME@TAG a repository"`
	State       string   `kk:"state" default:"present" choices:"present,installed,absent,removed,latest" doc:"desired state; latest is the newest version in the repositories"`
	UpdateCache bool     `kk:"update_cache" default:"no" doc:"update the package lists first; on its own this is a change"`
	Upgrade     bool     `kk:"upgrade" default:"no" doc:"upgrade all packages"`
	Available   bool     `kk:"available" default:"no" doc:"with upgrade, also replace or downgrade packages that are no longer in a repository"`
	NoCache     bool     `kk:"no_cache" default:"no" doc:"do not cache package lists and packages"`
	Repository  []string `kk:"repository" doc:"repositories to use instead of those of the host"`
	World       string   `kk:"world" default:"/etc/apk/world" doc:"world file on the host, the list of explicitly installed packages"`
}

func apkSpec() module.Spec {
	return module.Spec{
		Name: "apk", Collection: "community.general",
		Summary:  "Installs and removes packages on Alpine Linux.",
		Notes:    []string{"In check mode apk predicts the changes; package lists are not updated then."},
		Examples: []string{"- name: Install a package\n  apk:\n    name: conntrack-tools\n    update_cache: true"},
		Returns: []module.Return{
			{Key: "stdout", Type: "str", Doc: "output of apk, if it was run"},
			{Key: "stderr", Type: "str", Doc: "error output"},
			{Key: "packages", Type: "list", Doc: "the changed packages"},
		},
		New: func() module.Runner { return new(Apk) },
	}
}

// Rules implements schema.Ruled.
func (*Apk) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("name", "upgrade"),
		schema.AtLeastOne("name", "update_cache", "upgrade"),
		packageNames(),
	}
}

// Run implements module.Runner.
func (m *Apk) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	return runPackages(ctx, c, hostscript.New(apkScript, `apk_main "$@"`).Args(m), m.State, m.Name)
}

// apkStep is a line "(1/3) Installing NAME (VERSION)".
var apkStep = regexp.MustCompile(`(?m)^\(\d+/\d+\)\s+\S+\s+(\S+)`)

func apkResult(a hostscript.Answer, err error) module.Result {
	r := module.Result{Changed: a.Changed(), Data: value.NewDict()}
	if a.Has("call") {
		r.Data = value.NewDict("stdout", module.Printed(a.Get("stdout")), "stderr", module.Printed(a.Get("stderr")))
	}
	if call := a.Get("call"); call != "" && call != "update" {
		packages := []any{}
		for _, found := range apkStep.FindAllStringSubmatch(a.Get("stdout"), -1) {
			packages = append(packages, found[1])
		}
		r.Data.Set("packages", packages)
	}
	if r.Msg = a.Get("msg"); err != nil {
		r.Failed, r.Changed, r.Msg = true, false, err.Error()
	}
	return r
}

package packages

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
)

var (
	//go:embed apt.sh
	aptScript string
	//go:embed rpm.sh
	rpmScript string
	//go:embed apk.sh
	apkScript string
)

func packageReturns() []module.Return {
	return []module.Return{
		{Key: "stdout", Type: "str", Doc: "what the package manager printed, if it had to be run"},
		{Key: "stderr", Type: "str", Doc: "what it printed as errors"},
		{Key: "rc", Type: "int", Doc: "its exit status"},
	}
}

// runPackages runs the script of a package manager and makes the result.
func runPackages(ctx context.Context, c *module.Call, s *hostscript.Script, state string, names []string) (module.Result, error) {
	s.Set("state", packageState(state))
	s.Words = names
	if err := checkPackages(names); err != nil {
		return module.Result{}, err
	}
	a, err := s.Run(ctx, c.Conn, c.Check)
	if a == nil {
		return module.Result{}, err
	}
	r := module.ResultOf(a)
	if a.Has("rc") || err == nil {
		r.Data.Set("stdout", a.Get("stdout"))
		r.Data.Set("stderr", a.Get("stderr"))
		r.Data.Set("rc", a.Number("rc"))
	}
	if err != nil {
		r.Failed, r.Changed, r.Msg = true, false, err.Error()
		return r, nil
	}
	aptCache(c, a, &r)
	if c.Diff && r.Changed {
		r.Diff = packageDiff(a.Get("stdout"))
	}
	return r, nil
}

// aptCache adds what apt tells of its lists.
func aptCache(c *module.Call, a hostscript.Answer, r *module.Result) {
	if !a.Has("cache_time") {
		return
	}
	updated := a.Has("cache_updated")
	if !a.Has("acted") && !a.Has("named") { // the lists were all there was to do
		r.Changed = updated || c.Check && a.Has("cache_due")
	}
	r.Data.Set("cache_updated", updated)
	r.Data.Set("cache_update_time", a.Number("cache_time"))
}

// packageState reads the older names of states.
func packageState(state string) string {
	switch state {
	case "installed":
		return "present"
	case "removed":
		return "absent"
	}
	return state
}

func checkPackages(names []string) error {
	for _, n := range names {
		if n == "" {
			return errors.New("a package name is empty")
		}
		if strings.HasPrefix(n, "-") || strings.ContainsAny(n, " \t\n\x00") {
			return fmt.Errorf("%q is not the name of a package", n)
		}
	}
	return nil
}

// packageDiff is the part of apt-get's output that lists packages; of other
// managers, all of it.
func packageDiff(stdout string) []event.Diff {
	var out []string
	all := module.Lines(stdout)
	from := 0
	for i, line := range all {
		if strings.HasPrefix(line, "The following ") {
			from = i
			break
		}
	}
	for _, line := range all[from:] {
		if strings.Contains(line, " upgraded, ") {
			break
		}
		if strings.HasPrefix(line, "Reading ") || strings.HasPrefix(line, "Building ") {
			continue
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		return nil
	}
	return []event.Diff{{Prepared: module.JoinLines(out)}}
}

// Zypper is the module zypper.
type Zypper struct {
	Name            []string `kk:"name,required,alias=pkg" doc:"packages"`
	State           string   `kk:"state" default:"present" choices:"present,installed,absent,removed,latest" doc:"installed, not installed, or as new as the repositories have it"`
	UpdateCache     bool     `kk:"update_cache,alias=refresh" default:"no" doc:"read the lists of the repositories first"`
	DisableGPGCheck bool     `kk:"disable_gpg_check" default:"no" doc:"install packages without a valid signature"`
	Recommends      bool     `kk:"disable_recommends" default:"yes" doc:"leave recommended packages out"`
	OldPackage      bool     `kk:"oldpackage" default:"no" doc:"allow an older version to replace a newer one"`
	CleanDeps       bool     `kk:"clean_deps" default:"no" doc:"remove what a removed package needed and nothing else does"`
}

func zypperSpec() module.Spec {
	return module.Spec{
		Name: "zypper", Collection: "community.general",
		Summary:  "Installs and removes packages of SUSE.",
		Examples: []string{"- name: Install a package\n  zypper:\n    name: conntrack-tools"},
		Returns:  packageReturns(),
		New:      func() module.Runner { return new(Zypper) },
	}
}

// Run implements module.Runner.
func (m *Zypper) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(rpmScript, `zypper_main "$@"`)
	s.Flag("update_cache", m.UpdateCache).Flag("disable_gpg_check", m.DisableGPGCheck)
	s.Flag("no_recommends", m.Recommends).Flag("oldpackage", m.OldPackage).Flag("clean_deps", m.CleanDeps)
	return runPackages(ctx, c, s, m.State, m.Name)
}

// Apk is the module apk.
type Apk struct {
	Name        []string `kk:"name" doc:"packages"`
	State       string   `kk:"state" default:"present" choices:"present,installed,absent,removed,latest" doc:"installed, not installed, or as new as the repositories have it"`
	UpdateCache bool     `kk:"update_cache" default:"no" doc:"read the lists of the repositories first; alone it is a change"`
	Upgrade     bool     `kk:"upgrade" default:"no" doc:"upgrade all packages"`
}

func apkSpec() module.Spec {
	return module.Spec{
		Name: "apk", Collection: "community.general",
		Summary:  "Installs and removes packages of Alpine.",
		Examples: []string{"- name: Install a package\n  apk:\n    name: conntrack-tools\n    update_cache: true"},
		Returns:  packageReturns(),
		New:      func() module.Runner { return new(Apk) },
	}
}

// Run implements module.Runner.
func (m *Apk) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if len(m.Name) > 0 && m.Upgrade {
		return module.Result{}, errors.New("parameters are mutually exclusive: name|upgrade")
	}
	if len(m.Name) == 0 && !m.Upgrade && !m.UpdateCache {
		return module.Result{}, errors.New("one of the following is required: name, update_cache, upgrade")
	}
	s := hostscript.New(apkScript, `apk_main "$@"`)
	s.Flag("update_cache", m.UpdateCache).Flag("upgrade", m.Upgrade)
	return runPackages(ctx, c, s, m.State, m.Name)
}

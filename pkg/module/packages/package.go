package packages

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

var (
	//go:embed apt.sh
	aptScript string
	//go:embed rpm.sh
	rpmScript string
	//go:embed zypper.sh
	zypperScript string
	//go:embed apk.sh
	apkScript string
)

func packageReturns() []module.Return {
	return []module.Return{
		{Key: "stdout", Type: "str", Doc: "output of the package manager, if it was run"},
		{Key: "stderr", Type: "str", Doc: "error output"},
		{Key: "rc", Type: "int", Doc: "exit status"},
	}
}

// runPackages runs the script of a package manager and makes the result.
func runPackages(ctx context.Context, c *module.Call, s *hostscript.Script, state string,
	names []string) (module.Result, error) {
	s.Set("state", packageState(state))
	s.Words = names
	a, err := s.Run(ctx, c.Conn, c.Check)
	switch {
	case a == nil:
		return module.Result{}, err
	case a.Has("zypper"):
		return zypperResult(c, a, names, state, false, err), nil
	case a.Has("apk"):
		return apkResult(a, err), nil
	}
	r := module.ResultOf(a)
	apt := a.Has("cache_time")
	if a.Has("rc") || err == nil && !apt {
		r.Data.Set("stdout", module.Printed(a.Get("stdout")))
		r.Data.Set("stderr", module.Printed(a.Get("stderr")))
		r.Data.Set("rc", a.Number("rc"))
	}
	if apt {
		aptCache(a, &r)
	}
	if err != nil {
		r.Failed, r.Changed, r.Msg = true, false, err.Error()
		return r, nil
	}
	if a.Has("upgraded") {
		r.Msg = module.Printed(a.Get("stdout"))
	}
	if c.Diff && r.Changed {
		r.Diff = packageDiff(a.Get("stdout"))
	}
	return r, nil
}

// aptCache adds the state of the package lists of apt.
func aptCache(a hostscript.Answer, r *module.Result) {
	updated := a.Has("cache_updated")
	if !a.Has("acted") && !a.Has("named") { // only the package lists were updated
		r.Changed = updated
	}
	r.Data.Set("cache_updated", updated)
	r.Data.Set("cache_update_time", a.Number("cache_time"))
}

// packageState maps the older names of states.
func packageState(state string) string {
	switch state {
	case "installed":
		return "present"
	case "removed":
		return "absent"
	}
	return state
}

// packageNames is the rule for names of packages.
func packageNames() schema.Rule {
	return schema.Parses("names of packages", func(name string) error {
		if name == "" {
			return errors.New("a package name is empty")
		}
		if strings.HasPrefix(name, "-") || strings.ContainsAny(name, " \t\n\x00") {
			return fmt.Errorf("%q is not the name of a package", name)
		}
		return nil
	}, "name")
}

// packageDiff is the part of apt-get's output about packages, up to their numbers; of
// other managers, the whole output.
func packageDiff(stdout string) []event.Diff {
	all := module.Lines(stdout)
	if from := slices.Index(all, "Reading state information..."); from >= 0 {
		all = all[from+1:]
	}
	if to := slices.IndexFunc(all, aptNumbers.MatchString); to >= 0 {
		all = all[:to+1]
	}
	if len(all) == 0 {
		return nil
	}
	return []event.Diff{{Prepared: strings.Join(all, "\n")}}
}

// aptNumbers is the line "1 upgraded, 0 newly installed, ...".
var aptNumbers = regexp.MustCompile(`^[0-9]+ upgraded, `)

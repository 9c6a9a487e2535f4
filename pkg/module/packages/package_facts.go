package packages

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

//go:embed package_facts.sh
var packageFactsScript string

// PackageFacts is the module package_facts.
type PackageFacts struct {
	Manager  []string `kk:"manager" default:"auto" choices:"auto,apt,rpm,yum,dnf,dnf5,zypper,apk" doc:"package manager; yum, dnf, dnf5 and zypper are rpm. auto is apt, rpm, apk"`
	Strategy string   `kk:"strategy" default:"first" choices:"first,all" doc:"use the first manager that has packages, or all of them"`
}

func packageFactsSpec() module.Spec {
	return module.Spec{
		Name:    "package_facts",
		Summary: "Returns the installed packages as facts.",
		Examples: []string{
			"- name: Gather the installed packages\n  package_facts:\n    manager: auto",
		},
		Returns: []module.Return{{Key: "ansible_facts", Type: "dict", Doc: "packages: by name, each a list of name, " +
			"version, arch, source; with apt category and origin, with rpm epoch and release, with apk release"}},
		Check: module.Harmless,
		New:   func() module.Runner { return new(PackageFacts) },
	}
}

// managers are the managers to query, in order: yum, dnf and zypper are rpm.
func (m *PackageFacts) managers() []string {
	var out []string
	for _, name := range m.Manager {
		names := []string{name}
		switch name {
		case "auto":
			names = []string{"apt", "rpm", "apk"}
		case "yum", "dnf", "dnf5", "zypper":
			names = []string{"rpm"}
		}
		for _, n := range names {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// Run implements module.Runner.
func (m *PackageFacts) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(packageFactsScript, `package_facts_main "$@"`).Set("strategy", m.Strategy)
	s.Words, s.Probe = m.managers(), true
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return module.Result{}, err
	}
	if !a.Has("available") {
		//nolint:staticcheck // the text users know
		return module.Result{}, fmt.Errorf("Could not detect a supported package manager from the following list: %s",
			value.Repr(value.List(s.Words)))
	}
	origins := aptOrigins(a.Get("origins"))
	packages := value.NewDict()
	for _, manager := range s.Words {
		for _, line := range module.Lines(a.Get("list_" + manager)) {
			p := installedPackage(manager, strings.Split(line, "\t"), origins)
			if p == nil {
				continue
			}
			p.Set("source", manager)
			name, _ := p.Get("name")
			before, _ := packages.Get(name)
			all, _ := before.([]any)
			packages.Set(name, append(all, p))
		}
	}
	return module.Result{Facts: value.NewDict("packages", packages)}, nil
}

// installedPackage reads a line of a manager's list; nil for any other line.
func installedPackage(manager string, f []string, origins map[string]string) *value.Dict {
	switch {
	case manager == "apt" && len(f) == 6: // the first is the status
		origin, ok := origins[f[5]]
		if !ok {
			origin = origins[f[1]] // of the host's own architecture
		}
		return value.NewDict("name", f[1], "version", f[2], "arch", f[3], "category", f[4], "origin", origin)
	case manager == "rpm" && len(f) == 5:
		p := value.NewDict("name", f[0], "version", f[1], "release", f[2], "epoch", nil, "arch", f[4])
		if n, err := strconv.Atoi(f[3]); err == nil {
			p.Set("epoch", n)
		}
		if f[4] == "(none)" {
			p.Set("arch", nil)
		}
		return p
	case manager == "apk" && len(f) == 1: // NAME-VERSION-rRELEASE
		words := strings.Split(f[0], "-")
		if n := len(words); n >= 3 {
			return value.NewDict("name", strings.Join(words[:n-2], "-"), "version", words[n-2], "release", words[n-1])
		}
	}
	return nil
}

// aptOrigins reads the output of apt-cache policy, first repositories and then packages:
// the origin of the repository of the installed version, "" if none has it.
func aptOrigins(text string) map[string]string {
	files, out := map[string]string{}, map[string]string{}
	file, name := "", ""
	installed := false
	for _, line := range module.Lines(text) {
		body := strings.TrimLeft(line, " ")
		depth := len(line) - len(body)
		switch {
		case depth == 0:
			name, installed = strings.TrimSuffix(body, ":"), false
		case name == "Package files" && strings.HasPrefix(body, "release "):
			for _, field := range strings.Split(strings.TrimPrefix(body, "release "), ",") {
				if o, ok := strings.CutPrefix(field, "o="); ok {
					files[file] = o
				}
			}
		case name == "Package files" && depth < 5: // PRIORITY FILE
			_, file, _ = strings.Cut(body, " ")
		case strings.HasPrefix(body, "*** "):
			installed = true
		case depth == 5: // another version
			installed = false
		case installed && depth > 5:
			_, from, _ := strings.Cut(body, " ")
			if _, told := out[name]; !told {
				out[name] = files[from]
			}
		}
	}
	return out
}

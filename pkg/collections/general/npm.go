package general

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

//go:embed npm.sh
var npmScript string

// NPM is the module npm.
type NPM struct {
	Name          string `kk:"name" doc:"name of the package. Default: the packages in package.json in path"`
	Path          string `kk:"path,path" doc:"folder to install packages in; created if it does not exist. Needed unless global is set"`
	Version       string `kk:"version" doc:"version of the package. Default: any"`
	Global        bool   `kk:"global" default:"no" doc:"install for the whole host"`
	State         string `kk:"state" default:"present" choices:"present,absent,latest" doc:"desired state; latest is the newest version"`
	Executable    string `kk:"executable,path" doc:"npm command, with arguments after blanks. Default: npm in PATH"`
	IgnoreScripts bool   `kk:"ignore_scripts" default:"no" doc:"do not run scripts of packages"`
	UnsafePerm    bool   `kk:"unsafe_perm" default:"no" doc:"run scripts of packages as root"`
	CI            bool   `kk:"ci" default:"no" doc:"install exactly what the lock file says, in each run (npm ci)"`
	Production    bool   `kk:"production" default:"no" doc:"do not install development dependencies"`
	Registry      string `kk:"registry" doc:"address of the registry. Default: npm's own setting"`
	NoOptional    bool   `kk:"no_optional" default:"no" doc:"do not install optional dependencies"`
	NoBinLinks    bool   `kk:"no_bin_links" default:"no" doc:"do not create links to executables"`
	Force         bool   `kk:"force" default:"no" doc:"overwrite existing files"`
}

func npmSpec() module.Spec {
	return module.Spec{
		Name: "npm", Collection: "community.general",
		Summary: "Installs and removes Node.js packages.",
		Notes: []string{
			"Missing and outdated packages are determined with npm list and npm outdated. With state: latest a package is " +
				"updated as far as package.json allows.",
			"ci: true is always a change, since npm ci reinstalls everything.",
		},
		Examples: []string{"- name: What the program needs\n  npm:\n    path: /srv/app\n    production: true"},
		New:      func() module.Runner { return new(NPM) },
	}
}

// Rules implements schema.Ruled.
func (*NPM) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("path").If("global", false).Says("path must be specified when not using global"),
		schema.Needs("name").If("state", "absent").
			Says("uninstalling a package is only available for named packages"),
		schema.Looks("the name of a package", schema.NoDash, "name"),
		schema.Address("registry", "http", "https"),
	}
}

// Run implements module.Runner.
func (m *NPM) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if m.CI {
		return m.act(ctx, c, "ci")
	}
	installed, complete, err := m.list(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	if m.State == "absent" {
		if _, there := installed[m.Name]; !there {
			return module.Result{}, nil
		}
		return m.act(ctx, c, "uninstall")
	}
	if m.Name != "" {
		version, there := installed[m.Name]
		complete = complete && there && (m.Version == "" || version == m.Version)
	}
	if !complete {
		return m.act(ctx, c, "install")
	}
	if m.State == "latest" {
		if old, err := m.outdated(ctx, c); err != nil || !old {
			return module.Result{}, err
		}
		return m.act(ctx, c, "update")
	}
	return module.Result{}, nil
}

// npmPackage is the output of npm list for a package.
type npmPackage struct {
	Version string
	Missing bool
	Invalid any // a reason as text, or a bool; missing if valid
}

// list returns the installed top-level packages with their versions, and whether package.json requires no others.
func (m *NPM) list(ctx context.Context, c *module.Call) (installed map[string]string, complete bool, err error) {
	text, err := m.ask(ctx, c, "list", "--json", "--depth=0")
	if err != nil || text == "" { // the folder does not exist or, in check mode, npm is missing
		return nil, false, err
	}
	var told struct{ Dependencies map[string]npmPackage }
	if err := json.Unmarshal([]byte(text), &told); err != nil {
		return nil, false, fmt.Errorf("read the output of npm list: %w: %s", err, text)
	}
	installed, complete = map[string]string{}, true
	for name, p := range told.Dependencies {
		if p.Missing || p.Invalid != nil && p.Invalid != false {
			complete = false
			continue
		}
		installed[name] = p.Version
	}
	return installed, complete, nil
}

// outdated reports whether an allowed newer version exists.
func (m *NPM) outdated(ctx context.Context, c *module.Call) (bool, error) {
	words := []string{"outdated", "--json"}
	if m.Name != "" {
		words = append(words, m.Name)
	}
	text, err := m.ask(ctx, c, words...)
	if err != nil || text == "" {
		return false, err
	}
	var told map[string]struct{ Current, Wanted, Code, Summary string }
	if err := json.Unmarshal([]byte(text), &told); err != nil {
		return false, fmt.Errorf("read the output of npm outdated: %w: %s", err, text)
	}
	if e := told["error"]; e.Code != "" {
		return false, fmt.Errorf("npm outdated: %s", e.Summary)
	}
	for _, p := range told {
		if p.Current != p.Wanted {
			return true, nil
		}
	}
	return false, nil
}

// ask runs npm to read its output. Its exit status is not zero if packages are missing or outdated.
func (m *NPM) ask(ctx context.Context, c *module.Call, words ...string) (string, error) {
	a, err := c.Probe(ctx, m.script(words).Flag("ask", true))
	return a.Get("stdout"), err
}

// act runs npm to make changes.
func (m *NPM) act(ctx context.Context, c *module.Call, word string) (module.Result, error) {
	words := []string{word}
	if m.Name != "" && word != "ci" {
		name := m.Name
		if m.Version != "" && word != "uninstall" {
			name += "@" + m.Version
		}
		words = append(words, name)
	}
	r, _, err := c.Do(ctx, m.script(words))
	r.Changed = err == nil
	return r, err
}

func (m *NPM) script(words []string) *hostscript.Script {
	for _, option := range []struct {
		on   bool
		word string
	}{
		{m.Global, "--global"}, {m.Production, "--production"}, {m.IgnoreScripts, "--ignore-scripts"},
		{m.UnsafePerm, "--unsafe-perm"},
		{m.Force, "--force"}, {m.Registry != "", "--registry=" + m.Registry}, {m.NoOptional, "--no-optional"},
		{m.NoBinLinks, "--no-bin-links"},
	} {
		if option.on {
			words = append(words, option.word)
		}
	}
	s := hostscript.New(npmScript, `npm_main "$@"`)
	s.Words = words
	return s.Set("path", m.Path).Set("executable", m.Executable)
}

package general

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed apache2_module.sh
var apacheScript string

// ApacheModule is the module apache2_module.
type ApacheModule struct {
	Name       string `kk:"name,required" doc:"name of the module, as in a2enmod"`
	Identifier string `kk:"identifier" doc:"name of the module in apache2ctl -M. Default: NAME_module, with known exceptions"`
	State      string `kk:"state" default:"present" choices:"present,absent" doc:"enabled, or disabled"`
	Force      bool   `kk:"force" default:"no" doc:"also disable modules that Debian considers essential"`
	IgnoreBad  bool   `kk:"ignore_configcheck" default:"no" doc:"continue if the configuration has errors, with a warning: a module counts as disabled then"`
	WarnMPM    bool   `kk:"warn_mpm_absent" default:"yes" doc:"warn, with ignore_configcheck, if no module for processes (mpm_...) is loaded"`
}

func apacheModuleSpec() module.Spec {
	return module.Spec{
		Name: "apache2_module", Collection: "community.general",
		Summary: "Enables and disables modules of the Apache server (a2enmod, a2dismod).",
		Notes: []string{
			"The server must be restarted: notify a handler.",
			"In check mode, on a host without Apache, an earlier task is assumed to install it.",
		},
		Examples: []string{"- name: The server can rewrite addresses\n  apache2_module:\n    name: rewrite"},
		Returns: []module.Return{
			{Key: "result", Type: "str", Doc: "state of the module"},
			{Key: "rc, stdout, stderr", Type: "any", Doc: "output of a2enmod or a2dismod, if it failed"},
		},
		New: func() module.Runner { return new(ApacheModule) },
	}
}

func isApacheWord(word string) bool { return schema.NoDash(word) && !strings.ContainsAny(word, " \t") }

// Rules implements schema.Ruled.
func (*ApacheModule) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name"),
		schema.Looks("the name of a module", isApacheWord, "name", "identifier"),
	}
}

// Run implements module.Runner.
func (m *ApacheModule) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	identifier := m.Identifier
	if identifier == "" {
		identifier = apacheIdentifier(m.Name)
	}
	s := hostscript.New(apacheScript, "apache_main").Args(m).Set("identifier", identifier)
	a, err := s.Run(ctx, c.Conn, c.Check)
	if a == nil {
		return module.Result{}, err
	}
	state := "enabled"
	if m.State == "absent" {
		state = "disabled"
	}
	if err != nil {
		r := module.Result{Failed: true, Msg: err.Error(), Warnings: a["warn"], Data: value.NewDict()}
		if a.Has("rc") {
			r.Msg = fmt.Sprintf("Failed to set module %s to %s:\n%s\nMaybe the module identifier (%s) was guessed "+
				"incorrectly. Consider setting the \"identifier\" option.",
				m.Name, state, a.Get("stdout"), identifier)
			r.Data = module.Printouts(a)
		}
		return r, nil
	}
	return module.ResultOf(a, "result", fmt.Sprintf("Module %s %s", m.Name, state)), nil
}

var apachePHP = regexp.MustCompile(`^(php\d)\.`)

// apacheIdentifier converts a module name of a2enmod to the name that apache2ctl -M prints.
func apacheIdentifier(name string) string {
	switch {
	case strings.Contains(name, "shib"):
		return "mod_shib"
	case strings.Contains(name, "evasive"):
		return "evasive20_module"
	}
	if php := apachePHP.FindStringSubmatch(name); php != nil {
		return php[1] + "_module"
	}
	return name + "_module"
}

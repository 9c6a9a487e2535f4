package general

import (
	"context"
	_ "embed"
	"regexp"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed locale_gen.sh
var localeGenScript string

// LocaleGen is the module locale_gen.
type LocaleGen struct {
	Name  []string `kk:"name,required" doc:"locales, such as de_DE.UTF-8"`
	State string   `kk:"state" default:"present" choices:"absent,present" doc:"whether they should be available"`
}

func localeGenSpec() module.Spec {
	return module.Spec{
		Name: "locale_gen", Collection: "community.general",
		Summary:  "Generates locales on Debian and Ubuntu.",
		Examples: []string{"- name: Speak German\n  locale_gen:\n    name: de_DE.UTF-8"},
		Returns:  []module.Return{{Key: "name", Type: "list", Doc: "the argument"}},
		New:      func() module.Runner { return new(LocaleGen) },
	}
}

var localeName = regexp.MustCompile(`^[A-Za-z0-9_.@-]+$`)

func isLocale(name string) bool { return localeName.MatchString(name) && name[0] != '-' }

// Rules implements schema.Ruled.
func (*LocaleGen) Rules() schema.Rules {
	return schema.Rules{
		schema.Looks("the name of a locale", isLocale, "name"),
	}
}

// Run implements module.Runner.
func (m *LocaleGen) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	r := module.Result{Msg: "OK"}
	for _, name := range m.Name {
		a, err := hostscript.New(localeGenScript, "locale_gen_main").Set("name", name).Set("state", m.State).Run(ctx,
			c.Conn, c.Check)
		if err != nil {
			return r, err
		}
		r.Changed = r.Changed || a.Changed()
		r.Warnings = append(r.Warnings, a["warn"]...)
	}
	r.Data = value.NewDict("name", value.List(m.Name))
	return r, nil
}

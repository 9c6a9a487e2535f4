package general

import (
	"context"
	_ "embed"
	"path"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

//go:embed sudoers.sh
var sudoersScript string

// Sudoers is the module sudoers.
type Sudoers struct {
	Name       string   `kk:"name,required" doc:"name of the file"`
	State      string   `kk:"state" default:"present" choices:"present,absent" doc:"whether the file should exist"`
	Commands   []string `kk:"commands" doc:"commands that may be run: paths, or ALL. Needed with state: present"`
	User       string   `kk:"user" doc:"user who may run them"`
	Group      string   `kk:"group" doc:"group whose members may run them, instead of user"`
	NoPassword bool     `kk:"nopassword" default:"yes" doc:"do not require a password"`
	SetEnv     bool     `kk:"setenv" default:"no" doc:"the environment may be kept"`
	NoExec     bool     `kk:"noexec" default:"no" doc:"the commands may not start others"`
	Host       string   `kk:"host" default:"ALL" doc:"on which hosts"`
	RunAs      string   `kk:"runas" doc:"as whom. Default: root"`
	Folder     string   `kk:"sudoers_path,path" default:"/etc/sudoers.d" doc:"folder of the file"`
	Validation string   `kk:"validation" default:"detect" choices:"absent,detect,required" doc:"whether visudo checks the rule first: detect does so where it is installed"`
}

func sudoersSpec() module.Spec {
	return module.Spec{
		Name: "sudoers", Collection: "community.general",
		Summary: "Manages a sudo rule in a separate file.",
		Notes:   []string{"sudo ignores files whose name contains a dot or ends in ~. The file gets mode 0440."},
		Examples: []string{"- name: Let the operators look at logs\n  sudoers:\n    name: operators\n" +
			"    group: operators\n    commands: [/usr/bin/journalctl, /usr/bin/tail]"},
		Returns: []module.Return{{Key: "changed", Type: "bool", Doc: "whether the file or its mode was changed"}},
		New:     func() module.Runner { return new(Sudoers) },
	}
}

// Rules implements schema.Ruled.
func (*Sudoers) Rules() schema.Rules {
	return schema.Rules{
		schema.Entries("commands", 1, schema.NoLimit).If("state", "present"),
		schema.Needs("name"),
		schema.Looks("the name of a file", isFileName, "name"),
		schema.AtMostOne("user", "group").If("state", "present"),
		schema.AtLeastOne("user", "group").If("state", "present").Says("one of the following is required: user, group"),
		schema.Needs("commands").If("state", "present"),
		schema.Looks("one line", schema.OneLine, "user", "group", "commands", "host", "runas"),
	}
}

// Run implements module.Runner.
func (m *Sudoers) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	f, err := module.ReadText(ctx, c, path.Join(m.Folder, m.Name))
	if err != nil {
		return module.Result{}, err
	}
	var r module.Result
	if m.State == "absent" {
		f.Remove, f.After = true, ""
		return r, f.Save(ctx, c, module.FileAttrs{}, &r)
	}
	f.After, f.Fresh = m.rule(), "440"
	if f.After != f.Before && m.Validation != "absent" {
		if err := m.validate(ctx, c, f.After); err != nil {
			return r, err
		}
	}
	mode, err := schema.ParseMode("0440")
	if err != nil {
		return r, err
	}
	return r, f.Save(ctx, c, module.FileAttrs{Mode: mode}, &r)
}

func isFileName(name string) bool {
	return name != "." && name != ".." && schema.OneLine(name) && !strings.Contains(name, "/")
}

// rule returns the line of the file: see sudoers(5).
func (m *Sudoers) rule() string {
	who := m.User
	if m.Group != "" {
		who = "%" + m.Group
	}
	var how strings.Builder
	if m.RunAs != "" {
		how.WriteString("(" + m.RunAs + ")")
	}
	for _, tag := range []struct {
		on   bool
		text string
	}{{m.NoPassword, "NOPASSWD:"}, {m.SetEnv, "SETENV:"}, {m.NoExec, "NOEXEC:"}} {
		if tag.on {
			how.WriteString(tag.text)
		}
	}
	return who + " " + m.Host + "=" + how.String() + " " + strings.Join(m.Commands, ", ") + "\n"
}

func (m *Sudoers) validate(ctx context.Context, c *module.Call, rule string) error {
	s := hostscript.New(sudoersScript, "sudoers_validate").Flag("required", m.Validation == "required")
	s.Stdin = strings.NewReader(rule)
	_, err := c.Probe(ctx, s)
	return err
}

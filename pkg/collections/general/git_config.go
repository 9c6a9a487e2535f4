package general

import (
	"context"
	_ "embed"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed git_config.sh
var gitConfigScript string

// gitConfig is the module git_config.
type gitConfig struct {
	Name    string `kk:"name" doc:"the setting, as user.email; needed unless list_all is given"`
	Value   string `kk:"value" doc:"desired value. Without it, the task only returns the current value"`
	State   string `kk:"state" default:"present" choices:"present,absent" doc:"set it, or remove it with all its values"`
	AddMode string `kk:"add_mode" default:"replace-all" choices:"add,replace-all" doc:"for settings with several values: add a value, or replace all of them"`
	Scope   string `kk:"scope" choices:"file,local,global,system" doc:"scope: a file, a repository, the user or the host. Default: system; with list_all, all of them"`
	Repo    string `kk:"repo,path" doc:"folder of the repository; needed for scope local"`
	File    string `kk:"file,path" doc:"the file; needed for scope file"`
	ListAll bool   `kk:"list_all" default:"no" doc:"return all settings"`
}

func gitConfigSpec() module.Spec {
	return module.Spec{
		Name: "git_config", Collection: "community.general",
		Summary: "Manages git settings, or returns them.",
		Notes: []string{
			"The host needs git. A value appears in the process list of the host while git runs: store passwords and " +
				"tokens for a git credential helper instead.",
		},
		Examples: []string{
			"- name: Trust a repository of another user\n  git_config:\n    name: safe.directory\n    value: /srv/app\n" +
				"    scope: system\n    add_mode: add",
			"- name: Set the email address of commits\n  git_config:\n    name: user.email\n    value: deploy@example.org\n" +
				"    scope: file\n    file: /srv/deploy.gitconfig",
		},
		Returns: []module.Return{
			{Key: "config_value", Type: "str", Doc: "the first value of the setting, \"\" without one; when no value is given"},
			{Key: "config_values", Type: "dict", Doc: "all settings, with list_all; of several values the last"},
			{Key: "msg", Type: "str", Doc: "setting changed, no setting to unset, or nothing"},
		},
		New: func() module.Runner { return &gitConfig{} },
	}
}

// Rules implements schema.Ruled.
func (*gitConfig) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("list_all", "name"),
		schema.AtMostOne("list_all", "value"),
		schema.AtLeastOne("list_all", "name"),
		schema.Needs("repo").If("scope", "local"),
		schema.Needs("file").If("scope", "file"),
		schema.Looks("a word that does not begin with a dash", schema.NoDash, "name"),
		schema.Looks("one line", schema.OneLine, "value"),
	}
}

// Run implements module.Runner.
func (m *gitConfig) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(gitConfigScript, "git_config_main").Args(m).Set("scope", m.scope()).Set("repo", m.folder())
	r, a, err := c.Do(ctx, s)
	if err != nil {
		return r, err
	}
	r.Data.Set("msg", r.Msg)
	switch {
	case m.ListAll:
		values := value.NewDict()
		for _, line := range module.Lines(a.Get("all")) {
			name, text, _ := strings.Cut(line, "=")
			values.Set(name, text)
		}
		r.Data.Set("config_values", values)
	case m.State == "present" && m.Value == "":
		first, _, _ := strings.Cut(a.Get("all"), "\n")
		r.Data.Set("config_value", first)
	default:
		before := strings.TrimRight(a.Get("all"), "\n")
		c.Show(&r, m.header(), before+"\n", m.after(before)+"\n")
	}
	return r, nil
}

func (m *gitConfig) scope() string {
	if m.Scope == "" && !m.ListAll {
		return "system"
	}
	return m.Scope
}

// folder returns the working folder of git. It is outside of all repositories, unless the task is about the config
// of one.
func (m *gitConfig) folder() string {
	if m.Scope == "local" || m.ListAll && m.Repo != "" {
		return m.Repo
	}
	return "/"
}

// header returns the name of the setting and of the config that contains it.
func (m *gitConfig) header() string {
	if m.scope() == "file" {
		return m.File + " " + m.Name
	}
	return m.scope() + " " + m.Name
}

// after returns the values of the setting after the change.
func (m *gitConfig) after(before string) string {
	switch {
	case m.State == "absent":
		return ""
	case m.AddMode == "add" && before != "":
		return before + "\n" + m.Value
	}
	return m.Value
}

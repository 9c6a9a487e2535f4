package packages

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed pip.sh
var pipScript string

// Pip is the module pip.
type Pip struct {
	Name         []string `kk:"name" doc:"packages: a name, NAME==VERSION or another specifier, a URL, a file of the host"`
	Version      string   `kk:"version" doc:"version of the one package that name has"`
	Requirements string   `kk:"requirements" doc:"file of the host that lists packages"`
	State        string   `kk:"state" default:"present" choices:"absent,forcereinstall,latest,present" doc:"installed, not installed, as new as there is, or installed again in each run"`
	Virtualenv   string   `kk:"virtualenv,path" doc:"folder of a virtual environment, which is made if it is missing"`
	EnvCommand   string   `kk:"virtualenv_command,path" default:"virtualenv" doc:"the command that makes it, such as python3 -m venv"`
	EnvPython    string   `kk:"virtualenv_python" doc:"the Python in it. Default: the command's own"`
	EnvSite      bool     `kk:"virtualenv_site_packages" default:"no" doc:"the host's packages can be seen in it"`
	ExtraArgs    string   `kk:"extra_args" doc:"further words for pip, separated by blanks; quotes are part of them"`
	Editable     bool     `kk:"editable" default:"no" doc:"install packages so that they can be edited"`
	Chdir        string   `kk:"chdir,path" doc:"folder of the host that pip runs in. Default: that of temporary files"`
	Executable   string   `kk:"executable,path" doc:"the pip to run, instead of the host's pip3"`
	Umask        string   `kk:"umask" doc:"octal umask for what is installed"`
	Break        bool     `kk:"break_system_packages" default:"no" doc:"install among the packages of a system that keeps them itself"`
}

func pipSpec() module.Spec {
	return module.Spec{
		Name:    "pip",
		Summary: "Installs and removes packages of Python.",
		Notes: []string{
			"What a plain name or NAME==VERSION needs is told by pip's list of installed packages; for other specifiers, requirements and state: latest pip itself decides, and in check mode is asked with --dry-run (pip 22.2 and newer).",
		},
		Examples: []string{"- name: A client in its own place\n  pip:\n    name: kk-example\n    virtualenv: /opt/tools\n    virtualenv_command: python3 -m venv\n    extra_args: --no-index --find-links /srv/wheels"},
		Returns: []module.Return{
			{Key: "cmd", Type: "list", Doc: "the words of what was run, if something was"},
			{Key: "stdout", Type: "str", Doc: "what it printed"},
			{Key: "stderr", Type: "str", Doc: "what it printed as errors"},
			{Key: "name, version, requirements, virtualenv, state", Type: "any", Doc: "the arguments"},
		},
		New: func() module.Runner { return new(Pip) },
	}
}

const ambiguousVersion = "'version' argument is ambiguous when installing multiple package distributions. " +
	"Please specify version restrictions next to each package in 'name' argument."

// Rules implements schema.Ruled.
func (*Pip) Rules() schema.Rules {
	return schema.Rules{
		schema.AtLeastOne("name", "requirements"),
		schema.Entries("name", 1, schema.NoLimit).Without("requirements").Says("one of the following is required: name, requirements"),
		schema.AtMostOne("name", "requirements"),
		schema.AtMostOne("executable", "virtualenv"),
		schema.Needs("name").With("version").Says(ambiguousVersion),
		schema.Entries("name", 1, 1).With("version").Says(ambiguousVersion),
		schema.Refuses("version").If("state", "latest").Says("version is incompatible with state=latest"),
		schema.Looks("an octal number", func(umask string) bool { return strings.Trim(umask, "01234567") == "" }, "umask"),
	}
}

// Run implements module.Runner.
func (m *Pip) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	names, err := m.packages()
	if err != nil {
		return module.Result{}, err
	}
	s := hostscript.New(pipScript, `pip_main "$@"`).Args(m)
	s.Words = names
	a, err := s.Run(ctx, c.Conn, c.Check)
	if a == nil {
		return module.Result{}, err
	}
	r := module.ResultOf(a)
	if a.Has("cmd") {
		r.Data.Set("cmd", value.List(a["cmd"]))
	}
	if err != nil {
		r.Failed, r.Changed, r.Msg = true, false, err.Error()
	} else {
		m.tell(r.Data)
	}
	if err == nil || a.Has("stdout") {
		r.Data.Set("stdout", module.Printed(a.Get("stdout")))
		r.Data.Set("stderr", module.Printed(a.Get("stderr")))
	}
	return r, nil
}

// tell adds the arguments.
func (m *Pip) tell(data *value.Dict) {
	data.Set("name", nil)
	if len(m.Name) > 0 {
		data.Set("name", value.List(m.Name))
	}
	data.Set("state", m.State)
	for key, text := range map[string]string{"version": m.Version, "requirements": m.Requirements, "virtualenv": m.Virtualenv} {
		data.Set(key, nil)
		if text != "" {
			data.Set(key, text)
		}
	}
}

// packages are the words for pip.
func (m *Pip) packages() ([]string, error) {
	names := append([]string{}, joinSpecifiers(m.Name)...)
	for i, n := range names {
		if n == "" || strings.HasPrefix(n, "-") || strings.ContainsAny(n, "\r\n\x00") {
			return nil, fmt.Errorf("%q is not the name of a package", n)
		}
		if m.Version != "" {
			names[i] = n + "==" + m.Version
		}
	}
	return names, nil
}

// joinSpecifiers puts together what the commas of "a>=1,<2" took apart.
func joinSpecifiers(names []string) []string {
	var out []string
	for _, n := range names {
		if len(out) > 0 && n != "" && strings.ContainsRune("<>=!~", rune(n[0])) {
			out[len(out)-1] += "," + n
			continue
		}
		out = append(out, n)
	}
	return out
}

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
	Name         []string `kk:"name" doc:"packages: a name, NAME==VERSION or another specifier, a URL, or a file on the host"`
	Version      string   `kk:"version" doc:"version of the package, if name has exactly one"`
	Requirements string   `kk:"requirements" doc:"requirements file on the host"`
	State        string   `kk:"state" default:"present" choices:"absent,forcereinstall,latest,present" doc:"desired state; latest is the newest version, forcereinstall reinstalls in each run"`
	Virtualenv   string   `kk:"virtualenv,path" doc:"folder of a virtual environment; it is created if it does not exist"`
	EnvCommand   string   `kk:"virtualenv_command,path" default:"virtualenv" doc:"command to create the virtual environment, such as python3 -m venv"`
	EnvPython    string   `kk:"virtualenv_python" doc:"Python interpreter of the virtual environment. Default: chosen by the command"`
	EnvSite      bool     `kk:"virtualenv_site_packages" default:"no" doc:"let the virtual environment use packages of the host"`
	ExtraArgs    string   `kk:"extra_args" doc:"additional arguments of pip, separated by blanks; quotes have no special meaning"`
	Editable     bool     `kk:"editable" default:"no" doc:"install packages in editable mode"`
	Chdir        string   `kk:"chdir,path" doc:"folder on the host to run pip in. Default: the folder for temporary files"`
	Executable   string   `kk:"executable,path" doc:"pip to run. Default: pip3 of the host"`
	Umask        string   `kk:"umask" doc:"umask for installed files, octal"`
	Break        bool     `kk:"break_system_packages" default:"no" doc:"allow changes of packages that the system's package manager owns"`
}

func pipSpec() module.Spec {
	return module.Spec{
		Name:    "pip",
		Summary: "Installs and removes Python packages.",
		Notes: []string{
			"A plain name and NAME==VERSION are compared with the list of installed packages; other specifiers, " +
				"requirements and state: latest are left to pip, and in check mode to pip --dry-run (22.2 and newer).",
		},
		Examples: []string{"- name: Install a client in a virtual environment\n  pip:\n    name: kk-example\n" +
			"    virtualenv: /opt/tools\n    virtualenv_command: python3 -m venv\n" +
			"    extra_args: --no-index --find-links /srv/wheels"},
		Returns: []module.Return{
			{Key: "cmd", Type: "list", Doc: "the command that was run, if any"},
			{Key: "stdout", Type: "str", Doc: "output of pip"},
			{Key: "stderr", Type: "str", Doc: "error output"},
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
		schema.Entries("name", 1, schema.NoLimit).Without("requirements").Says("one of the following is required: name, " +
			"requirements"),
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
		m.addArgs(r.Data)
	}
	if err == nil || a.Has("stdout") {
		r.Data.Set("stdout", module.Printed(a.Get("stdout")))
		r.Data.Set("stderr", module.Printed(a.Get("stderr")))
	}
	return r, nil
}

// addArgs adds the arguments.
func (m *Pip) addArgs(data *value.Dict) {
	data.Set("name", nil)
	if len(m.Name) > 0 {
		data.Set("name", value.List(m.Name))
	}
	data.Set("state", m.State)
	for key, text := range map[string]string{"version": m.Version, "requirements": m.Requirements,
		"virtualenv": m.Virtualenv} {
		data.Set(key, nil)
		if text != "" {
			data.Set(key, text)
		}
	}
}

// packages are the package arguments of pip.
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

// joinSpecifiers rejoins specifiers that the commas of "a>=1,<2" split.
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

package general

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/module/exec"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// makeModule is the module make.
type makeModule struct {
	Chdir   string      `kk:"chdir,required,path" doc:"folder on the host to run in"`
	Target  *string     `kk:"target" doc:"target to build. Default: the first one in the makefile"`
	Targets []string    `kk:"targets" doc:"list of targets to build"`
	Params  *value.Dict `kk:"params" doc:"make variables by name; one without a value is passed as a bare name, like a target"`
	File    *string     `kk:"file,path" doc:"path of the makefile. Default: the one in the folder"`
	Jobs    *int        `kk:"jobs" doc:"number of parallel jobs"`
	Make    string      `kk:"make,path" doc:"make command. Default: gmake, or make if it does not exist"`
}

func makeSpec() module.Spec {
	return module.Spec{
		Name: "make", Collection: "community.general",
		Summary: "Builds a target of a makefile, unless it is up to date.",
		Notes: []string{
			"`make -q` decides whether a target is up to date, also in check mode: it runs no recipes, but commands that the " +
				"makefile runs while it is read. A phony target never is.",
		},
		Examples: []string{
			"- name: Build the app\n  make:\n    chdir: /srv/app\n    target: app\n    params:\n      PREFIX: /usr",
		},
		Returns: []module.Return{
			{Key: "command", Type: "str", Doc: "the command line, which is run in chdir"},
			{Key: "stdout", Type: "str", Doc: "output of make"},
			{Key: "stderr", Type: "str", Doc: "error output"},
			{Key: "cmd, rc", Type: "raw", Doc: "if make failed: the command line, and its exit status"},
			{Key: "chdir, file, jobs, params, target, targets", Type: "raw", Doc: "the arguments"},
		},
		New: func() module.Runner { return &makeModule{} },
	}
}

// Rules implements schema.Ruled.
func (*makeModule) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("target", "targets"),
	}
}

// Run implements module.Runner.
func (m *makeModule) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	program, err := m.program(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	words := append([]string{program}, m.words()...)
	line := "cd " + exec.Expandable(m.Chdir, false) + " || exit 2\n"
	o, err := exec.Execute(ctx, c, connector.Command{Line: line + "exec " + shell.Join(append(words, "-q")...),
		Probe: true})
	stale := o.RC != 0
	if err == nil && stale && !c.Check {
		o, err = exec.Execute(ctx, c, connector.Command{Line: line + "exec " + shell.Join(words...)})
	}
	if err != nil {
		return module.Result{Warnings: o.Warnings}, err
	}
	if o.RC != 0 && !c.Check {
		return module.Result{Failed: true, Msg: strings.TrimRight(o.Stderr, "\r\n"), Warnings: o.Warnings,
			Data: o.Describe(value.NewDict(
				"cmd", shell.Join(words...), "rc", o.RC, "stdout", o.Stdout, "stderr", o.Stderr))}, nil
	}
	return module.Result{Changed: stale, Warnings: o.Warnings, Data: o.Describe(value.NewDict(
		"chdir", m.Chdir, "command", shell.Join(words...), "file", orNull(m.File), "jobs", orNull(m.Jobs), "params",
		orNull(m.Params), "target", orNull(m.Target), "targets", listOrNull(m.Targets),
		"stdout", strings.TrimRight(o.Stdout, "\r\n"), "stderr", strings.TrimRight(o.Stderr, "\r\n"),
	))}, nil
}

// program returns the path of make on the host. It also checks that the folder exists.
func (m *makeModule) program(ctx context.Context, c *module.Call) (string, error) {
	line := "cd " + exec.Expandable(m.Chdir, false) + " 2>/dev/null || { echo folder; exit; }\n" +
		"command -v gmake || command -v make"
	if m.Make != "" {
		line = strings.ReplaceAll(line, "command -v gmake || command -v make", "command -v "+exec.Expandable(m.Make, false))
	}
	out, _, err := exec.Ask(ctx, c, line)
	switch out = strings.TrimSpace(out); {
	case err != nil:
		return "", err
	case out == "folder":
		return "", fmt.Errorf("folder %s does not exist on the host", m.Chdir)
	case out == "":
		//nolint:staticcheck // the text users know
		return "", errors.New("Failed to find required executable \"make\" on the host: install its package first")
	}
	return out, nil
}

func (m *makeModule) words() []string {
	var words []string
	if m.Jobs != nil {
		words = append(words, "-j", strconv.Itoa(*m.Jobs))
	}
	if m.File != nil {
		words = append(words, "-f", *m.File)
	}
	if m.Target != nil {
		words = append(words, *m.Target)
	}
	words = append(words, m.Targets...)
	for name, text := range m.Params.All() {
		if text == nil {
			words = append(words, value.Str(name))
			continue
		}
		words = append(words, value.Str(name)+"="+value.Str(text))
	}
	return words
}

// orNull returns an argument, or null if it was not set.
func orNull[T any](arg *T) any {
	if arg == nil {
		return nil
	}
	if d, is := any(arg).(*value.Dict); is {
		return d
	}
	return *arg
}

func listOrNull(words []string) any {
	if words == nil {
		return nil
	}
	return value.List(words)
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubekey/pkg/engine"
	"kubekey/pkg/expr"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// quietEngine returns an engine that runs nothing. It only provides the variables of hosts.
func (a *app) quietEngine(s *session) *engine.Engine {
	return engine.New(engine.Options{Project: a.project(s, nil, nil), Record: a.record(s)})
}

// project returns the content that a session has loaded.
func (a *app) project(s *session, l *project.Linker, books []*project.Playbook) engine.Project {
	return engine.Project{
		Inventory: s.inventory, Linker: l, Templates: s.templates, Tree: a.tree, Extra: s.extra, Plays: a.playDefaults(books),
	}
}

// record returns the run's ID, its work folder, the version of kk and the secrets to hide.
func (a *app) record(s *session) engine.Record {
	return engine.Record{RunID: s.id, WorkDir: s.workDir, Version: version, Redact: a.secret}
}

// viewFlags select the variables that a command shows.
type viewFlags struct {
	inputs
	playbook string
}

func (v *viewFlags) flags(f *pflag.FlagSet) {
	v.inputs.flags(f)
	f.StringVar(&v.playbook, "playbook", "",
		"evaluate in the context of this playbook (a file or a built-in one): with its project's config and defaults, its "+
			"catalog, and the variables next to it (default: a playbook in the current folder)")
}

// openView opens a session with the config and the catalog of a playbook's project. It returns the folder of the
// playbook, too.
func (a *app) openView(ctx context.Context, in *viewFlags) (*session, string, error) {
	s, err := a.begin(ctx, &in.inputs)
	if err != nil {
		return nil, "", err
	}
	if in.playbook != "" {
		books, _, err := a.load(s, project.Selection{}, []string{in.playbook})
		if err != nil {
			return nil, "", err
		}
		return s, source.Dir(books[0].Path), nil
	}
	dir, err := filepath.Abs(".")
	if err != nil {
		return nil, "", err
	}
	a.configure(s, []string{filepath.Join(dir, "playbook.yaml")})
	if s.diagnostics.Err() != nil {
		return nil, "", &exitError{engine.ExitInput, s.diagnostics}
	}
	return s, dir, nil
}

// here is the current folder.
const here = ""

// hostView returns the variables of a host as a playbook in a folder sees them.
func (a *app) hostView(ctx context.Context, s *session, host, dir string) (*vars.View, error) {
	if dir == here {
		var err error
		if dir, err = filepath.Abs("."); err != nil {
			return nil, err
		}
	}
	if host == "" {
		host = "localhost"
	}
	if !s.inventory.Has(host) && host != "localhost" {
		help := source.DidYouMean(host, s.inventory.Hosts())
		return nil, &exitError{engine.ExitError,
			source.Errorf(source.Pos{}, "the inventory has no host %q", host).WithHelp("%s", help)}
	}
	if err := s.inventory.LoadVars(dir).Err(); err != nil {
		return nil, &exitError{engine.ExitInput, err}
	}
	return a.quietEngine(s).View(ctx, host, nil, dir), nil
}

func (a *app) evalCommand() *cobra.Command {
	in := &viewFlags{}
	var host, file string
	cmd := &cobra.Command{
		Use:   "eval [-H HOST] EXPRESSION | --file TEMPLATE",
		Short: "Evaluate an expression or a template with a host's variables",
		Example: `  kk eval "[1, 2, 3] | sum"
  kk eval -i inventory.yaml -H node1 "groups['etcd'] | join(',')"
  kk eval -i inventory.yaml -H node1 --file templates/app.conf.j2
  kk eval -c config.yaml --playbook playbooks/create_cluster.yaml catalog.components.etcd.version`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (file == "") == (len(args) == 0) {
				return usage("specify one expression, or --file TEMPLATE")
			}
			s, dir, err := a.openView(cmd.Context(), in)
			if err != nil {
				return err
			}
			v, err := a.hostView(cmd.Context(), s, host, dir)
			if err != nil {
				return err
			}
			if file != "" {
				return a.evalFile(cmd.Context(), s, v, file)
			}
			return a.evalText(cmd.Context(), s, v, strings.Join(args, " "))
		},
	}
	in.flags(cmd.Flags())
	cmd.Flags().StringVarP(&host, "host", "H", "", "host whose variables are used (default localhost)")
	cmd.Flags().StringVar(&file, "file", "", "template to render")
	return cmd
}

// evalText evaluates an expression, or a text with {{ }}.
func (a *app) evalText(ctx context.Context, s *session, v *vars.View, text string) error {
	at := source.Pos{File: source.NewFile("expression", []byte(text)), Line: 1, Col: 1}
	got, err := evaluate(ctx, s.templates, v, text, at)
	if err != nil {
		return evalError(err)
	}
	return a.printValue(got)
}

func evaluate(ctx context.Context, e *template.Engine, v *vars.View, text string, at source.Pos) (any, error) {
	if strings.Contains(text, "{{") || strings.Contains(text, "{%") {
		d, err := e.Data(text, at)
		if err != nil {
			return nil, err
		}
		return d.Value(ctx, v)
	}
	x, err := e.Env().Compile(text, at, expr.Escaped)
	if err != nil {
		return nil, err
	}
	return x.Eval(ctx, v)
}

func (a *app) printValue(v any) error {
	v, err := value.Force(v)
	if err != nil {
		return evalError(err)
	}
	if text, ok := v.(string); ok {
		_, err := fmt.Fprintln(a.data(), a.secret.Text(text))
		return err
	}
	text, err := value.JSON(v, value.JSONOptions{Indent: 2})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Out.JSON(), a.secret.Text(text))
	return err
}

func (a *app) evalFile(ctx context.Context, s *session, v *vars.View, file string) error {
	abs, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	t, err := s.templates.File(abs, template.FileOptions{})
	if err != nil {
		return evalError(err)
	}
	text, err := t.Text(ctx, v)
	if err != nil {
		return evalError(err)
	}
	_, err = fmt.Fprint(a.data(), a.secret.Text(text))
	return err
}

// evalError converts an error of an expression: exit code 1, shown with its position.
func evalError(err error) error {
	var d *source.Diagnostic
	if errors.As(err, &d) {
		return &exitError{engine.ExitError, source.Diagnostics{d}}
	}
	return &exitError{engine.ExitError, err}
}

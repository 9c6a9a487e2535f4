package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kubekey/pkg/engine"
	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// quietEngine makes an engine that runs nothing: for the variables of hosts.
func (a *app) quietEngine(s *session) *engine.Engine {
	return engine.New(engine.Options{
		Inventory: s.inventory, Templates: s.templates, Tree: a.tree, Extra: s.extra, RunID: s.id, WorkDir: s.workDir, Redact: a.secret,
		Plays: a.playDefaults(nil),
	})
}

// hostView is the variables of a host as a playbook of the current folder sees them.
func (a *app) hostView(ctx context.Context, s *session, host string) (*vars.View, error) {
	if host == "" {
		host = "localhost"
	}
	if !s.inventory.Has(host) && host != "localhost" {
		help := source.DidYouMean(host, s.inventory.Hosts())
		return nil, &exitError{engine.ExitError, source.Errorf(source.Pos{}, "the inventory has no host %q", host).WithHelp("%s", help)}
	}
	dir, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	if err := s.inventory.LoadVars(dir).Err(); err != nil {
		return nil, &exitError{engine.ExitUnreachable, err}
	}
	return a.quietEngine(s).View(ctx, host, nil, dir), nil
}

func (a *app) evalCommand() *cobra.Command {
	in := &inputs{}
	var host, file string
	cmd := &cobra.Command{
		Use:   "eval [-H HOST] EXPRESSION | --file TEMPLATE",
		Short: "Evaluate an expression or a template with a host's variables",
		Example: `  kk eval "[1, 2, 3] | sum"
  kk eval -i inventory.yaml -H node1 "groups['etcd'] | join(',')"
  kk eval -i inventory.yaml -H node1 --file templates/app.conf.j2`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (file == "") == (len(args) == 0) {
				return usage("give one expression, or --file TEMPLATE")
			}
			s, err := a.open(cmd.Context(), in)
			if err != nil {
				return err
			}
			v, err := a.hostView(cmd.Context(), s, host)
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
		fmt.Fprintln(a.Out, a.secret.Text(text))
		return nil
	}
	text, err := value.JSON(v, value.JSONOptions{Indent: 2})
	if err != nil {
		return err
	}
	fmt.Fprintln(a.Out, a.secret.Text(text))
	return nil
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
	_, err = fmt.Fprint(a.Out, a.secret.Text(text))
	return err
}

// evalError is an error of an expression: exit 1, shown with its place.
func evalError(err error) error {
	var d *source.Diagnostic
	if errors.As(err, &d) {
		return &exitError{engine.ExitError, source.Diagnostics{d}}
	}
	return &exitError{engine.ExitError, err}
}

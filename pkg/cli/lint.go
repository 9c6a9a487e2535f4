package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kubekey/pkg/engine"
	"kubekey/pkg/lint"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
)

func (a *app) lintCommand() *cobra.Command {
	in := &inputs{}
	format := ""
	cmd := &cobra.Command{
		Use:   "lint [PLAYBOOK|FOLDER...]",
		Short: "Check playbooks without running them; warnings are failures",
		Long: "Check playbooks without running them: keywords, modules, arguments, expressions, roles, files and " +
			"handlers, and valid constructs that are likely to fail or surprise at run time. " +
			"Each of these rules has an id; a comment `# noqa: ID` on the line, or on the first line of the task, silences " +
			"it. " +
			"A folder stands for all playbooks in it and below it. Without arguments the current folder is checked. " +
			"With an inventory (-i) more undefined variables are found. The exit code is 4 when there is an error or a warning.",
		Example: `  kk lint
  kk lint site.yml -i inventory.yaml
  kk lint -o sarif > kk.sarif`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"text", "json", "sarif"}, format) {
				return usage("--output must be text, json or sarif, not %q", format)
			}
			if len(args) == 0 {
				args = []string{"."}
			}
			paths, err := a.playbooksIn(args)
			if err != nil {
				return err
			}
			found, err := a.lint(cmd.Context(), in, paths)
			if err != nil {
				return err
			}
			if err := a.findings(format, paths, found); err != nil {
				return err
			}
			if len(found) > 0 {
				return exit(engine.ExitInput)
			}
			return nil
		},
	}
	in.flags(cmd.Flags())
	cmd.Flags().StringVarP(&format, "output", "o", "text",
		"output format: text, json, sarif (for code hosting sites and editors)")
	return cmd
}

// lint links playbooks and applies the rules to them.
func (a *app) lint(ctx context.Context, in *inputs, paths []string) ([]lint.Finding, error) {
	in.playbooks, in.watch = paths, &lint.Watch{}
	s, err := a.open(ctx, in)
	if err != nil {
		return nil, err
	}
	a.configure(s, paths)
	o := a.linkerOptions(s, project.Selection{Tags: []string{"all", "never"}})
	o.Seen = in.watch.Task
	linker := project.New(o)
	ds := s.diagnostics
	input := lint.Input{
		Watch: in.watch, Tree: a.tree, Templates: s.templates, Modules: s.modules,
		Known: s.templates.Env().FunctionNames(), Complete: len(in.inventories) > 0,
	}
	for _, p := range paths {
		pb, more := linker.Playbook(p)
		ds = append(ds, more...)
		input.Plays = append(input.Plays, pb.Plays...)
		ds = append(ds, s.inventory.LoadVars(filepath.Dir(p))...)
	}
	e, host := a.quietEngine(s), "localhost"
	for i, h := range s.inventory.Hosts() {
		if i == 0 {
			host = h
		}
		input.Known = append(input.Known, e.View(ctx, h, nil, filepath.Dir(paths[0])).Names()...)
	}
	input.Known = append(input.Known, e.View(ctx, host, nil, filepath.Dir(paths[0])).Names()...)
	input.Render = func(t *project.Task, tmpl *template.Template) (string, error) {
		return tmpl.Text(ctx, e.TaskView(ctx, host, t))
	}
	return lint.Sort(append(lint.Linked(ds), lint.Check(input)...)), nil
}

func (a *app) findings(format string, paths []string, found []lint.Finding) error {
	switch format {
	case "json":
		return lint.WriteJSON(a.Out.JSON(), found)
	case "sarif":
		return lint.WriteSARIF(a.Out.JSON(), version, found)
	}
	var ds source.Diagnostics
	for _, f := range found {
		d := *f.Diagnostic
		if f.Rule != "" {
			d.Summary += " [" + f.Rule + "]"
		}
		ds.Add(&d)
	}
	a.diagnostics(ds)
	fmt.Fprintf(a.Out, "%s, %s, %s\n", count(len(paths), "playbook"), count(len(ds.Errors()), "error"),
		count(len(ds.Warnings()), "warning"))
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// playbooksIn lists the playbooks that the arguments refer to.
func (a *app) playbooksIn(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil || !info.IsDir() {
			p, err := a.findPlaybook(arg)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
			continue
		}
		found, err := a.searchPlaybooks(arg)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, usage("no playbook found in %s", strings.Join(args, ", "))
	}
	return out, nil
}

// searchPlaybooks finds the files below a folder that are lists of plays.
func (a *app) searchPlaybooks(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != dir && (strings.HasPrefix(name, ".") || name == "roles" || name == "group_vars" || name == "host_vars" ||
				name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(name); ext != ".yml" && ext != ".yaml" {
			return nil
		}
		abs, err := filepath.Abs(p)
		if err == nil && a.looksLikePlaybook(abs) {
			out = append(out, abs)
		}
		return err
	})
	return out, err
}

// looksLikePlaybook reports whether a file is a list whose elements have hosts or import a playbook. A file with
// invalid YAML counts if its text looks like a playbook.
func (a *app) looksLikePlaybook(path string) bool {
	text, err := a.tree.Raw().Read(path, source.MaxFile)
	if err != nil {
		return false
	}
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimLeft(line, "- ")
		if strings.HasPrefix(line, "hosts:") || strings.HasPrefix(line, "import_playbook:") {
			return strings.Contains(string(text), "- ") && !strings.Contains(string(text), "\nall:") &&
				!strings.HasPrefix(string(text), "all:")
		}
	}
	return false
}

package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kubekey/pkg/engine"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
)

func (a *app) lintCommand() *cobra.Command {
	in := &inputs{}
	cmd := &cobra.Command{
		Use:   "lint [PLAYBOOK|FOLDER...]",
		Short: "Check playbooks without running them; warnings count",
		Long: "Check playbooks without running them: keywords, modules, arguments, expressions, roles, files and handlers. " +
			"A folder means all playbooks in it (files of plays, searched below it as well). Without arguments the current folder is checked. Exit code 4 when an error or a warning was found.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			paths, err := a.playbooksIn(args)
			if err != nil {
				return err
			}
			in.playbooks = paths
			s, err := a.open(cmd.Context(), in)
			if err != nil {
				return err
			}
			linker := a.linker(s, project.Selection{Tags: []string{"all", "never"}})
			ds := s.warnings
			for _, p := range paths {
				_, more := linker.Playbook(p)
				ds = append(ds, more...)
			}
			ds = ds.Sort()
			a.diagnostics(ds)
			fmt.Fprintf(a.Out, "%s, %s, %s\n", count(len(paths), "playbook"), count(len(ds.Errors()), "error"), count(len(ds.Warnings()), "warning"))
			if len(ds) > 0 {
				return exit(engine.ExitUnreachable)
			}
			return nil
		},
	}
	in.flags(cmd.Flags())
	return cmd
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// playbooksIn lists the playbooks that the arguments mean.
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
			if p != dir && (strings.HasPrefix(name, ".") || name == "roles" || name == "group_vars" || name == "host_vars" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(name); ext != ".yml" && ext != ".yaml" {
			return nil
		}
		abs, err := filepath.Abs(p)
		if err == nil && looksLikePlaybook(abs) {
			out = append(out, abs)
		}
		return err
	})
	return out, err
}

// looksLikePlaybook reports whether a file is a list whose elements have hosts
// or import a playbook. A file that is no YAML counts if its text says so.
func looksLikePlaybook(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil || len(text) > source.MaxFile {
		return false
	}
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimLeft(line, "- ")
		if strings.HasPrefix(line, "hosts:") || strings.HasPrefix(line, "import_playbook:") {
			return strings.Contains(string(text), "- ") && !strings.Contains(string(text), "\nall:") && !strings.HasPrefix(string(text), "all:")
		}
	}
	return false
}

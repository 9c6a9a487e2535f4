package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kubekey/pkg/engine"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
)

func needPlaybook(cmd *cobra.Command, args []string) error {
	if len(args) == 0 && !cmd.Flags().Changed("resume") {
		return usage("specify a playbook: kk run site.yml -i inventory.yaml")
	}
	return nil
}

// findPlaybook finds a playbook: a file, or a builtin playbook.
func (a *app) findPlaybook(name string) (string, error) {
	abs, err := source.Abs(name)
	if err != nil {
		return "", err
	}
	if a.tree.IsFile(abs) {
		return abs, nil
	}
	if a.tree.IsDir(abs) {
		return "", &exitError{engine.ExitError, a.playbookIsFolder(name, abs)}
	}
	if b := source.Join(source.Builtin+"/", name); !filepath.IsAbs(name) && a.tree.IsFile(b) {
		return b, nil
	}
	var known []string
	if carried, err := a.tree.Glob(source.Builtin + "/playbooks/*.yaml"); err == nil {
		for _, c := range carried {
			known = append(known, strings.TrimPrefix(c, source.Builtin+"/"), c)
		}
	}
	if beside, err := filepath.Glob(filepath.Join(filepath.Dir(abs), "*.y*ml")); err == nil {
		for _, b := range beside {
			known = append(known, filepath.Join(filepath.Dir(name), filepath.Base(b)))
		}
	}
	d := source.Errorf(source.Pos{}, "the playbook: %s could not be found", name).WithHelp("%s",
		source.DidYouMean(name, known))
	return "", &exitError{engine.ExitError, d}
}

// playbookIsFolder returns the error for a folder given as a playbook. The hint names a playbook in the folder.
func (a *app) playbookIsFolder(name, abs string) *source.Diagnostic {
	d := source.Errorf(source.Pos{}, "the playbook: %s is a folder", name)
	inside, err := filepath.Glob(filepath.Join(abs, "*.y*ml"))
	if i := slices.IndexFunc(inside, a.looksLikePlaybook); err == nil && i >= 0 {
		return d.WithHelp("specify a file in it, such as %s", filepath.Join(name, filepath.Base(inside[i])))
	}
	return d.WithHelp("specify a file; no file in the folder is a playbook")
}

func (a *app) findPlaybooks(names []string) ([]string, error) {
	paths := make([]string, len(names))
	for i, name := range names {
		var err error
		if paths[i], err = a.findPlaybook(name); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// load links playbooks. Problems are shown, and errors end the command. The problems include the results of
// inspect.
func (a *app) load(
	s *session, sel project.Selection, names []string, inspect ...func([]*project.Playbook) source.Diagnostics,
) ([]*project.Playbook, *project.Linker, error) {
	paths, err := a.findPlaybooks(names)
	if err != nil {
		return nil, nil, err
	}
	configured := a.configure(s, paths)
	out, l, ds := a.link(s, sel, paths)
	if imported := playbooksOf(out); !configured && a.configure(s, imported) {
		out, l, ds = a.link(s, sel, paths) // now that the variables are known
	}
	ds = append(s.diagnostics, ds...)
	for _, look := range inspect {
		ds = addNew(ds, look(out))
	}
	if ds.Err() != nil {
		return nil, nil, &exitError{engine.ExitInput, ds}
	}
	if len(ds) > 0 {
		a.diagnostics(ds)
	}
	return out, l, nil
}

// addNew adds the diagnostics of more that ds does not contain yet.
func addNew(ds, more source.Diagnostics) source.Diagnostics {
	for _, d := range more {
		if !slices.ContainsFunc(ds, func(o *source.Diagnostic) bool { return o.Pos == d.Pos && o.Summary == d.Summary }) {
			ds = append(ds, d)
		}
	}
	return ds
}

func (a *app) link(s *session, sel project.Selection, paths []string) (out []*project.Playbook, l *project.Linker,
	ds source.Diagnostics) {
	l = a.linker(s, sel)
	for _, path := range paths {
		pb, more := l.Playbook(path)
		ds = append(ds, more...)
		out = append(out, pb)
	}
	return out, l, ds
}

// playbooksOf lists the files that the plays come from, including imported playbooks.
func playbooksOf(books []*project.Playbook) []string {
	var out []string
	for _, pb := range books {
		if pb == nil {
			continue
		}
		for _, p := range pb.Plays {
			if file := source.Join(p.Dir, "playbook.yaml"); !slices.Contains(out, file) {
				out = append(out, file)
			}
		}
	}
	return out
}

// isBuiltin reports whether the playbooks of a run are builtin.
func isBuiltin(books []*project.Playbook) bool {
	return len(books) > 0 && books[0].Bundled
}

package project

import (
	"errors"
	"fmt"
	"strings"

	"kubekey/pkg/source"
	"kubekey/pkg/template"
)

// Find returns the path of a file of the control node that the task names: an
// absolute one as it is, a relative one from the folders of its search path,
// in DIR/KIND first. kind is "files", "templates" or "vars".
func (t *Task) Find(tree source.Tree, kind, name string) (string, error) {
	if source.IsAbs(name) {
		if _, err := tree.Stat(name); err == nil {
			return source.Clean(name), nil
		}
		return "", fmt.Errorf("Could not find or access '%s'", name)
	}
	var searched []string
	seen := map[string]bool{}
	for _, dir := range t.SearchPath {
		for _, p := range []string{source.Join(dir, kind+"/"+name), source.Join(dir, name)} {
			if seen[p] {
				continue
			}
			seen[p] = true
			if _, err := tree.Stat(p); err == nil {
				return p, nil
			}
			searched = append(searched, p)
		}
	}
	return "", fmt.Errorf("Could not find or access '%s'\nSearched in:\n\t%s on the Ansible Controller.", name, strings.Join(searched, "\n\t"))
}

// checkTemplate compiles the template file that a task names literally. One
// that is not there may be made by an earlier task.
func (l *Linker) checkTemplate(t *Task, ds *source.Diagnostics) {
	if t.Spec.Template == "" || t.hasDelimiters() {
		return
	}
	arg, ok := t.Args.Member(t.Spec.Template)
	if !ok {
		return
	}
	v, _ := arg.Static()
	name, ok := v.(string)
	if !ok || name == "" {
		return
	}
	path, err := t.Find(l.Tree, "templates", name)
	if err != nil || !l.Tree.IsFile(path) {
		return
	}
	_, err = l.Engine.File(path, template.FileOptions{})
	for _, e := range flattened(err) {
		ds.Add(diagnostic(e, t.At))
	}
}

// hasDelimiters reports that the file is read with marks of its own.
func (t *Task) hasDelimiters() bool {
	for _, part := range []string{"block", "variable", "comment"} {
		for _, end := range []string{"start", "end"} {
			if _, ok := t.Args.Member(part + "_" + end + "_string"); ok {
				return true
			}
		}
	}
	return false
}

// flattened lists the errors that are joined in one.
func flattened(err error) []error {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, flattened(e)...)
	}
	return out
}

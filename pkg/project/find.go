package project

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/playbook"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
)

// Find returns the path of a file of the control node that the task names. An absolute path is returned unchanged. A
// relative one is searched for in the directories of the task's search path, in DIR/KIND first. kind is "files",
// "templates" or "vars".
func (t *Task) Find(tree source.Tree, kind, name string) (string, error) {
	if source.IsAbs(name) {
		if _, err := tree.Stat(name); err == nil {
			return source.Clean(name), nil
		}
		return "", fmt.Errorf("Could not find or access '%s'", name)
	}
	searched := t.Places(kind, name)
	for _, p := range searched {
		if _, err := tree.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("Could not find or access '%s'\nSearched in:\n\t%s on the Ansible Controller.", name,
		strings.Join(searched, "\n\t"))
}

// Places returns the paths that Find checks, in order.
func (t *Task) Places(kind, name string) []string {
	if source.IsAbs(name) {
		return []string{source.Clean(name)}
	}
	var out []string
	for _, dir := range t.SearchPath {
		for _, p := range []string{source.Join(dir, kind+"/"+name), source.Join(dir, name)} {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// FileName is a file of the control node that a task names literally.
type FileName struct {
	Kind, Name string // as in Find
	At         source.Pos
	Lookup     bool // a lookup reads it, not the task's module
	ForLoop    bool // it is read once, before the loop
}

// fileNames returns the files that the task's arguments name, according to the struct tags of its module, and the
// files that its arguments and its loop look up.
func (l *Linker) fileNames(t *Task) []FileName {
	out := loopFiles(t)
	if t.Args == nil {
		return out
	}
	out = append(out, lookedUp(t.Args, false)...)
	for _, a := range l.table(t.Spec).args {
		if a.File == "" || l.isAway(t, a) {
			continue
		}
		kind, ofWord := strings.CutPrefix(a.File, "word ")
		for _, name := range t.literals(a) {
			if ofWord {
				name = firstWord(name)
			}
			if isFileName(name) {
				out = append(out, FileName{Kind: kind, Name: name, At: t.argumentAt(a)})
			}
		}
	}
	return out
}

func lookedUp(d *template.Data, forLoop bool) []FileName {
	var out []FileName
	for _, f := range d.Files() {
		if isFileName(f.Name) {
			out = append(out, FileName{f.Dir, f.Name, f.Pos, true, forLoop})
		}
	}
	return out
}

// loopFiles returns the files that with_file and the lookups of the loop name.
func loopFiles(t *Task) []FileName {
	if t.Loop == nil || t.Loop.Items == nil {
		return nil
	}
	out := lookedUp(t.Loop.Items, true)
	kinds := map[string]string{"file": "files", "unvault": "files", "template": "templates"}
	if kind := kinds[t.Loop.Lookup]; kind != "" {
		for _, v := range t.Loop.Syntax.Items.Elements() {
			if name := v.Text(); isFileName(name) {
				out = append(out, FileName{kind, name, v.TextAt(), true, true})
			}
		}
	}
	return out
}

// isAway reports whether another argument specifies, or can specify, that the named file is not on the control node.
func (l *Linker) isAway(t *Task, a schema.Arg) bool {
	if len(a.Away) > 0 && mayGive(t.Attrs.ModuleDefaults, t.Spec) {
		return true
	}
	for _, name := range a.Away {
		name, negated := strings.CutPrefix(name, "!")
		for _, other := range l.table(t.Spec).args {
			if other.Name != name {
				continue
			}
			var v any = other.Default
			if d, given := t.Argument(other); given {
				v, _ = d.Static()
			} else if v == "" {
				continue
			}
			if on, err := playbook.Bool.Convert(v); err != nil || v == nil || on != negated {
				return true
			}
		}
	}
	return false
}

// Argument returns the value that the task sets for an argument of its module.
func (t *Task) Argument(a schema.Arg) (*template.Data, bool) {
	for _, name := range append([]string{a.Name}, a.Aliases...) {
		if d, ok := t.Args.Member(name); ok {
			return d, true
		}
	}
	return nil, false
}

// literals returns the texts of an argument, which can be in a list. Texts with templates are included: the first word
// of a command can be before the first template.
func (t *Task) literals(a schema.Arg) []string {
	d, ok := t.Argument(a)
	if !ok {
		return nil
	}
	list, ok := d.Raw().([]any)
	if !ok {
		list = []any{d.Raw()}
	}
	var out []string
	for _, e := range list {
		if text, ok := e.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// firstWord returns the first word of a text; "" if it contains a quote, a backslash, a tab or a newline.
func firstWord(text string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if strings.ContainsAny(word, "'\"\\\t\n") {
		return ""
	}
	return word
}

// isFileName reports whether a text is a plain file name: not a template, an address, or a text that a shell would
// expand.
func isFileName(name string) bool {
	return name != "" && !playbook.IsTemplate(name) && !strings.Contains(name, "://") &&
		!strings.ContainsAny(name[:1], "~$")
}

// argumentAt returns the position of an argument's value, or else of the task.
func (t *Task) argumentAt(a schema.Arg) source.Pos {
	for _, args := range []playbook.Value{t.Syntax.Args, t.Syntax.Extra} {
		for _, name := range append([]string{a.Name}, a.Aliases...) {
			if v := args.Get(name); v.IsSet() {
				return v.TextAt()
			}
		}
	}
	if t.Syntax.Args.Kind() == yaml.ScalarNode {
		return t.Syntax.Args.TextAt()
	}
	return t.At
}

// checkTemplates compiles the template files that a task names literally. It ignores missing files: an earlier task
// can create them.
func (l *Linker) checkTemplates(t *Task, ds *source.Diagnostics) {
	for _, f := range t.Files {
		if f.Kind == "templates" && !f.Lookup && !t.hasDelimiters() {
			l.checkTemplate(t, f.Name, ds)
		}
	}
}

func (l *Linker) checkTemplate(t *Task, name string, ds *source.Diagnostics) {
	path, err := t.Find(l.Tree, "templates", name)
	if err != nil || !l.Tree.IsFile(path) {
		return
	}
	_, err = l.Engine.File(path, template.FileOptions{})
	for _, e := range flattened(err) {
		ds.Add(diagnostic(e, t.At))
	}
}

// hasDelimiters reports whether the task sets its own template delimiters.
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

// flattened returns the single errors of a joined error.
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

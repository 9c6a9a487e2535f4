package engine

import (
	"path"
	"slices"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// fileCheck checks that the control node has the files that tasks name literally. It visits the tasks in the order of
// the run.
//
// A missing file is an error if the task is certain to run and its failure is certain to end the play. It is a
// warning otherwise: under a condition or in a loop, in a handler or a rescue section, or if the failure is ignored
// or rescued. It is neither if an earlier task can create the file, that is, if the task runs on the control node and
// names the file or a directory that contains it, has a template for a name, or runs a command that can write
// anything.
type fileCheck struct {
	tree source.Tree
	add  func(*source.Diagnostic)

	earlier []*project.Task // tasks that can write files of the control node
}

// play checks a play. control reports whether a host is, or can be, the control node. onControl is set if the play
// has such a host.
func (c *fileCheck) play(p *project.Play, control func(host string) bool, onControl bool) {
	w := fileWalk{c, control, onControl}
	for _, h := range p.Handlers { // they run between the sections; which ones is not known
		w.remember(h)
	}
	for _, section := range [][]project.Step{p.Pre, p.Main, p.Post} {
		w.steps(section, true)
	}
	for _, h := range p.Handlers {
		w.check(h, false)
	}
}

type fileWalk struct {
	*fileCheck
	control   func(host string) bool
	onControl bool
}

// remember adds a task that can write files of the control node.
func (w fileWalk) remember(t *project.Task) {
	if w.writesHere(t) {
		w.earlier = append(w.earlier, t)
	}
}

// steps checks steps. sure is set if they are certain to run and their failure ends the play.
func (w fileWalk) steps(steps []project.Step, sure bool) {
	for _, s := range steps {
		switch s := s.(type) {
		case *project.Task:
			w.check(s, sure)
			w.remember(s)
		case *project.Block:
			w.steps(s.Body, sure && len(s.Rescue) == 0)
			w.steps(s.Rescue, false)
			w.steps(s.Always, sure)
		}
	}
}

func (c *fileCheck) check(t *project.Task, sure bool) {
	for _, f := range t.Files {
		places := t.Places(f.Kind, f.Name)
		if _, err := t.Find(c.tree, f.Kind, f.Name); err == nil || c.mayBeMade(places) {
			continue
		}
		d := source.Errorf(f.At, "%s: could not find the file %q of the control node", t.Action, f.Name)
		if !source.IsAbs(f.Name) {
			d.Help = "searched: " + strings.Join(shown(places), ", ")
		}
		d.Trace = t.Trace
		d.Width = len([]rune(f.Name))
		if !sure || !surelyFails(t, f.ForLoop) {
			d.Severity = source.Warning
		}
		c.add(d)
	}
}

// surelyFails reports whether a task is certain to run and a missing file fails the play. A file that the loop
// expression reads is read for any number of items.
func surelyFails(t *project.Task, forLoop bool) bool {
	return len(t.Attrs.When) == 0 && (t.Loop == nil || forLoop) && len(t.FailedWhen) == 0 && len(t.Until) == 0 &&
		t.Attrs.Value[project.IgnoreErrors] == nil && t.Async == nil
}

func shown(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = source.Shown(p)
	}
	return out
}

// mayBeMade reports whether an earlier task can create one of the places.
func (c *fileCheck) mayBeMade(places []string) bool {
	return slices.ContainsFunc(c.earlier, func(before *project.Task) bool { return mayMake(before, places) })
}

// writesHere reports whether a task can write files of the control node.
func (w fileWalk) writesHere(t *project.Task) bool {
	switch {
	case t.Meta != "":
		return false
	case t.Spec == nil:
		return true // an include: its tasks are not known
	case t.Spec.Check == module.Harmless:
		return false
	case t.Spec.Where != module.OnHost || makes(t):
		return true
	}
	if d := t.Attrs.Value[project.DelegateTo]; d != nil {
		host, static := d.Static()
		name, _ := host.(string)
		return !static || w.control(name)
	}
	if d := t.Attrs.Value[project.Connection]; d != nil {
		word, _ := d.Static()
		return w.onControl || word != "ssh"
	}
	return w.onControl
}

// makes reports whether the module of a host's task writes files on the control node.
func makes(t *project.Task) bool {
	if t.Spec.New == nil {
		return false
	}
	args, err := schema.Describe(t.Spec.New())
	return err != nil || slices.ContainsFunc(args, func(a schema.Arg) bool { return a.Makes })
}

// mayMake reports whether a task that writes on the control node can create one of the places.
func mayMake(t *project.Task, places []string) bool {
	if t.Spec == nil || t.Spec.New == nil || t.Args == nil {
		return true
	}
	args, err := schema.Describe(t.Spec.New())
	if err != nil || runsAnything(t, args) {
		return true
	}
	for _, a := range args {
		d, given := t.Argument(a)
		if !given || a.File != "" {
			continue
		}
		for _, text := range value.Strings("", d.Raw()) {
			if playbook.IsTemplate(text) && isPlace(a) ||
				slices.ContainsFunc(places, func(p string) bool { return names(text, p) }) {
				return true
			}
		}
	}
	return false
}

// isPlace reports whether an argument can specify where files are written.
func isPlace(a schema.Arg) bool {
	return strings.Contains(a.Type, "path") ||
		slices.ContainsFunc([]string{"dest", "path", "dir", "name", "target", "root"}, func(part string) bool {
			return strings.Contains(a.Name, part)
		})
}

// names reports whether a text names a place or one of its parent directories.
func names(text, place string) bool {
	if strings.Contains(text, path.Base(place)) {
		return true
	}
	folder := strings.Trim(path.Clean(text), "/")
	return folder == "." || folder != "" && strings.Contains(place+"/", "/"+folder+"/")
}

// runsAnything reports whether a task runs a command that can write anywhere. Commands that write only to their named
// arguments, or write nothing, do not count.
func runsAnything(t *project.Task, args []schema.Arg) bool {
	if !slices.ContainsFunc(args, func(a schema.Arg) bool { return a.Name == "chdir" }) {
		return false
	}
	cmd, ok := t.Args.Member(t.Spec.FreeForm)
	if !ok {
		return true
	}
	text, _ := cmd.Raw().(string)
	if playbook.IsTemplate(text) || strings.ContainsAny(text, "|&;()<>$`\n") {
		return true
	}
	word, _, _ := strings.Cut(text, " ")
	switch path.Base(word) {
	case "cat", "chmod", "chown", "cp", "date", "echo", "false", "head", "hostname", "id", "ln", "ls", "mkdir", "mv",
		"printf",
		"pwd", "rm", "rmdir", "sleep", "stat", "tail", "test", "touch", "true", "uname", "uptime", "whoami":
		return false
	}
	return true
}

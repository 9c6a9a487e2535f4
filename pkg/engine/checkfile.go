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

// fileCheck looks for the files of the control node that tasks name literally.
// It goes through the tasks in the order of the run.
//
// A file that is not there is an error where the task is sure to run and its
// failure to end the play, and a warning where it is not: under a condition or in a
// loop, in a handler or a rescue, where the failure is ignored or comes to a rescue.
// It is neither when an earlier task may make it: one that runs on the control node and
// names it or a folder that it is in, has a template for a name, or runs a program
// that may write anything.
type fileCheck struct {
	tree source.Tree
	add  func(*source.Diagnostic)

	earlier []*project.Task // that may write files of the control node
}

// play checks a play. control tells the hosts that are, or may be, the control
// node; onControl says that one of the play's is.
func (c *fileCheck) play(p *project.Play, control func(host string) bool, onControl bool) {
	w := fileWalk{c, control, onControl}
	for _, h := range p.Handlers { // they run between the sections, and who knows which
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

// remember notes a task that may write files of the control node.
func (w fileWalk) remember(t *project.Task) {
	if w.writesHere(t) {
		w.earlier = append(w.earlier, t)
	}
}

// steps checks steps; sure says that they run and that their failure ends the play.
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

// surelyFails reports whether a task runs, and a file that is missing fails the
// play. One that the loop reads is read however many items there are.
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

// mayBeMade reports whether an earlier task may make what is to be in one of the places.
func (c *fileCheck) mayBeMade(places []string) bool {
	return slices.ContainsFunc(c.earlier, func(before *project.Task) bool { return mayMake(before, places) })
}

// writesHere reports whether a task may write files of the control node.
func (w fileWalk) writesHere(t *project.Task) bool {
	switch {
	case t.Meta != "":
		return false
	case t.Spec == nil:
		return true // an include: what it brings in is not known
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

// makes reports whether the module of a host's task writes on the control node.
func makes(t *project.Task) bool {
	if t.Spec.New == nil {
		return false
	}
	args, err := schema.Describe(t.Spec.New())
	return err != nil || slices.ContainsFunc(args, func(a schema.Arg) bool { return a.Makes })
}

// mayMake reports whether a task that writes on the control node may make what is to
// be in one of the places.
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
			if playbook.IsTemplate(text) && isPlace(a) || slices.ContainsFunc(places, func(p string) bool { return names(text, p) }) {
				return true
			}
		}
	}
	return false
}

// isPlace reports whether an argument may say where files are written.
func isPlace(a schema.Arg) bool {
	return strings.Contains(a.Type, "path") || slices.ContainsFunc([]string{"dest", "path", "dir", "name", "target", "root"}, func(part string) bool {
		return strings.Contains(a.Name, part)
	})
}

// names reports whether a text has the name of a place, or is a folder that leads to it.
func names(text, place string) bool {
	if strings.Contains(text, path.Base(place)) {
		return true
	}
	folder := strings.Trim(path.Clean(text), "/")
	return folder == "." || folder != "" && strings.Contains(place+"/", "/"+folder+"/")
}

// runsAnything reports whether a task runs a program that may write anywhere: any
// but those that write what their words name, or nothing.
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
	case "cat", "chmod", "chown", "cp", "date", "echo", "false", "head", "hostname", "id", "ln", "ls", "mkdir", "mv", "printf",
		"pwd", "rm", "rmdir", "sleep", "stat", "tail", "test", "touch", "true", "uname", "uptime", "whoami":
		return false
	}
	return true
}

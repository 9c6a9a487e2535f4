package project

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/vars"
)

// include links an import immediately, and a dynamic include as a task.
func (l *Linker) include(inc *playbook.Include, where place, ds *source.Diagnostics) []Step {
	if !inc.Static {
		return l.dynamic(inc, where, ds)
	}
	own := l.attrs(&inc.Attrs, where, ds)
	where.attrs = where.attrs.inherit(own)
	for _, n := range inc.Notify {
		where.play.notifies = append(where.play.notifies, notify{n.Text(), n.At(), where.role})
	}
	// The variables of an import have the precedence of block variables. Those of a dynamic include rank higher,
	// above set_fact.
	given := l.layer("vars of "+inc.Module, inc.Vars, ds)
	if inc.Role {
		return l.importRole(inc, given, where, ds)
	}
	where.static = where.static.With(nil, given, nil)
	file := includeFile(inc)
	if !file.IsSet() {
		ds.Add(source.Errorf(inc.ModuleAt, "%s needs the path of a file", inc.Module))
		return nil
	}
	name, d := l.text(file, where, "the file of import_tasks")
	if d != nil {
		ds.Add(d)
		return nil
	}
	path, err := l.findTasks(name, where)
	if err != nil {
		ds.Add(withTrace(missing(file.At(), err), where))
		return nil
	}
	return l.tasksFile(path, where.framed(inc.Module+" "+name, inc.ModuleAt), file.At(), ds)
}

func withTrace(d *source.Diagnostic, where place) *source.Diagnostic {
	d.Trace = append(d.Trace, where.trace...)
	return d
}

// BringsUnknown reports whether t is an include whose file or role is known only during the run.
func (t *Task) BringsUnknown() bool {
	if t.Include == nil {
		return false
	}
	name := includeFile(t.Include)
	if t.Include.Role {
		if name = t.Include.Args.Get("name"); !name.IsSet() {
			name = t.Include.Args.Get("role")
		}
	}
	return strings.Contains(name.Text(), "{{")
}

// includeFile returns the file that an include names.
func includeFile(inc *playbook.Include) playbook.Value {
	if inc.Args.Kind() == yaml.MappingNode {
		for _, key := range []string{"file", "_raw_params"} {
			if v := inc.Args.Get(key); v.IsSet() {
				return v
			}
		}
		return playbook.Value{}
	}
	return inc.Args
}

// findTasks searches for a task file along the include chain, and in the role and the playbook directory.
func (l *Linker) findTasks(name string, where place) (string, error) {
	if source.IsAbs(name) {
		if l.Tree.IsFile(name) {
			return source.Clean(name), nil
		}
		return "", notFound(name, nil)
	}
	var searched []string
	dirs := append([]string(nil), where.dirs...)
	for r := where.role; r != nil; r = r.Parent {
		dirs = append(dirs, r.Path+"/"+where.kind, r.Path+"/tasks", r.Path)
	}
	dirs = append(dirs, where.play.Dir, where.play.Dir+"/tasks")
	for _, dir := range dirs {
		path := source.Join(dir, name)
		if l.Tree.IsFile(path) {
			return path, nil
		}
		searched = append(searched, source.Shown(path))
	}
	return "", notFound(name, searched)
}

func notFound(name string, searched []string) error {
	msg := fmt.Sprintf("Could not find or access '%s'", name)
	seen := map[string]bool{}
	for _, s := range searched {
		if !seen[s] {
			if len(seen) == 0 {
				msg += "\nSearched in:"
			}
			msg += "\n\t" + s
		}
		seen[s] = true
	}
	return fmt.Errorf("%s", msg)
}

// missing returns a diagnostic for a file that was not found. The help lists the paths that were searched.
func missing(at source.Pos, err error) *source.Diagnostic {
	what, searched, _ := strings.Cut(err.Error(), "\nSearched in:\n\t")
	d := source.Errorf(at, "%s", what)
	if searched != "" {
		d.Help = "searched in: " + strings.ReplaceAll(searched, "\n\t", ", ")
	}
	return d
}

// tasksFile links the tasks of a file.
func (l *Linker) tasksFile(path string, where place, at source.Pos, ds *source.Diagnostics) []Step {
	for _, f := range where.files {
		if f == path {
			ds.Add(withTrace(source.Errorf(at, "import cycle: %s", chain(append(where.files, path))), where))
			return nil
		}
	}
	if len(where.files) > maxIncludes {
		ds.Add(source.Errorf(at, "imports nest deeper than %d levels", maxIncludes))
		return nil
	}
	where.files = append(where.files[:len(where.files):len(where.files)], path)
	where = where.inside(source.Dir(path))
	parsed, err := l.parse(path, where.handlers)
	if err != nil {
		ds.Add(withTrace(unreadable(path, err, at), where))
		return nil
	}
	for _, d := range parsed.ds {
		c := *d
		c.Trace = where.trace
		ds.Add(&c)
	}
	return l.steps(parsed.steps, where, ds)
}

// parse returns the parsed tasks of a file. Each file is parsed only once.
func (l *Linker) parse(path string, handlers bool) (parsedTasks, error) {
	key := fmt.Sprintf("%v %s", handlers, path)
	l.mu.Lock()
	p, ok := l.tasks[key]
	l.mu.Unlock()
	if ok {
		return p, nil
	}
	f, err := l.read(path)
	if err != nil {
		return p, err
	}
	p.steps, p.ds = l.parser.Tasks(f, handlers)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks[key] = p
	return p, nil
}

// dynamic links an include that is expanded when a host reaches it.
func (l *Linker) dynamic(inc *playbook.Include, where place, ds *source.Diagnostics) []Step {
	t := l.frame(inc.Task, where, ds)
	t.Include = inc
	t.Action = inc.Module
	if inc.Role {
		where.play.hasDynRole = true
	}
	if inc.Args.Kind() == yaml.MappingNode {
		t.Args = l.includeArgs(inc, ds)
	} else {
		t.Args = l.data(includeFile(inc), ds)
	}
	if inc.Apply.IsSet() {
		_, more := l.parser.ApplyAttrs(inc.Apply)
		*ds = append(*ds, more...)
	}
	if !where.handlers && !l.Selection.Runs(t.Attrs.Tags) {
		return nil
	}
	l.lookAhead(t, where, ds)
	return []Step{t}
}

// lookAhead links a file that only a dynamic include reaches, and reports its errors as warnings.
func (l *Linker) lookAhead(t *Task, where place, ds *source.Diagnostics) {
	name, literal := "", false
	if v := includeFile(t.Include); !t.Include.Role && v.IsSet() && !strings.Contains(v.Text(), "{{") {
		name, literal = v.Text(), true
	}
	if !literal || len(where.files) > maxIncludes {
		return
	}
	path, err := l.findTasks(name, where)
	if err != nil {
		d := missing(includeFile(t.Include).At(), err)
		d.Severity = source.Warning
		ds.Add(withTrace(d, where))
		return
	}
	for _, f := range where.files {
		if f == path {
			return // a file can include itself, under a condition
		}
	}
	where = t.place
	play := *where.play // a copy: the handlers and roles found here are not part of the play yet
	play.Static.Public = &vars.Public{}
	play.Handlers, play.notifies, play.Roles = nil, nil, &RoleList{}
	where.play = &play
	var more source.Diagnostics
	l.tasksFile(path, where.framed(t.Action+" "+name, t.At), t.At, &more)
	for _, d := range more {
		c := *d
		c.Severity = source.Warning
		ds.Add(&c)
	}
}

// IncludeTasks links the file of a dynamic include. It returns its tasks and its path.
func (l *Linker) IncludeTasks(t *Task, name string) (*Block, string, source.Diagnostics) {
	var ds source.Diagnostics
	where := t.place
	where.static = t.place.static.With(nil, nil, l.layer("vars of include_tasks", t.Syntax.Vars, &ds))
	l.apply(t, &where, &ds)
	path, err := l.findTasks(name, where)
	if err != nil {
		return nil, "", source.Diagnostics{withTrace(source.Errorf(t.At, "%s on the Ansible Controller.", err), where)}
	}
	where.files = nil // the engine limits the depth of dynamic includes
	steps := l.tasksFile(path, where.framed("include_tasks "+name, t.At), t.At, &ds)
	return &Block{Body: steps}, path, ds
}

// apply adds the attributes of apply: to those that the children inherit.
func (l *Linker) apply(t *Task, where *place, ds *source.Diagnostics) {
	if !t.Include.Apply.IsSet() {
		return
	}
	a, more := l.parser.ApplyAttrs(t.Include.Apply)
	*ds = append(*ds, more...)
	where.attrs = where.attrs.inherit(l.attrs(a, *where, ds))
	where.static = where.static.With(nil, l.layer("vars of apply", a.Vars, ds), nil)
}

// RoleRequest contains the arguments of an include_role, with templates evaluated.
type RoleRequest struct {
	Name                            string
	Tasks, Vars, Defaults, Handlers string
	Public                          bool
	NoDuplicates                    bool // allow_duplicates: false
	Unchecked                       bool // rolespec_validate: false
}

// IncludeRole links the role of an include_role. It appends the role's handlers to those of the play.
func (l *Linker) IncludeRole(t *Task, r RoleRequest) (*Block, string, source.Diagnostics) {
	var ds source.Diagnostics
	where := t.place
	where.static = t.place.static.With(nil, nil, l.layer("vars of include_role", t.Syntax.Vars, &ds))
	l.apply(t, &where, &ds)
	where.files = nil
	use := roleUse{
		name: r.Name, at: t.At, public: r.Public, duplicates: !r.NoDuplicates, unchecked: r.Unchecked,
		from: fromFiles{r.Tasks, r.Vars, r.Defaults, r.Handlers}, what: "include_role " + r.Name,
	}
	steps, path := l.useRole(use, where, &ds)
	return &Block{Body: steps, Name: r.Name}, path, ds
}

func (l *Linker) importRole(inc *playbook.Include, given []*vars.Layer, where place, ds *source.Diagnostics) []Step {
	where.files = nil
	use := roleUse{at: inc.ModuleAt, public: true, duplicates: true, roleVars: given}
	inside := where
	inside.static = where.static.With(nil, given, nil)
	get := func(keys ...string) string {
		for _, key := range keys {
			v := inc.Args.Get(key)
			if !v.IsSet() {
				continue
			}
			text, d := l.text(v, inside, key)
			if d != nil {
				ds.Add(d)
			}
			return text
		}
		return ""
	}
	l.checkRoleArgs(inc, ds)
	use.name = get("name", "role")
	use.from = fromFiles{get("tasks_from"), get("vars_from"), get("defaults_from"), get("handlers_from")}
	if use.name == "" {
		ds.Add(source.Errorf(inc.ModuleAt, "'name' is a required field for %s.", inc.Module))
		return nil
	}
	if v := inc.Args.Get("allow_duplicates"); v.IsSet() {
		use.duplicates = boolOf(v.Text())
	}
	if v := inc.Args.Get("rolespec_validate"); v.IsSet() {
		use.unchecked = !boolOf(v.Text())
	}
	use.what = "import_role " + use.name
	steps, _ := l.useRole(use, where, ds)
	return steps
}

func boolOf(s string) bool {
	switch strings.ToLower(s) {
	case "no", "false", "off", "0", "n", "f":
		return false
	}
	return true
}

// checkRoleArgs reports arguments that include_role and import_role do not accept.
func (l *Linker) checkRoleArgs(inc *playbook.Include, ds *source.Diagnostics) {
	if inc.Args.Kind() != yaml.MappingNode {
		return
	}
	known := []string{"name", "role", "tasks_from", "vars_from", "defaults_from", "handlers_from", "public",
		"allow_duplicates", "rolespec_validate", "apply"}
	l.knownKeys(inc, known, ds)
}

func (l *Linker) knownKeys(inc *playbook.Include, known []string, ds *source.Diagnostics) {
	n := inc.Args.Node
next:
	for i := 0; i+1 < len(n.Content); i += 2 {
		for _, k := range known {
			if n.Content[i].Value == k {
				continue next
			}
		}
		d := source.Errorf(source.NodePos(inc.Args.File, n.Content[i]), "module %q has no argument %q", inc.Module,
			n.Content[i].Value).
			WithHelp("%s", source.DidYouMean(n.Content[i].Value, known))
		d.Width = len(n.Content[i].Value)
		ds.Add(d)
	}
}

package project

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/vars"
)

// fromFiles names files of a role other than main.
type fromFiles struct{ tasks, vars, defaults, handlers string }

// roleUse is one use of a role.
type roleUse struct {
	name       string
	at         source.Pos
	from       fromFiles
	public     bool
	entry      bool   // from the roles of a play, or a dependency of another role
	duplicates bool   // can run more than once on a host
	what       string // for traces
	params     []*vars.Layer
	roleVars   []*vars.Layer // vars: of the entry or import
	key        string        // differs for uses of the role that are not the same
	deps       []string      // roles that depend on it, to detect cycles
	unchecked  bool          // rolespec_validate: no
}

// roles links the entries of a play's roles.
func (l *Linker) roles(entries []*playbook.RoleEntry, where place, ds *source.Diagnostics) []Step {
	var out []Step
	for _, e := range entries {
		out = append(out, l.roleEntry(e, where, nil, ds)...)
	}
	return out
}

func (l *Linker) roleEntry(e *playbook.RoleEntry, where place, deps []string, ds *source.Diagnostics) []Step {
	name, d := l.text(e.Name, where, "the name of a role")
	if d != nil {
		ds.Add(withTrace(d, where))
		return nil
	}
	own := l.attrs(&e.Attrs, where, ds)
	where.attrs = where.attrs.inherit(own)
	for _, n := range e.Notify {
		where.play.notifies = append(where.play.notifies, notify{n.Text(), n.At(), where.role})
	}
	use := roleUse{
		name: name, at: e.Name.At(), public: true, entry: true, what: "role " + name, deps: deps,
		params:   l.layer("parameters of role "+name, e.Params, ds),
		roleVars: l.layer("vars of role entry "+name, e.Vars, ds),
		from:     fromFiles{e.From.Tasks.Text(), e.From.Vars.Text(), e.From.Defaults.Text(), e.From.Handlers.Text()},
		key:      entryKey(e),
	}
	if e.Dup.IsSet() {
		use.duplicates = boolOf(e.Dup.Text())
	}
	steps, _ := l.useRole(use, where, ds)
	return steps
}

// entryKey returns a key that differs for entries of one role with different parameters, when, tags or vars.
func entryKey(e *playbook.RoleEntry) string {
	var b strings.Builder
	write := func(vs *playbook.Vars) {
		if vs.Len() == 0 {
			return
		}
		names := append([]string(nil), vs.Names...)
		sort.Strings(names)
		for _, n := range names {
			fmt.Fprintf(&b, "%s=%s;", n, nodeText(vs.Values[n]))
		}
	}
	write(e.Params)
	write(e.Vars)
	for _, group := range [][]playbook.Value{e.When, e.Tags} {
		for _, v := range group {
			b.WriteString(v.Text() + ";")
		}
		b.WriteString("|")
	}
	return strings.TrimRight(b.String(), "|") // a plain use and an import have the empty key
}

func nodeText(v playbook.Value) string {
	var b strings.Builder
	for _, e := range v.Elements() {
		b.WriteString(e.Text())
		for _, c := range e.Node.Content {
			b.WriteString("," + nodeText(playbook.Value{Node: c, File: v.File}))
		}
	}
	return b.String()
}

// useRole links a role with its dependencies. It returns the blocks in the order in which they run.
func (l *Linker) useRole(use roleUse, where place, ds *source.Diagnostics) ([]Step, string) {
	dir, collection, err := l.findRole(use.name, where)
	if err != nil {
		ds.Add(withTrace(source.Errorf(use.at, "%s", err).WithHelp("%s", l.nearRole(use.name, where)), where))
		return nil, ""
	}
	for _, dep := range use.deps {
		if dep == dir {
			ds.Add(withTrace(source.Errorf(use.at, "role %s depends on itself: %s", use.name, chain(append(use.deps, dir))),
				where))
			return nil, dir
		}
	}
	role := &Role{Name: use.name, Path: dir, Collection: collection, Public: use.public, Parent: where.role,
		dependency: len(use.deps) > 0}
	if path.IsAbs(use.name) || strings.HasPrefix(use.name, ".") { // a path, not a name
		role.Name = path.Base(dir)
	}
	if collection != "" {
		role.collections = []string{collection}
		if _, _, full := splitFull(use.name); !full {
			role.Name = collection + "." + use.name
		}
	}
	if role.listed = use.public && (!role.dependency || where.role.listed); role.listed {
		where.play.Roles.add(role.Name, !use.entry, role.dependency)
	}
	l.learnRole(where.play, dir)
	where = where.framed(use.what, use.at)
	meta := l.roleMeta(dir, where, ds)
	role.collections = append(role.collections, l.collectionNames(meta.Collections, where.play.Dir, ds)...)

	inner := where
	inner.role = role
	inner.dirs = append([]string{dir + "/tasks"}, where.dirs...)
	inner.files = nil
	if len(where.trace) > maxIncludes {
		ds.Add(withTrace(source.Errorf(use.at, "roles nest deeper than %d levels", maxIncludes), where))
		return nil, dir
	}

	defaults := l.roleVars(dir, "defaults", use.from.defaults, role.Name, where, use.at, ds)
	roleVars := l.roleVars(dir, "vars", use.from.vars, role.Name, where, use.at, ds)
	var steps []Step
	depsWhere := inner
	depsWhere.static = where.static.With(defaults, extend(roleVars, use.roleVars), use.params)
	var depLow, depMid []*vars.Layer
	for _, d := range meta.Dependencies {
		got := l.roleEntry(d, depsWhere, append(use.deps[:len(use.deps):len(use.deps)], dir), ds)
		for _, s := range got {
			if b, ok := s.(*Block); ok && b.Role != nil {
				depLow, depMid = extend(depLow, b.Role.low), extend(depMid, b.Role.mid)
			}
		}
		steps = append(steps, got...)
	}
	role.low = extend(depLow, defaults)
	role.mid = extend(extend(depMid, roleVars), use.roleVars)
	role.high = use.params
	inner.static = where.static.With(role.low, role.mid, role.high)
	if use.public {
		where.play.Static.Public.Add(role.low, extend(depMid, roleVars))
	}
	l.roleHandlers(use, dir, inner, ds)
	block := &Block{Name: role.Name, Role: role,
		Body: append(l.validation(use, meta, inner, ds), l.roleTasks(use, dir, inner, ds)...)}
	if !use.duplicates && !meta.AllowDuplicates {
		block.Once = fmt.Sprintf("%s|%s|%v", dir, use.key, use.from)
	}
	return append(steps, block), dir
}

// findRole returns the directory of a role, and the collection that contains it.
func (l *Linker) findRole(name string, where place) (dir, collection string, err error) {
	if dir, collection, ok := l.collectionRole(name, where); ok {
		return dir, collection, nil
	}
	searched := l.roleDirs(where)
	for _, dir := range searched {
		if p := source.Join(dir, name); l.Tree.IsDir(p) {
			return p, "", nil
		}
	}
	if collection, _, full := splitFull(name); full {
		roots := l.collectionRoots(where.play.Dir)
		if own, ok := l.collectionDir(collection, where.play.Dir); ok {
			roots = []string{own + "/roles"}
		}
		searched = append(roots, searched...)
	}
	for i, d := range searched {
		searched[i] = source.Shown(d)
	}
	return "", "", fmt.Errorf("the role '%s' was not found in %s", name, strings.Join(searched, ":"))
}

// roleDirs returns the directories that are searched for roles.
func (l *Linker) roleDirs(where place) []string {
	dir := where.play.Dir
	out := []string{dir + "/roles", source.Clean(dir + "/../roles")}
	out = append(out, l.RolePaths...)
	for r := where.role; r != nil; r = r.Parent {
		out = append(out, source.Dir(r.Path))
	}
	out = append(out, dir)
	if bundled := source.Builtin + "/roles"; l.Tree.Embedded != nil && !slices.Contains(out, bundled) {
		out = append(out, bundled)
	}
	return out
}

func (l *Linker) nearRole(name string, where place) string {
	var names []string
	for _, dir := range l.roleDirs(where) {
		entries, err := l.Tree.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
	}
	return source.DidYouMean(name, names)
}

// mainFile finds DIR/NAME, with or without an extension of YAML or JSON.
func (l *Linker) mainFile(dir, name string) (string, bool) {
	for _, ext := range []string{"", ".yml", ".yaml", ".json"} {
		if p := source.Join(dir, name+ext); l.Tree.IsFile(p) {
			return p, true
		}
	}
	return "", false
}

func (l *Linker) roleMeta(dir string, where place, ds *source.Diagnostics) *playbook.Meta {
	p, ok := l.mainFile(dir+"/meta", "main")
	if !ok {
		return &playbook.Meta{}
	}
	f, err := l.read(p)
	if err != nil {
		ds.Add(withTrace(unreadable(p, err, source.Pos{}), where))
		return &playbook.Meta{}
	}
	m, more := l.parser.Meta(f)
	*ds = append(*ds, more...)
	return m
}

// fromFile finds the file of a role that a *_from argument names.
func (l *Linker) fromFile(dir, kind, name string, where place, at source.Pos, ds *source.Diagnostics) (string, bool) {
	base := source.Join(dir, kind)
	if name == "" {
		return l.mainFile(base, "main")
	}
	p, ok := l.mainFile(base, name)
	switch {
	case strings.HasPrefix(path.Clean(name), "..") || source.IsAbs(name):
		ds.Add(withTrace(source.Errorf(at, "%s_from %q leaves the role's folder", kind, name), where))
	case !ok:
		ds.Add(withTrace(source.Errorf(at, "Could not find specified file in role: %s/%s", kind, name).
			WithHelp("searched in %s", source.Shown(base)), where))
	default:
		return p, true
	}
	return "", false
}

func (l *Linker) roleTasks(use roleUse, dir string, where place, ds *source.Diagnostics) []Step {
	p, ok := l.fromFile(dir, "tasks", use.from.tasks, where, use.at, ds)
	if !ok {
		return nil
	}
	where.handlers, where.kind = false, "tasks"
	return l.tasksFile(p, where, use.at, ds)
}

// roleHandlers adds a role's handlers to the play's, once for each use.
func (l *Linker) roleHandlers(use roleUse, dir string, where place, ds *source.Diagnostics) {
	p, ok := l.fromFile(dir, "handlers", use.from.handlers, where, use.at, ds)
	if !ok {
		return
	}
	where.handlers, where.kind = true, "handlers"
	where.dirs = append([]string{dir + "/handlers"}, where.dirs...)
	where.attrs.When = nil // the conditions of the role entry do not apply to handlers
	where.play.Handlers = append(where.play.Handlers, l.handlers(l.tasksFile(p, where, use.at, ds), where, ds)...)
}

// roleVars reads the defaults or vars of a role: a file, or all files in a directory main/.
func (l *Linker) roleVars(dir, kind, from, role string, where place, at source.Pos,
	ds *source.Diagnostics) []*vars.Layer {
	base := source.Join(dir, kind)
	if from == "" && l.Tree.IsDir(base+"/main") {
		return l.varsFolder(base+"/main", kind, role, ds)
	}
	p, ok := l.fromFile(dir, kind, from, where, at, ds)
	if !ok {
		return nil
	}
	return l.varsLayers(p, kind, role, ds)
}

func (l *Linker) varsLayers(p, kind, role string, ds *source.Diagnostics) []*vars.Layer {
	f, err := l.read(p)
	if err != nil {
		ds.Add(unreadable(p, err, source.Pos{}))
		return nil
	}
	v, more := l.parser.Vars(f)
	*ds = append(*ds, more...)
	return l.layer(fmt.Sprintf("role %s %s", role, kind), v, ds)
}

func (l *Linker) varsFolder(dir, kind, role string, ds *source.Diagnostics) []*vars.Layer {
	entries, err := l.Tree.ReadDir(dir)
	if err != nil {
		ds.Add(source.Errorf(source.Pos{}, "read %s: %s", source.Shown(dir), err))
		return nil
	}
	var out []*vars.Layer
	for _, e := range entries {
		p := dir + "/" + e.Name()
		switch ext := path.Ext(e.Name()); {
		case e.IsDir():
			out = append(out, l.varsFolder(p, kind, role, ds)...)
		case strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), "~"):
		case ext == "" || ext == ".yml" || ext == ".yaml" || ext == ".json":
			out = append(out, l.varsLayers(p, kind, role, ds)...)
		}
	}
	return out
}

// includeArgs compiles the arguments of a dynamic include, except apply.
func (l *Linker) includeArgs(inc *playbook.Include, ds *source.Diagnostics) *template.Data {
	if inc.Role {
		l.checkRoleArgs(inc, ds)
	} else {
		l.knownKeys(inc, []string{"file", "_raw_params", "apply"}, ds)
	}
	var names []string
	var vals []*template.Data
	for i := 0; i+1 < len(inc.Args.Node.Content); i += 2 {
		k := inc.Args.Node.Content[i].Value
		if k == "apply" {
			continue
		}
		names = append(names, k)
		vals = append(vals, l.data(playbook.Value{Node: inc.Args.Node.Content[i+1], File: inc.Args.File}, ds))
	}
	return template.Mapping(names, vals)
}

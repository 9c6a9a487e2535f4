package project

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// maxIncludes limits the nesting depth of imports and includes.
const maxIncludes = 64

// Playbook links the playbook of a file and everything that it imports.
func (l *Linker) Playbook(path string) (*Playbook, source.Diagnostics) {
	pb := &Playbook{Path: path}
	var ds source.Diagnostics
	l.plays(pb, path, importing{}, &ds)
	return pb, ds.Sort()
}

// importing is the data that import_playbook passes to the plays of a file.
type importing struct {
	attrs Attrs
	vars  []*vars.Layer
	files []string
	at    source.Pos
}

func (l *Linker) plays(pb *Playbook, path string, from importing, ds *source.Diagnostics) {
	for _, f := range from.files {
		if f == path {
			ds.Add(source.Errorf(from.at, "import cycle: %s", chain(append(from.files, path))))
			return
		}
	}
	f, err := l.read(path)
	if err != nil {
		d := source.Errorf(from.at, "the playbook: %s could not be found", source.Shown(path))
		var located *source.Diagnostic
		if errors.As(err, &located) {
			d = located
		} else if why := whyNot(err); why != "" {
			d.Summary = fmt.Sprintf("the playbook: %s cannot be read: %s", source.Shown(path), why)
		}
		ds.Add(d)
		return
	}
	if path == pb.Path {
		pb.Bundled = f.Bundled()
	}
	syntax, more := l.parser.Playbook(f)
	*ds = append(*ds, more...)
	from.files = append(from.files[:len(from.files):len(from.files)], path)
	for _, item := range syntax.Items {
		switch item := item.(type) {
		case *playbook.Play:
			pb.Plays = append(pb.Plays, l.play(item, path, from, ds))
		case *playbook.ImportPlaybook:
			l.importPlaybook(pb, item, path, from, ds)
		}
	}
}

// whyNot returns the reason why a file cannot be read; "" if it does not exist.
func whyNot(err error) string {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case errors.As(err, &pe):
		return pe.Err.Error()
	}
	return err.Error()
}

func chain(files []string) string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = source.Shown(f)
	}
	return strings.Join(names, " -> ")
}

func (l *Linker) importPlaybook(pb *Playbook, imp *playbook.ImportPlaybook, path string, from importing,
	ds *source.Diagnostics) {
	where := place{play: &Play{Dir: source.Dir(path), Roles: &RoleList{}}}
	name, d := l.text(imp.Path, where, "the path of import_playbook")
	if d != nil {
		ds.Add(d)
		return
	}
	own := l.attrs(&imp.Attrs, where, ds)
	next := importing{
		attrs: from.attrs.inherit(own),
		vars:  extend(from.vars, l.layer("vars of import_playbook", imp.Vars, ds)),
		files: from.files,
		at:    imp.Path.At(),
	}
	file := source.Join(source.Dir(path), name)
	if found, ok := l.collectionPlaybook(name, source.Dir(path)); ok && !l.Tree.IsFile(file) {
		file = found
	}
	l.plays(pb, file, next, ds)
}

func extend(a, b []*vars.Layer) []*vars.Layer { return join(a, b) }

func (l *Linker) play(syntax *playbook.Play, path string, from importing, ds *source.Diagnostics) *Play {
	p := &Play{Syntax: syntax, Name: syntax.Name, Path: path, Dir: source.Dir(path), Roles: &RoleList{}}
	p.Static = vars.Static{Public: &vars.Public{}}
	p.Static.Play = extend(l.layer("play vars", syntax.Vars, ds), from.vars)
	where := place{play: p, static: p.Static, kind: "tasks", dirs: []string{p.Dir}}
	p.Attrs = from.attrs.inherit(l.attrs(&syntax.Attrs, where, ds))
	where.attrs = p.Attrs
	l.playFields(p, syntax, where, ds)

	pre := l.steps(syntax.PreTasks, where, ds)
	main := l.roles(syntax.Roles, where, ds)
	main = append(main, l.steps(syntax.Tasks, where, ds)...)
	post := l.steps(syntax.PostTasks, where, ds)
	p.Pre, p.Main, p.Post = pre, main, post
	hw := where
	hw.handlers = true
	p.Handlers = append(p.Handlers, l.handlers(l.steps(syntax.Handlers, hw, ds), hw, ds)...)
	l.checkNotifies(p, ds)
	return p
}

func (l *Linker) playFields(p *Play, s *playbook.Play, where place, ds *source.Diagnostics) {
	p.Hosts = l.data(s.Hosts, ds)
	p.GatherFacts = l.data(s.GatherFacts, ds)
	p.Order = l.data(s.Order, ds)
	p.Strategy = l.data(s.Strategy, ds)
	p.MaxFail = l.data(s.MaxFailPercentage, ds)
	p.Force = l.data(s.ForceHandlers, ds)
	p.Continue = l.data(s.SerialContinue, ds)
	p.Serial = l.dataList(s.Serial.Elements(), ds)
	for _, q := range s.VarsPrompt {
		p.Prompts = append(p.Prompts, &Prompt{
			Syntax: q, Text: l.data(q.Text, ds), Default: l.data(q.Default, ds), Private: l.data(q.Private, ds),
			Confirm: l.data(q.Confirm, ds), Encrypt: l.data(q.Encrypt, ds), Salt: l.data(q.Salt, ds), Size: l.data(q.Size, ds),
			Unsafe: l.data(q.Unsafe, ds),
		})
	}
	for _, v := range s.VarsFiles.Elements() {
		candidates := l.dataList(v.Elements(), ds)
		p.VarsFiles = append(p.VarsFiles, candidates)
		p.VarsFilesAt = append(p.VarsFilesAt, v.At())
		l.checkVarsFile(p, candidates, v.At(), ds)
	}
	l.setup(p, s, where, ds)
}

// checkVarsFile reports a file that does not exist for any host.
func (l *Linker) checkVarsFile(p *Play, candidates []*template.Data, at source.Pos, ds *source.Diagnostics) {
	var names []string
	for _, c := range candidates {
		name, ok := c.Static()
		if !ok {
			return
		}
		path, found := l.FindVarsFile(p, value.Str(name))
		if found {
			if _, more := l.VarsFile(path); more.Err() != nil {
				*ds = append(*ds, more...)
			}
			return
		}
		names = append(names, value.Str(name))
	}
	ds.Add(source.Errorf(at, "vars file %s was not found", strings.Join(names, ", ")).
		WithHelp("searched in %s and %s/vars", source.Shown(p.Dir), source.Shown(p.Dir)))
}

// FindVarsFile finds a file of vars_files: next to the playbook, or in its vars directory.
func (l *Linker) FindVarsFile(p *Play, name string) (string, bool) {
	for _, dir := range []string{p.Dir, p.Dir + "/vars"} {
		if path := source.Join(dir, name); l.Tree.IsFile(path) {
			return path, true
		}
	}
	return "", false
}

// VarsFile reads a variables file into a layer.
func (l *Linker) VarsFile(path string) (*vars.Layer, source.Diagnostics) {
	f, err := l.read(path)
	if err != nil {
		return nil, source.Diagnostics{unreadable(path, err, source.Pos{})}
	}
	v, ds := l.parser.Vars(f)
	layers := l.layer(f.Name, v, &ds)
	if len(layers) == 0 {
		return vars.Compiled(f.Name, nil, nil, nil), ds
	}
	return layers[0], ds
}

// setup creates the hidden task that gathers facts.
func (l *Linker) setup(p *Play, s *playbook.Play, where place, ds *source.Diagnostics) {
	spec := l.Modules.Find("setup")
	if spec == nil {
		return
	}
	var keys []string
	var vals []*template.Data
	set := l.Gather
	if s.At.File.Bundled() {
		set = Gathering{}
	}
	for _, a := range []struct {
		name string
		v    playbook.Value
		set  bool
		def  any
	}{
		{"gather_subset", s.GatherSubset, len(set.Subset) > 0, value.Of(set.Subset)},
		{"gather_timeout", s.GatherTimeout, set.Timeout > 0, set.Timeout},
		{"fact_path", s.FactPath, set.FactPath != "", set.FactPath},
	} {
		switch {
		case a.v.IsSet():
			keys, vals = append(keys, a.name), append(vals, l.data(a.v, ds))
		case a.set:
			keys, vals = append(keys, a.name), append(vals, template.Literal(a.def))
		}
	}
	var given []argument
	for i, key := range keys {
		given = append(given, argument{key, vals[i], s.At})
	}
	problems, _ := l.problems(spec, given, false)
	for _, bad := range problems {
		d := source.Errorf(s.At, "%s", bad.Msg).WithHelp("%s", bad.Help)
		for name, v := range map[string]playbook.Value{"gather_subset": s.GatherSubset, "gather_timeout": s.GatherTimeout,
			"fact_path": s.FactPath} {
			if name == bad.Path && v.IsSet() {
				d.Pos = v.At()
			}
		}
		if bad.Path == "gather_subset" && s.GatherSubset.Kind() == yaml.MappingNode {
			continue // reported with the keyword
		}
		ds.Add(d)
	}
	attrs := p.Attrs
	if len(attrs.Tags) == 0 {
		attrs.Tags = []string{"always"}
	}
	if !l.Selection.Runs(attrs.Tags) {
		return
	}
	p.Setup = &Task{
		Syntax: &playbook.Task{Pos: s.At, Name: "Gathering Facts", Module: "gather_facts"},
		At:     s.At, Name: template.Literal("Gathering Facts"), Action: "gather_facts", Spec: spec,
		Attrs: attrs, Args: template.Mapping(keys, vals), Play: p, Static: where.static,
		SearchPath: where.searchPath(), place: where,
	}
}

// steps links steps, without those that the tags exclude.
func (l *Linker) steps(in []playbook.Step, where place, ds *source.Diagnostics) []Step {
	var out []Step
	for _, s := range in {
		switch s := s.(type) {
		case *playbook.Block:
			out = append(out, l.block(s, where, ds))
		case *playbook.Include:
			out = append(out, l.include(s, where, ds)...)
		case *playbook.Task:
			if t := l.task(s, where, ds); t != nil && (where.handlers || l.Selection.Runs(t.Attrs.Tags)) {
				out = append(out, t)
			}
		}
	}
	return out
}

func (l *Linker) block(b *playbook.Block, where place, ds *source.Diagnostics) Step {
	where.attrs = where.attrs.inherit(l.attrs(&b.Attrs, where, ds))
	where.static = where.static.With(nil, l.layer("block vars", b.Vars, ds), nil)
	return &Block{
		Syntax: b, Name: b.Name,
		Body:   l.steps(b.Body, where, ds),
		Rescue: l.steps(b.Rescue, where, ds),
		Always: l.steps(b.Always, where, ds),
	}
}

func flatten(steps []Step) []*Task {
	var out []*Task
	for _, s := range steps {
		switch s := s.(type) {
		case *Task:
			out = append(out, s)
		case *Block:
			out = append(out, flatten(s.Body)...)
		}
	}
	return out
}

// checkNotifies reports literal names that no handler of the play has. A play that includes roles dynamically can get
// more handlers later.
func (l *Linker) checkNotifies(p *Play, ds *source.Diagnostics) {
	if p.hasDynRole {
		return
	}
	for _, n := range p.notifies {
		if FindHandlers(p.Handlers, n.name, n.role) != nil {
			continue
		}
		d := NoHandler(n.at, n.name, p)
		if l.MissingHandlerWarns {
			d.Severity = source.Warning
		}
		ds.Add(d)
	}
}

// NoHandler returns the error for a name that no handler of the play has.
func NoHandler(at source.Pos, name string, p *Play) *source.Diagnostic {
	d := source.Errorf(at, "The requested handler '%s' was not found in either the main handlers list nor in the "+
		"listening handlers list", name)
	d.Width = len(name)
	return d.WithHelp("%s", source.DidYouMean(name, p.HandlerNames()))
}

// HandlerNames returns the names that the handlers of the play have or listen to.
func (p *Play) HandlerNames() []string {
	var out []string
	for _, h := range p.Handlers {
		if h.Known != "" {
			out = append(out, h.Known)
		}
		out = append(out, h.Listen...)
	}
	return out
}

// handlers links the handlers of a file or a play. Handlers are selected by name before a host is known, so templates
// in their names can use only variables of the play.
func (l *Linker) handlers(steps []Step, where place, ds *source.Diagnostics) []*Task {
	out := flatten(steps)
	for _, h := range out {
		if h.Name == nil {
			continue
		}
		v, err := h.Name.Value(where.ctx(), l.scope(where))
		if err == nil {
			h.Known = value.Str(v)
			continue
		}
		if len(h.Listen) == 0 {
			ds.Add(source.Warningf(h.At, "Handler '%s' is unusable because it has no listen topics and the name could not be "+
				"templated: %s", h.Syntax.Name, err).
				WithHelp("names of handlers are read before there is a host: use variables of the play, or listen"))
		}
	}
	return out
}

// FindHandlers returns the handlers that a notification reaches: the last one with that name, and every one that
// listens to it. Of the listening handlers with the same full name, only the last one counts. from is the role that
// notifies: its own handler takes precedence.
func FindHandlers(all []*Task, name string, from *Role) []*Task {
	byName := -1
	listening := map[string]int{}
	for i, h := range all {
		if h.Known != "" && answers(h, h.Known, name) && (byName < 0 || all[byName].Role != from || h.Role == from) {
			byName = i
		}
		if listens(h, name) {
			listening[h.fullName(i)] = i
		}
	}
	var out []*Task
	for i, h := range all {
		if at, ok := listening[h.fullName(i)]; i == byName || ok && at == i {
			out = append(out, h)
		}
	}
	return out
}

// fullName returns a name that identifies a handler. A handler without a name gets a unique one, from its index i.
func (t *Task) fullName(i int) string {
	if t.Known == "" {
		return fmt.Sprintf("#%d", i)
	}
	if t.Role != nil {
		return t.Role.Name + " : " + t.Known
	}
	return t.Known
}

func answers(h *Task, own, name string) bool {
	return own == name || h.Role != nil && (h.Role.Name+" : "+own == name || h.Role.PlainName()+" : "+own == name)
}

func listens(h *Task, name string) bool {
	return slices.ContainsFunc(h.Listen, func(topic string) bool { return answers(h, topic, name) })
}

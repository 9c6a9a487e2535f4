package project

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/module"
	"kubekey/pkg/playbook"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// metaActions returns the meta tasks that the engine supports.
func metaActions() []string {
	return []string{"flush_handlers", "end_play", "end_run", "end_host", "end_batch", "end_role", "clear_host_errors",
		"clear_facts", "refresh_inventory", "reset_connection", "noop"}
}

func (l *Linker) task(s *playbook.Task, where place, ds *source.Diagnostics) *Task {
	t := l.frame(s, where, ds)
	spec := l.module(s.Module, s.ModuleAt, where, len(t.Attrs.When) > 0 || t.Loop != nil, ds)
	if spec == nil {
		return nil
	}
	t.Action = l.Modules.PlainName(s.Module)
	if spec.Name == "meta" {
		l.meta(t, s, ds)
		return t
	}
	t.Spec = spec
	var more source.Diagnostics
	more.Add(checkAsync(t))
	t.Args = l.arguments(s, spec, t.Attrs.ModuleDefaults, &more)
	t.Files = l.fileNames(t)
	l.checkTemplates(t, &more)
	for _, d := range more {
		d.Trace = append(d.Trace, where.trace...)
	}
	*ds = append(*ds, more...)
	return t
}

// checkAsync reports a task that must run in the background but cannot.
func checkAsync(t *Task) *source.Diagnostic {
	if t.Async == nil || t.Spec.CanDetach() {
		return nil
	}
	limit, _ := t.Async.Static()
	if d, err := playbook.Seconds.Convert(limit); err != nil || d == time.Duration(0) {
		return nil
	}
	return source.Errorf(t.Syntax.Async.At(), "async is not supported for %s",
		t.Spec.Name).WithHelp("remove it: the task ends at once")
}

// modulesLike returns suggestions for an unknown module name.
func (l *Linker) modulesLike(name string) string {
	plain := l.Modules.PlainName(name)
	if there := l.Modules.Find(plain); there != nil && plain != name {
		return fmt.Sprintf("that collection has no such module: write %q, or %q", plain, there.FullName(plain))
	}
	if like := source.DidYouMean(plain, append(l.Modules.Names(), keywordNames()...)); like != "" {
		return like
	}
	return "`kk doc` lists the modules that there are; a program of your own in library/ is one too"
}

// noModule returns the error for an unknown module name.
func (l *Linker) noModule(name string, at source.Pos) *source.Diagnostic {
	d := source.Errorf(at, "couldn't resolve module/action '%s'", name)
	d.Width, d.Help = len(name), l.modulesLike(name)
	return d
}

func keywordNames() []string {
	var out []string
	for _, k := range playbook.Keywords() {
		out = append(out, k.Name)
	}
	return out
}

// frame links all of a task except its module.
func (l *Linker) frame(s *playbook.Task, where place, ds *source.Diagnostics) *Task {
	var own source.Diagnostics
	t := &Task{
		Syntax: s, At: s.Pos, Register: s.Register, Listen: s.Listen, Local: s.Local,
		Handler: where.handlers, Play: where.play, Role: where.role,
		SearchPath: where.searchPath(), Trace: where.trace,
	}
	t.Attrs = where.attrs.inherit(l.attrs(&s.Attrs, where, &own))
	t.Static = where.static.With(nil, l.layer("task vars", s.Vars, &own), nil)
	if s.Name != "" {
		name, err := l.Engine.Data(s.Name, s.Pos)
		if err != nil {
			own.Add(diagnostic(err, s.Pos))
			name = template.Literal(s.Name)
		}
		t.Name = name
	}
	t.Until = l.condsInto(s.Until, &own)
	t.ChangedWhen = l.condsInto(s.ChangedWhen, &own)
	t.FailedWhen = l.condsInto(s.FailedWhen, &own)
	t.Retries, t.Delay = l.data(s.Retries, &own), l.data(s.Delay, &own)
	t.Async, t.Poll = l.data(s.Async, &own), l.data(s.Poll, &own)
	if s.Local {
		t.Attrs.Value[DelegateTo] = template.Literal("localhost")
	}
	if s.Loop != nil {
		t.Loop = l.loop(s.Loop, &own)
	}
	for _, n := range s.Notify {
		if text := n.Text(); !strings.Contains(text, "{{") {
			where.play.notifies = append(where.play.notifies, notify{text, n.At(), where.role})
		}
	}
	t.place = where
	for _, d := range own {
		d.Trace = append(d.Trace, where.trace...)
	}
	*ds = append(*ds, own...)
	if l.Seen != nil {
		l.Seen(t)
	}
	return t
}

func (l *Linker) condsInto(values []playbook.Value, ds *source.Diagnostics) []*Cond {
	out, more := l.conds(values)
	*ds = append(*ds, more...)
	return out
}

func (l *Linker) loop(s *playbook.Loop, ds *source.Diagnostics) *Loop {
	lookup := l.Engine.Env().ShortName(s.Lookup)
	if lookup != "" && !slices.Contains(l.Engine.Env().LookupNames(), lookup) {
		ds.Add(source.Errorf(s.At, "no lookup named '%s'", s.Lookup).
			WithHelp("%s", source.DidYouMean(s.Lookup, l.Engine.Env().LookupNames())))
	}
	out := &Loop{
		Syntax: s, Lookup: lookup, Items: l.data(s.Items, ds), Var: l.data(s.Var, ds), IndexVar: l.data(s.IndexVar, ds),
		Label: l.data(s.Label, ds), Pause: l.data(s.Pause, ds),
		Extended: l.data(s.Extended, ds), AllItems: l.data(s.ExtendedAllItems, ds), Forks: l.data(s.Forks, ds),
	}
	out.BreakWhen = l.condsInto(s.BreakWhen, ds)
	return out
}

func (l *Linker) meta(t *Task, s *playbook.Task, ds *source.Diagnostics) {
	t.Meta = strings.TrimSpace(s.Args.Text())
	known := metaActions()
	for _, m := range known {
		if m == t.Meta {
			if m == "flush_handlers" && t.Handler {
				ds.Add(source.Errorf(s.Pos, "flush_handlers cannot be used as a handler"))
			}
			return
		}
	}
	ds.Add(source.Errorf(s.Args.At(), "invalid meta action requested: %s", t.Meta).
		WithHelp("%s", source.DidYouMean(t.Meta, known)))
}

// argument is one argument as written.
type argument struct {
	name string
	data *template.Data
	at   source.Pos
}

// arguments compiles a task's arguments and validates literals.
func (l *Linker) arguments(s *playbook.Task, spec *module.Spec, defaults []*template.Data,
	ds *source.Diagnostics) *template.Data {
	var list []argument
	switch s.Args.Kind() {
	case yaml.ScalarNode:
		if whole := l.wholeArgs(s.Args, spec, ds); whole != nil {
			return whole
		}
		list = l.freeForm(s.Args, spec, ds)
	case yaml.MappingNode:
		list = l.mappingArgs(s.Args, spec, ds)
	case yaml.SequenceNode:
		ds.Add(source.Errorf(s.Args.At(), "the arguments of %s must be a mapping, not a list", spec.Name))
	}
	switch s.Extra.Kind() {
	case yaml.ScalarNode:
		if len(list) == 0 {
			return l.data(s.Extra, ds)
		}
		ds.Add(source.Errorf(s.Extra.At(), "args cannot be a template beside other arguments").WithHelp("put all of them into one mapping"))
	case yaml.MappingNode:
		for _, a := range l.mappingArgs(s.Extra, spec, ds) {
			i := argumentNamed(list, a.name)
			switch {
			case i < 0:
				list = append(list, a)
			case s.Extra.Get(a.name).IsSet(): // otherwise a merge key adds a default
				ds.Add(playbook.GivenTwice(a.name, a.at, list[i].at))
			}
		}
	}
	l.checkArgs(s, spec, list, mayGive(defaults, spec), ds)
	if spec.AnyArgs && slices.ContainsFunc(list, func(a argument) bool { return strings.Contains(a.name, "{{") }) {
		return l.data(s.Args, ds) // some names are templates
	}
	names, vals := make([]string, len(list)), make([]*template.Data, len(list))
	for i, a := range list {
		names[i], vals[i] = a.name, a.data
	}
	return template.Mapping(names, vals)
}

func argumentNamed(list []argument, name string) int {
	return slices.IndexFunc(list, func(a argument) bool { return a.name == name })
}

// wholeArgs compiles the arguments of `module: "{{ dict }}"`.
func (l *Linker) wholeArgs(v playbook.Value, spec *module.Spec, ds *source.Diagnostics) *template.Data {
	text := strings.TrimSpace(v.Text())
	if spec.FreeForm != "" || !strings.HasPrefix(text, "{{") || !strings.HasSuffix(text, "}}") {
		return nil
	}
	return l.data(v, ds)
}

// freeForm reads `module: text`: k=v words, or the text that a single argument accepts.
func (l *Linker) freeForm(v playbook.Value, spec *module.Spec, ds *source.Diagnostics) []argument {
	if v.IsNull() {
		return nil
	}
	table := l.table(spec)
	var out []argument
	at := func(off int) source.Pos { return source.Advance(v.TextAt(), v.Text(), off) }
	first := map[string]source.Pos{}
	add := func(name, text string, key, val source.Pos) {
		if before, twice := first[name]; twice {
			ds.Add(playbook.GivenTwice(name, key, before))
			return
		}
		first[name] = key
		if table.raw[name] {
			out = append(out, argument{name, template.Literal(module.Written(text)), key})
			return
		}
		d, err := l.Engine.Data(text, val)
		if err != nil {
			ds.Add(diagnostic(err, val))
			return
		}
		out = append(out, argument{name, d, key})
	}
	if spec.FreeForm != "" {
		rest, words := playbook.ExtractWords(v.Text(), func(k string) bool { return table.names[k] || spec.AnyArgs })
		for _, w := range words {
			add(w.Key, w.Value, at(w.At), at(w.ValueAt))
		}
		if spec.FreeForm != "cmd" { // only for commands, newlines at the end are significant
			rest = strings.TrimSpace(rest)
		}
		if rest != "" {
			add(spec.FreeForm, rest, v.TextAt(), v.TextAt())
		}
		return out
	}
	words, err := playbook.SplitWords(v.Text())
	if err != nil {
		ds.Add(source.Errorf(v.TextAt(), "%s", err))
	}
	for _, w := range words {
		if w.Key == "" {
			ds.Add(source.Errorf(at(w.At), "this module does not take %q: its arguments are key=value words or a mapping",
				w.Value).
				WithHelp("arguments of %s: %s", spec.Name, strings.Join(sortedKeys(table.names), ", ")))
			continue
		}
		add(w.Key, w.Value, at(w.At), at(w.ValueAt))
	}
	return out
}

func (l *Linker) mappingArgs(v playbook.Value, spec *module.Spec, ds *source.Diagnostics) []argument {
	table := l.table(spec)
	var out, merged []argument
	n := v.Node
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := playbook.Value{Node: n.Content[i], File: v.File}
		val := playbook.Value{Node: n.Content[i+1], File: v.File}
		switch {
		case k.Node.ShortTag() == "!!merge":
			for _, from := range val.Elements() {
				merged = append(merged, l.mappingArgs(from, spec, ds)...)
			}
		case table.raw[k.Text()]:
			raw, err := value.FromYAML(val.Node)
			if err != nil {
				ds.Add(source.Errorf(val.At(), "%s", err))
			}
			out = append(out, argument{k.Text(), template.Literal(module.AsWritten(raw)), k.At()})
		default:
			out = append(out, argument{k.Text(), l.data(val, ds), k.At()})
		}
	}
	for _, a := range merged {
		if argumentNamed(out, a.name) < 0 {
			out = append(out, a)
		}
	}
	return out
}

// mayGive reports whether module_defaults can set arguments of a module. Defaults that are, or contain, templates are
// known only when the task runs.
func mayGive(defaults []*template.Data, spec *module.Spec) bool {
	return slices.ContainsFunc(defaults, func(d *template.Data) bool {
		v, static := d.Static()
		all, _ := v.(*value.Dict)
		for name := range all.All() {
			if text, ok := name.(string); ok && (spec.Is(text) || spec.InGroup(text)) {
				return true
			}
		}
		return !static
	})
}

// checkArgs reports unknown arguments, literals of a wrong type, and missing arguments unless module_defaults can set
// them.
func (l *Linker) checkArgs(s *playbook.Task, spec *module.Spec, list []argument, mayGive bool, ds *source.Diagnostics) {
	for _, a := range list {
		if spec.AnyArgs {
			ds.Add(CheckVariable(a.name, a.data.Raw(), a.at))
		}
	}
	problems, at := l.problems(spec, list, mayGive)
	for _, p := range problems {
		if p.Kind == schema.Missing && mayGive {
			continue
		}
		if p.Kind != schema.Missing || !misspelt(problems, p) {
			ds.Add(argumentError(s, spec, p, at))
		}
	}
}

// problems returns the errors in literal arguments, and the position of each argument. If more is set, the run can
// add arguments.
func (l *Linker) problems(spec *module.Spec, list []argument, more bool) ([]schema.Problem, map[string]source.Pos) {
	if spec.New == nil {
		return nil, nil
	}
	args := value.NewDict()
	at := map[string]source.Pos{}
	for _, a := range list {
		if strings.Contains(a.name, "{{") {
			continue // set_fact accepts templates as names
		}
		v, isStatic := a.data.Static()
		if !isStatic {
			v = dynamic{mayBeEmpty(a.data)}
		}
		args.Set(a.name, v)
		at[a.name] = a.at
	}
	u := schema.Unsure{Dynamic: isDynamic, Omittable: isOmittable, More: more}
	problems := schema.Check(spec.New(), args, l.Secrets, u)
	if checker, ok := spec.New().(module.Checker); ok && len(problems) == 0 {
		_ = schema.Decode(checker, literalArgs(spec, list), l.Secrets) // arguments that are not literals are missing here
		problems = checker.CheckLiterals()
	}
	return problems, at
}

// literalArgs returns the arguments that are literals, for a module.Checker.
func literalArgs(spec *module.Spec, list []argument) *value.Dict {
	args := value.NewDict()
	for _, a := range list {
		v, static := a.data.Static()
		if text, ok := a.data.Raw().(string); !static && ok && a.name == spec.FreeForm {
			v, static = withoutTemplates(text)
		}
		if static {
			args.Set(a.name, v)
		}
	}
	return args
}

var expressions = regexp.MustCompile(`(?s)\{\{.*?\}\}`)

// withoutTemplates replaces each expression in a text by a word. It fails if the text contains tags ({% if %}),
// because their result is not known.
func withoutTemplates(text string) (string, bool) {
	if strings.Contains(text, "{%") || strings.Contains(text, "{#") {
		return "", false
	}
	return expressions.ReplaceAllString(text, "x"), true
}

// misspelt reports whether a missing argument is present under a wrong name.
func misspelt(problems []schema.Problem, missing schema.Problem) bool {
	_, name, _ := strings.Cut(missing.Msg, ": ")
	return slices.ContainsFunc(problems, func(p schema.Problem) bool {
		return p.Kind == schema.Unknown && strings.Contains(p.Help, strconv.Quote(name))
	})
}

func argumentError(s *playbook.Task, spec *module.Spec, p schema.Problem, at map[string]source.Pos) *source.Diagnostic {
	name, _, _ := strings.Cut(p.Path, ".")
	pos, ok := at[name]
	if !ok {
		pos = s.ModuleAt
	}
	msg := p.Msg
	if p.Kind == schema.Unknown {
		msg = "module \"" + spec.Name + "\" has no argument \"" + p.Path + "\""
	}
	d := source.Errorf(pos, "%s", msg).WithHelp("%s", p.Help)
	d.Width = len(name)
	if p.Kind == schema.Missing || p.Kind == schema.Conflict {
		d.Summary = spec.Name + ": " + msg
	}
	if !ok {
		d.Width = len(s.Module)
	}
	return d
}

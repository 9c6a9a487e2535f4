package playbook

import (
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// maxBlocks limits the nesting depth of blocks.
const maxBlocks = 100

func (p *file) steps(n *yaml.Node, handlers bool) []Step { return p.stepsAt(n, handlers, 0) }

func (p *file) stepsAt(n *yaml.Node, handlers bool, depth int) []Step {
	var out []Step
	for _, e := range p.list(n, "tasks") {
		if s := p.step(e, handlers, depth); s != nil {
			out = append(out, s)
		}
	}
	return out
}

func (p *file) step(n *yaml.Node, handlers bool, depth int) Step {
	v := p.value(n)
	if n.Kind != yaml.MappingNode {
		if v.IsNull() {
			p.errorf(n, "an empty task").WithHelp("remove the dash, or name a module")
			return nil
		}
		p.errorf(n, "a task must be a mapping, not %s", shown(n)).WithHelp("write `- MODULE: ...`")
		return nil
	}
	for _, key := range []string{"block", "rescue", "always"} {
		if !v.Get(key).IsSet() {
			continue
		}
		if handlers && depth > 0 {
			p.errorf(n, "Using a block as a handler is not supported.").WithHelp("put the inner handlers next to the others")
			return nil
		}
		if depth >= maxBlocks {
			p.errorf(n, "blocks are nested more than %d levels deep", maxBlocks)
			return nil
		}
		return p.block(n, handlers, depth)
	}
	return p.task(n, handlers)
}

// block parses a block. Among handlers a block only passes its attributes to the handlers in its body, as in Ansible;
// rescue and always never run.
func (p *file) block(n *yaml.Node, handlers bool, depth int) Step {
	b := &Block{Pos: source.NodePos(p.f, n)}
	has := false
	p.each(n, func(k, v *yaml.Node) {
		switch k.Value {
		case "block":
			has = true
			b.Body = p.stepsAt(v, handlers, depth+1)
		case "rescue":
			b.Rescue = p.aside(k, v, handlers, depth)
		case "always":
			b.Always = p.aside(k, v, handlers, depth)
		case "name":
			b.Name = p.text(v, "name")
		default:
			if !p.attr(&b.Attrs, OnBlock, k, v) {
				p.unknown(k, OnBlock, "Block")
			}
		}
	})
	if !has {
		p.errorf(n, "rescue and always need a block").WithHelp("put the tasks that they belong to under block:")
	}
	return b
}

// aside parses the rescue or always section of a block.
func (p *file) aside(k, v *yaml.Node, handlers bool, depth int) []Step {
	if handlers {
		p.warnf(k, "'%s' never runs in a block of handlers", k.Value).
			WithHelp("use ignore_errors or failed_when at the handlers themselves")
		return nil
	}
	return p.stepsAt(v, false, depth+1)
}

// task parses a task or include: the only key that is not a keyword is the module.
func (p *file) task(n *yaml.Node, handlers bool) Step {
	t := &Task{Pos: source.NodePos(p.f, n)}
	var modules []*yaml.Node // the keys that may name the module
	var control, action *yaml.Node
	p.each(n, func(k, v *yaml.Node) {
		switch {
		case k.Value == "loop_control":
			control = v
		case k.Value == "action" || k.Value == "local_action":
			action = k
			t.Local = k.Value == "local_action"
			p.action(t, v)
		case k.Value == "apply":
			p.errorf(k, "'apply' is not a valid attribute for a Task").
				WithHelp("put it under include_tasks: {file: ..., apply: {...}}")
		case p.taskKey(t, k, v, handlers):
		default:
			modules = append(modules, k)
			t.Module, t.ModuleAt, t.Args = k.Value, source.NodePos(p.f, k), p.value(v)
		}
	})
	if control != nil {
		p.loopControl(t, control)
	}
	if action != nil && len(modules) > 0 {
		modules = append([]*yaml.Node{action}, modules...)
	}
	switch {
	case len(modules) > 1 || t.Module == "" && action == nil:
		p.noModule(n, modules)
		return nil
	case t.Module == "": // already reported with the action
		return nil
	}
	if t.Register != "" && !IsIdentifier(t.Register) {
		p.errorf((Value{n, p.f}).Get("register").Node, "register: %q cannot be the name of a variable", t.Register)
	}
	return p.include(n, t, handlers)
}

func (p *file) noModule(n *yaml.Node, modules []*yaml.Node) {
	if len(modules) == 0 {
		p.errorf(n, "no module/action detected in task").WithHelp("add the module to run")
		return
	}
	suspects := modules
	if p.IsModule != nil {
		suspects = nil
		for _, m := range modules {
			if m.Value != "action" && m.Value != "local_action" && !p.IsModule(m.Value) {
				suspects = append(suspects, m)
			}
		}
	}
	names := make([]string, len(modules))
	for i, m := range modules {
		names[i] = m.Value
	}
	conflict := "conflicting action statements: " + strings.Join(names, ", ")
	if len(suspects) > 0 && len(suspects) < len(modules) || len(suspects) == 1 {
		for _, s := range suspects {
			if d := p.unknown(s, OnTask, "Task"); d.Help == "" {
				d.Help = conflict
			}
		}
		return
	}
	last := modules[len(modules)-1]
	d := p.errorf(last, "%s", conflict)
	if near := source.DidYouMean(last.Value, p.names(OnTask)); near != "" {
		d.Help = near
	} else {
		d.Help = "a task runs one module: split it into two tasks"
	}
}

// taskKey stores a keyword of a task, and reports whether the key is one.
func (p *file) taskKey(t *Task, k, v *yaml.Node, handlers bool) bool {
	if p.attr(&t.Attrs, OnTask, k, v) {
		return true
	}
	if p.taskValue(t, k, v) {
		return true
	}
	switch k.Value {
	case "listen":
		if !handlers {
			p.errorf(k, "'listen' is not a valid attribute for a Task").WithHelp("listen is allowed on handlers only")
		}
		for _, w := range p.words(v, "listen") {
			t.Listen = append(t.Listen, w.Text())
		}
	default:
		name, ok := strings.CutPrefix(k.Value, "with_")
		if ok {
			p.loop(t, k, v, name)
		}
		return ok
	}
	return true
}

// taskValue stores the keywords that are only validated.
func (p *file) taskValue(t *Task, k, v *yaml.Node) bool {
	switch k.Value {
	case "name":
		t.Name = p.text(v, "name")
	case "args":
		p.extra(t, v)
		if kind := t.Extra.Kind(); kind != yaml.MappingNode && !isTemplate(t.Extra.Text()) {
			p.errorf(v, "args must be a mapping of arguments")
		}
	case "register":
		t.Register = p.text(v, "register")
	case "register_type":
		t.RegisterType = p.text(v, "register_type")
		p.checkKeyword("register_type", v)
	case "loop":
		p.loop(t, k, v, "")
	case "until":
		t.Until = p.conditions(v, "until")
	case "changed_when":
		t.ChangedWhen = p.conditions(v, "changed_when")
	case "failed_when":
		t.FailedWhen = p.conditions(v, "failed_when")
	case "retries":
		p.checkKeyword("retries", v)
		t.Retries = p.value(v)
	case "delay":
		p.checkKeyword("delay", v)
		t.Delay = p.value(v)
	case "async":
		p.checkKeyword("async", v)
		t.Async = p.value(v)
	case "poll":
		p.checkKeyword("poll", v)
		t.Poll = p.value(v)
	default:
		return false
	}
	return true
}

// action reads `action: module k=v` and `action: {module: name, k: v}`. Arguments after the
// module's name come before the other keys.
func (p *file) action(t *Task, n *yaml.Node) {
	n = source.Resolve(n)
	t.ModuleAt = source.NodePos(p.f, n)
	switch n.Kind {
	case yaml.ScalarNode:
		t.Module, t.Args = p.moduleWords(n)
	case yaml.MappingNode:
		args := *n
		args.Content = nil
		var words Value
		p.each(n, func(k, v *yaml.Node) {
			if k.Value == "module" {
				t.Module, words = p.moduleWords(source.Resolve(v))
				return
			}
			args.Content = append(args.Content, k, v)
		})
		if t.Args = p.value(&args); words.Text() != "" {
			t.Args = words
			p.extra(t, &args)
		}
		if t.Module == "" {
			p.errorf(n, "action has no module").WithHelp("add `module: NAME`")
		}
	default:
		p.errorf(n, "action must be text or a mapping with module:")
	}
}

// extra stores additional arguments of a task, once.
func (p *file) extra(t *Task, n *yaml.Node) {
	if t.Extra.IsSet() {
		p.errorf(n, "args cannot be combined with an action that has both k=v arguments and keys").
			WithHelp("put all arguments into one mapping")
		return
	}
	t.Extra = p.value(n)
}

// moduleWords splits `module k=v` into the name and the arguments.
func (p *file) moduleWords(n *yaml.Node) (string, Value) {
	name, arg := strings.TrimSpace(n.Value), *n
	arg.Value = ""
	if i := strings.IndexAny(name, " \t\n"); i >= 0 {
		name, arg.Value = name[:i], strings.TrimSpace(name[i:])
	}
	arg.Column += utf8.RuneCountInString(n.Value[:strings.LastIndex(n.Value, arg.Value)])
	return name, p.value(&arg)
}

func (p *file) loop(t *Task, k, v *yaml.Node, lookup string) {
	if t.Loop != nil {
		p.errorf(k, "duplicate loop in task: %s", k.Value).WithHelp("a task can have only one loop")
		return
	}
	t.Loop = &Loop{At: source.NodePos(p.f, k), Lookup: lookup, Items: p.value(v)}
	n := source.Resolve(v)
	if lookup == "" && (n.Kind == yaml.MappingNode || n.Kind == yaml.ScalarNode && !isTemplate(n.Value)) {
		p.errorf(n, "Invalid data passed to 'loop', it requires a list, got this instead: %s", shown(n)).
			WithHelp(`write a list, or a template that yields one: loop: "{{ names }}"; for a mapping use dict2items`)
	}
}

func (p *file) loopControl(t *Task, n *yaml.Node) {
	n = source.Resolve(n)
	if t.Loop == nil {
		p.errorf(n, "loop_control without a loop").WithHelp("add loop: or remove loop_control:")
		return
	}
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "loop_control must be a mapping")
		return
	}
	l := t.Loop
	known := []string{"loop_var", "index_var", "label", "pause", "extended", "extended_allitems", "break_when", "forks"}
	p.each(n, func(k, v *yaml.Node) {
		val := p.value(v)
		switch k.Value {
		case "loop_var":
			l.Var = p.loopVar(v)
		case "index_var":
			l.IndexVar = p.loopVar(v)
		case "label":
			p.check("label", Text, v)
			l.Label = val
		case "pause":
			p.check("pause", Seconds, v)
			l.Pause = val
		case "extended":
			p.check("extended", Bool, v)
			l.Extended = val
		case "extended_allitems":
			p.check("extended_allitems", Bool, v)
			l.ExtendedAllItems = val
		case "break_when":
			l.BreakWhen = p.conditions(v, "break_when")
		case "forks":
			p.check("forks", Count, v)
			l.Forks = val
		default:
			p.errorf(k, "'%s' is not a valid attribute for a LoopControl", k.Value).
				WithHelp("%s", source.DidYouMean(k.Value, known))
		}
	})
}

func (p *file) loopVar(n *yaml.Node) Value {
	if name := p.text(n, "the loop's variable"); !IsIdentifier(name) && !isTemplate(name) {
		p.errorf(n, "%q cannot be the name of a variable", name)
	}
	return p.value(n)
}

// include converts the include and import modules to *Include.
func (p *file) include(n *yaml.Node, t *Task, handlers bool) Step {
	kind := strings.TrimPrefix(strings.TrimPrefix(t.Module, "ansible.builtin."), "ansible.legacy.")
	inc := &Include{Task: t}
	switch kind {
	case "include":
		p.warnf(n, "include is deprecated and treated as include_tasks").WithHelp("use include_tasks or import_tasks")
		kind = "include_tasks"
	case "include_tasks":
	case "import_tasks":
		inc.Static = true
	case "include_role":
		inc.Role = true
	case "import_role":
		inc.Static, inc.Role = true, true
	case "import_playbook":
		p.errorf(n, "import_playbook is allowed at the top of a playbook only, not among tasks")
		return nil
	default:
		return t
	}
	t.Module = kind
	p.gather(inc)
	if handlers && inc.Role {
		p.errorf(n, "Using '%s' as a handler is not supported.", kind).WithHelp("use include_tasks")
		return nil
	}
	if inc.Static && t.Loop != nil {
		p.errorf(n, "You cannot use loops on '%s' statements", kind).
			WithHelp("use %s instead", strings.Replace(kind, "import", "include", 1))
	}
	inc.Apply = t.Args.Get("apply")
	if inc.Apply.IsSet() && inc.Static {
		p.errorf(inc.Apply.Node, "apply is only for include_*").WithHelp("an import passes its own keywords to its children")
	}
	if !inc.Static {
		p.checkInclude(n, inc)
	}
	return inc
}

// gather merges the arguments of an include: those after its name, and args.
func (p *file) gather(inc *Include) {
	if inc.Role {
		inc.Args = p.roleArgs(inc.Args)
	}
	if !inc.Extra.IsSet() {
		return
	}
	if inc.Extra.Kind() != yaml.MappingNode {
		p.errorf(inc.Extra.Node, "args of %s cannot be a template", inc.Module).WithHelp("write a mapping")
		return
	}
	all := *source.Resolve(inc.Extra.Node)
	all.Content = nil
	switch given := source.Resolve(inc.Args.Node); {
	case inc.Args.IsNull():
	case given.Kind == yaml.ScalarNode:
		all.Content = append(all.Content, textNode(given, "file"), given)
	default:
		all.Content = slices.Clone(given.Content)
	}
	first := Value{&all, p.f}
	p.each(inc.Extra.Node, func(k, v *yaml.Node) {
		if before := first.Get(k.Value); before.IsSet() {
			p.ds.Add(GivenTwice(k.Value, source.NodePos(p.f, k), before.At()))
			return
		}
		all.Content = append(all.Content, k, v)
	})
	inc.Args, inc.Extra = Value{&all, p.f}, Value{}
}

// roleArgs converts the arguments of `include_role: name=NAME` to a mapping.
func (p *file) roleArgs(args Value) Value {
	if args.IsNull() || args.Kind() != yaml.ScalarNode || strings.HasPrefix(strings.TrimSpace(args.Text()), "{{") {
		return args
	}
	words, err := SplitWords(args.Text())
	if err != nil {
		p.errorf(args.Node, "%s", err)
	}
	n := source.Resolve(args.Node)
	m := yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
	for _, w := range words {
		if w.Key == "" {
			p.errorf(n, "invalid argument %q: write the arguments of this module as key=value or as a mapping", w.Value)
			continue
		}
		m.Content = append(m.Content, textNode(n, w.Key), textNode(n, w.Value))
	}
	return Value{&m, p.f}
}

// textNode returns a node for a text that is not in the file itself, at the position of another node.
func textNode(at *yaml.Node, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: at.Line, Column: at.Column}
}

// GivenTwice returns the error for an argument that is set twice, so that one value would be lost.
func GivenTwice(name string, at, first source.Pos) *source.Diagnostic {
	d := source.Errorf(at, "argument %q is set twice (first at %s)", name, first).
		WithHelp("remove or rename one of them: the other would silently win")
	d.Width = len(name)
	return d
}

// checkInclude reports keywords that a dynamic include does not support.
func (p *file) checkInclude(n *yaml.Node, inc *Include) {
	allowed := map[string]bool{"action": true, "ignore_errors": true, "no_log": true, "run_once": true,
		"collections": true, "listen": true}
	what := "TaskInclude"
	if inc.Role {
		what = "IncludeRole"
	}
	for _, k := range p.keywords {
		if k.On&OnInclude != 0 {
			allowed[k.Name] = true
		}
	}
	p.each(n, func(k, v *yaml.Node) {
		kw := p.keyword(k.Value)
		if kw == nil || allowed[kw.Name] {
			return
		}
		p.errorf(k, "'%s' is not a valid attribute for a %s", k.Value, what).
			WithHelp("to pass it to the tasks inside, use apply: {%s: ...}", k.Value)
	})
}

// ApplyAttrs parses the apply: mapping of an include.
func (ps *Parser) ApplyAttrs(v Value) (*Attrs, source.Diagnostics) {
	p := &file{Parser: ps, f: v.File}
	a := &Attrs{}
	if v.Kind() != yaml.MappingNode {
		p.errorf(v.Node, "apply must be a mapping of keywords")
		return a, p.ds
	}
	p.each(source.Resolve(v.Node), func(k, val *yaml.Node) {
		if k.Value == "name" {
			return
		}
		if !p.attr(a, OnBlock, k, val) {
			p.unknown(k, OnBlock, "Block")
		}
	})
	return a, p.ds
}

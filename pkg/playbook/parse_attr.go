package playbook

import (
	"fmt"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// conditionOnText is the lint rule of warnings about conditions.
const conditionOnText = "condition-on-text"

// names lists the keywords of a place, for hints.
func (p *file) names(on Place) []string {
	var out []string
	for _, k := range p.keywords {
		if k.On&on != 0 {
			out = append(out, k.Name)
			out = append(out, k.Aliases...)
		}
	}
	sort.Strings(out)
	return out
}

func (p *file) keyword(name string) *Keyword {
	for i := range p.keywords {
		k := &p.keywords[i]
		if k.Name == name {
			return k
		}
		for _, a := range k.Aliases {
			if a == name {
				return k
			}
		}
	}
	return nil
}

// unknown reports a key that is not a keyword of the place.
func (p *file) unknown(k *yaml.Node, on Place, what string) *source.Diagnostic {
	if why, ok := unsupported()[k.Value]; ok {
		return p.errorf(k, "keyword %q is not supported", k.Value).WithHelp("%s", why)
	}
	if kw := p.keyword(k.Value); kw != nil {
		return p.errorf(k, "'%s' is not a valid attribute for a %s", k.Value, what).WithHelp("it is allowed on %s", kw.On)
	}
	return p.errorf(k, "'%s' is not a valid attribute for a %s", k.Value, what).
		WithHelp("%s", source.DidYouMean(k.Value, p.names(on)))
}

func (o Place) String() string {
	var out []string
	for _, p := range []struct {
		on   Place
		name string
	}{{OnPlay, "plays"}, {OnRole, "roles"}, {OnBlock, "blocks"}, {OnTask, "tasks"}, {OnInclude, "includes"}} {
		if o&p.on != 0 {
			out = append(out, p.name)
		}
	}
	return strings.Join(out, ", ")
}

// attr stores an inherited keyword, and reports whether the key is one.
func (p *file) attr(a *Attrs, on Place, k, v *yaml.Node) bool {
	kw := p.keyword(k.Value)
	if kw == nil || !kw.Inherited || kw.On&on == 0 {
		return false
	}
	if kw.Name != k.Value && on != OnPlay {
		return false // in tasks user is a module; only in plays it means remote_user
	}
	if kw.field != nil {
		p.check(kw.Name, kw.Type, v)
		*kw.field(a) = p.value(v)
		return true
	}
	val := p.value(v)
	switch kw.Name {
	case "when":
		a.When = p.conditions(v, "when")
	case "tags":
		a.Tags = p.tags(v)
	case "notify":
		a.Notify = p.words(v, "notify")
	case "environment":
		p.check(kw.Name, kw.Type, v)
		p.environment(val)
		a.Environment = val.Elements()
	case "module_defaults":
		p.check(kw.Name, kw.Type, v)
		a.ModuleDefaults = val.Elements()
	case "vars":
		a.Vars = p.vars(v, "vars")
	case "collections":
		a.Collections = p.words(v, "collections")
	case "debugger":
		p.debugger(val)
	}
	return true
}

// debugger checks a keyword that has no effect.
func (p *file) debugger(v Value) {
	p.checkKeyword("debugger", v.Node)
	if _, err := Debugger.Convert(v.Text()); v.IsTemplate() || err == nil && v.Text() != "never" {
		p.warnf(v.Node, "debugger has no effect: kk has no task debugger").
			WithHelp("show the results of tasks with -v, or run tasks one by one with --step")
	}
}

// environment reports invalid names of environment variables.
func (p *file) environment(v Value) {
	for _, e := range v.Elements() {
		if e.Kind() != yaml.MappingNode {
			continue
		}
		p.each(source.Resolve(e.Node), func(k, _ *yaml.Node) {
			if !IsIdentifier(k.Value) && !isTemplate(k.Value) {
				p.errorf(k, "%q cannot be the name of an environment variable", k.Value).
					WithHelp("use letters, digits and _, not starting with a digit")
			}
		})
	}
}

// conditions reads a condition or a list of them; null and "" are always true.
func (p *file) conditions(n *yaml.Node, what string) []Value {
	var out []Value
	for _, v := range (Value{n, p.f}).Elements() {
		if v.Kind() != yaml.ScalarNode {
			p.errorf(v.Node, "a condition of %s must be an expression, not a %s", what, kindName(v.Node))
			continue
		}
		if v.IsNull() || strings.TrimSpace(v.Text()) == "" {
			continue
		}
		if s := strings.ToLower(v.Text()); source.Resolve(v.Node).Style != 0 && (s == "false" || s == "no") &&
			what == "when" {
			p.warnf(v.Node, "when: %q is a string; as an expression it is the boolean false", v.Text()).
				WithHelp("write it without quotes").Rule = conditionOnText
		}
		if strings.HasPrefix(strings.TrimSpace(v.Text()), "{{") {
			p.warnf(v.Node, "%s is an expression already: remove the {{ }}", what).Rule = conditionOnText
		}
		out = append(out, v)
	}
	return out
}

// tags reads a list of tags, or one string of tags separated by commas. In a list, a comma is part of the tag. The
// results of templates are split when they are known.
func (p *file) tags(n *yaml.Node) []Value {
	words := p.words(n, "tags")
	if len(words) != 1 || source.Resolve(n).Kind != yaml.ScalarNode || isTemplate(words[0].Text()) {
		return words
	}
	var out []Value
	column := source.Resolve(words[0].Node).Column
	for _, t := range strings.Split(words[0].Text(), ",") {
		one := *source.Resolve(words[0].Node)
		one.Value = strings.TrimSpace(t)
		one.Column = column + len(t) - len(strings.TrimLeft(t, " "))
		column += len(t) + 1
		if one.Value != "" {
			out = append(out, Value{&one, p.f})
		}
	}
	return out
}

// words reads a list of strings, or one string.
func (p *file) words(n *yaml.Node, what string) []Value {
	var out []Value
	for _, v := range (Value{n, p.f}).Elements() {
		if v.Kind() != yaml.ScalarNode {
			p.errorf(v.Node, "%s must be a string or a list of strings", what)
			continue
		}
		out = append(out, v)
	}
	return out
}

func kindName(n *yaml.Node) string {
	switch source.Resolve(n).Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	}
	return "scalar"
}

// IsTemplate reports whether a text contains a template.
func IsTemplate(s string) bool { return isTemplate(s) }

func isTemplate(s string) bool { return strings.Contains(s, "{{") || strings.Contains(s, "{%") }

// check reports literals of the wrong type. If a list of values is allowed, each is checked.
func (p *file) check(name string, t Type, n *yaml.Node) {
	if t != Batch && t != Map && t != Files {
		p.checkOne(name, t, n)
		return
	}
	for _, v := range (Value{n, p.f}).Elements() {
		p.checkOne(name, t, v.Node)
	}
}

// checkKeyword reports literals of the wrong type for a keyword.
func (p *file) checkKeyword(name string, n *yaml.Node) { p.check(name, p.keyword(name).Type, n) }

func (p *file) checkOne(name string, t Type, n *yaml.Node) {
	n = source.Resolve(n)
	v, known := literal(n)
	if !known || v == nil || t == Map && v == "" {
		return
	}
	_, want := t.convert(v)
	if v == "" && t == Bool {
		want = "true or false" // accepted from a template, but not as a literal
	}
	if want == "" {
		return
	}
	bad := &TypeError{Want: want, Choices: t.choices(), Got: v}
	if help := bad.Help(); help != "" {
		p.errorf(n, "%s %s is not supported", name, shown(n)).WithHelp("%s", help)
		return
	}
	p.errorf(n, "%s must be %s, not %s", name, want, shown(n))
}

// literal returns the value of a node if it is known before the run: scalars, lists of scalars, and empty mappings.
// Templates and vault-encrypted values are not known yet.
func literal(n *yaml.Node) (v any, known bool) {
	switch n.Kind {
	case yaml.MappingNode:
		return value.NewDict(), true
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			list[i], _ = literal(source.Resolve(c))
		}
		return list, true
	}
	if isTemplate(n.Value) || value.IsSealed(n) {
		return nil, false
	}
	v, err := value.Scalar(n)
	return v, err == nil // invalid data is reported where it is compiled
}

func shown(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return "a " + kindName(n)
	}
	if len(n.Value) > 40 {
		return fmt.Sprintf("%q...", n.Value[:40])
	}
	return fmt.Sprintf("%q", n.Value)
}

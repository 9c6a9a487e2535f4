package playbook

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// conditionOnText is the rule of kk lint that warnings on conditions belong to.
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

// unknown reports a key that is no keyword of the place.
func (p *file) unknown(k *yaml.Node, on Place, what string) *source.Diagnostic {
	if why, ok := refused()[k.Value]; ok {
		return p.errorf(k, "keyword %q is not supported", k.Value).WithHelp("%s", why)
	}
	if kw := p.keyword(k.Value); kw != nil {
		return p.errorf(k, "'%s' is not a valid attribute for a %s", k.Value, what).WithHelp("it stands on %s", kw.On)
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
		return false // on tasks user is the module; only plays have it as remote_user
	}
	if kw.field != nil {
		p.check(kw, v)
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
		a.Environment = val.Elements()
	case "module_defaults":
		a.ModuleDefaults = val.Elements()
	case "vars":
		a.Vars = p.vars(v, "vars")
	case "collections":
		a.Collections = val.Elements()
	case "debugger":
		p.debugger(val)
	}
	return true
}

// debugger checks a keyword that has no effect.
func (p *file) debugger(v Value) {
	effective := []string{"always", "on_failed", "on_unreachable", "on_skipped"}
	p.oneOf(v, "debugger", append(effective, "never")...)
	if slices.Contains(effective, v.Text()) || isTemplate(v.Text()) {
		p.warnf(v.Node, "debugger has no effect: kk has no task debugger").WithHelp("look at what a task returns with -v, or run tasks one by one with --step")
	}
}

// conditions reads a condition or a list of them; null and "" hold always.
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
		if s := strings.ToLower(v.Text()); resolve(v.Node).Style != 0 && (s == "false" || s == "no") && what == "when" {
			p.warnf(v.Node, "when: %q is a string; as an expression it is the boolean false", v.Text()).WithHelp("write it without quotes").Rule = conditionOnText
		}
		if strings.HasPrefix(strings.TrimSpace(v.Text()), "{{") {
			p.warnf(v.Node, "%s needs no {{ }}: it is an expression already", what).Rule = conditionOnText
		}
		out = append(out, v)
	}
	return out
}

// tags reads a list of tags, or one string of tags with commas. In a list a comma
// is part of a tag; what a template yields is told apart when it is known.
func (p *file) tags(n *yaml.Node) []Value {
	words := p.words(n, "tags")
	if len(words) != 1 || resolve(n).Kind != yaml.ScalarNode || isTemplate(words[0].Text()) {
		return words
	}
	var out []Value
	column := resolve(words[0].Node).Column
	for _, t := range strings.Split(words[0].Text(), ",") {
		one := *resolve(words[0].Node)
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
	switch resolve(n).Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	}
	return "scalar"
}

// isTemplate reports whether a scalar has a template in it.
func isTemplate(s string) bool { return strings.Contains(s, "{{") || strings.Contains(s, "{%") }

var (
	boolWord = regexp.MustCompile(`^(?i:yes|no|on|off|true|false|1|0|t|f|y|n)$`)
	intWord  = regexp.MustCompile(`^\s*[-+]?\d+\s*$`)
	numWord  = regexp.MustCompile(`^\s*[-+]?\d+(\.\d+)?\s*%?\s*$`)
)

// check reports a literal of the wrong type.
func (p *file) check(kw *Keyword, n *yaml.Node) {
	n = resolve(n)
	bad := func(want string) {
		p.errorf(n, "%s must be %s, not %s", kw.Name, want, shown(n))
	}
	if n.Kind != yaml.ScalarNode {
		switch kw.Type {
		case Bool:
			bad("true or false")
		case Int:
			bad("a whole number")
		case Float:
			bad("a number")
		case Text:
			bad("a string")
		}
		return
	}
	if isTemplate(n.Value) || n.ShortTag() == "!!null" {
		return
	}
	switch {
	case kw.Type == Bool && !boolWord.MatchString(n.Value):
		bad("true or false")
	case kw.Type == Int && !intWord.MatchString(n.Value):
		bad("a whole number")
	case kw.Type == Float && !numWord.MatchString(n.Value):
		bad("a number")
	}
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

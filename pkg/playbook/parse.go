package playbook

import (
	"regexp"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// Parser parses playbooks, task files and the other files of roles. It reports all problems of
// a file, not only the first.
type Parser struct {
	// IsModule helps to distinguish a mistyped keyword from a second module. It may be nil.
	IsModule func(name string) bool

	keywords []Keyword
}

// NewParser creates a parser.
func NewParser(isModule func(string) bool) *Parser {
	return &Parser{IsModule: isModule, keywords: Keywords()}
}

// file is the state of parsing one file.
type file struct {
	*Parser
	f  *source.File
	ds source.Diagnostics
}

func (p *file) value(n *yaml.Node) Value { return Value{n, p.f} }

func (p *file) errorf(n *yaml.Node, format string, args ...any) *source.Diagnostic {
	d := source.Errorf(source.NodePos(p.f, n), format, args...)
	if n != nil && n.Kind == yaml.ScalarNode {
		d.Width = utf8.RuneCountInString(n.Value)
	}
	p.ds.Add(d)
	return d
}

func (p *file) warnf(n *yaml.Node, format string, args ...any) *source.Diagnostic {
	d := source.Warningf(source.NodePos(p.f, n), format, args...)
	p.ds.Add(d)
	return d
}

// open parses the YAML and returns the root node of the only document; nil if the file is
// empty or broken.
func (p *file) open() *yaml.Node {
	docs, ds := source.ParseYAML(p.f)
	p.ds = append(p.ds, ds...)
	if len(docs) > 1 {
		p.errorf(docs[1], "a second YAML document").WithHelp("put everything under one ---")
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 {
		return nil
	}
	root := source.Resolve(docs[0].Content[0])
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil
	}
	return root
}

// Playbook parses a file of plays.
func (ps *Parser) Playbook(f *source.File) (*Playbook, source.Diagnostics) {
	p := &file{Parser: ps, f: f}
	pb := &Playbook{File: f}
	root := p.open()
	switch {
	case root == nil && p.ds.Err() == nil:
		p.ds.Add(source.Errorf(source.Pos{File: f, Line: 1, Col: 1}, "the playbook is empty").
			WithHelp("a playbook is a list of plays: `- hosts: all`"))
	case root != nil && root.Kind != yaml.SequenceNode:
		p.errorf(root, "a playbook must be a list of plays").WithHelp("%s", p.noPlays(root))
	case root != nil && p.looksLikeTasks(root):
		p.errorf(root.Content[0], "expected a playbook, found a list of tasks").
			WithHelp("put it under tasks: of a play, or import it there with import_tasks")
	case root != nil:
		for _, n := range root.Content {
			if item := p.item(source.Resolve(n)); item != nil {
				pb.Items = append(pb.Items, item)
			}
		}
	}
	return pb, p.ds
}

// noPlays guesses the content of a file that is not a list.
func (p *file) noPlays(root *yaml.Node) string {
	v := p.value(root)
	if v.Get("hosts").Kind() == yaml.MappingNode || v.Get("all").IsSet() || v.Get("kind").IsSet() {
		return "is this an inventory? pass it with -i"
	}
	return "start each play with `- hosts: ...`"
}

// looksLikeTasks reports whether a list contains no play, and its first element has a module.
func (p *file) looksLikeTasks(root *yaml.Node) bool {
	elements := p.value(root).Elements()
	for _, e := range elements {
		if e.Get("hosts").IsSet() || e.Get("import_playbook").IsSet() || e.Get("ansible.builtin.import_playbook").IsSet() {
			return false
		}
	}
	if p.IsModule == nil || len(elements) == 0 || elements[0].Kind() != yaml.MappingNode {
		return false
	}
	first := source.Resolve(elements[0].Node)
	for i := 0; i < len(first.Content); i += 2 {
		if name := first.Content[i].Value; p.IsModule(name) && p.keyword(name) == nil {
			return true
		}
	}
	return false
}

// Tasks parses a file of tasks; with handlers, a file of handlers.
func (ps *Parser) Tasks(f *source.File, handlers bool) ([]Step, source.Diagnostics) {
	p := &file{Parser: ps, f: f}
	root := p.open()
	if root == nil {
		return nil, p.ds
	}
	if root.Kind == yaml.SequenceNode && looksLikePlays(root) {
		p.errorf(root.Content[0], "expected a list of tasks, found a playbook").
			WithHelp("use import_playbook at the top of a playbook")
		return nil, p.ds
	}
	return p.steps(root, handlers), p.ds
}

func looksLikePlays(root *yaml.Node) bool {
	v := Value{Node: root}
	for _, e := range v.Elements() {
		if e.Get("hosts").IsSet() && !e.Get("name").IsNull() || e.Get("hosts").IsSet() && e.Get("tasks").IsSet() {
			return true
		}
	}
	return false
}

// Vars parses a variables file: a mapping of names.
func (ps *Parser) Vars(f *source.File) (*Vars, source.Diagnostics) {
	p := &file{Parser: ps, f: f}
	root := p.open()
	if root == nil {
		return &Vars{}, p.ds
	}
	return p.vars(root, "a file of variables"), p.ds
}

// Meta is the part of a role's meta/main.yml that kk uses.
type Meta struct {
	Dependencies    []*RoleEntry
	AllowDuplicates bool
	ArgumentSpecs   Value // by entry point
	Collections     []Value
}

// ArgumentSpecs parses a role's meta/argument_specs.yml.
func (ps *Parser) ArgumentSpecs(f *source.File) (Value, source.Diagnostics) {
	p := &file{Parser: ps, f: f}
	root := p.open()
	if root == nil {
		return Value{}, p.ds
	}
	if root.Kind != yaml.MappingNode {
		p.errorf(root, "meta/argument_specs.yml must be a mapping with argument_specs:")
		return Value{}, p.ds
	}
	return p.value(root).Get("argument_specs"), p.ds
}

// Meta parses a role's meta/main.yml.
func (ps *Parser) Meta(f *source.File) (*Meta, source.Diagnostics) {
	p := &file{Parser: ps, f: f}
	m := &Meta{}
	root := p.open()
	if root == nil {
		return m, p.ds
	}
	if root.Kind != yaml.MappingNode {
		p.errorf(root, "meta/main.yml must be a mapping")
		return m, p.ds
	}
	known := []string{"dependencies", "allow_duplicates", "galaxy_info", "collections", "argument_specs"}
	p.each(root, func(k, v *yaml.Node) {
		switch k.Value {
		case "dependencies":
			m.Dependencies = p.roles(v)
		case "allow_duplicates":
			p.check("allow_duplicates", Bool, v)
			given, _ := literal(source.Resolve(v))
			m.AllowDuplicates, _ = boolean(given)
		case "galaxy_info":
		case "collections":
			m.Collections = p.value(v).Elements()
		case "argument_specs":
			m.ArgumentSpecs = p.value(v)
		default:
			p.errorf(k, "meta/main.yml has no key %q", k.Value).WithHelp("%s", source.DidYouMean(k.Value, known))
		}
	})
	return m, p.ds
}

// each calls f for every key of a mapping, and reports keys that are not strings.
func (p *file) each(n *yaml.Node, f func(k, v *yaml.Node)) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.ShortTag() == "!!merge" {
			p.merged(source.Resolve(n.Content[i+1]), n, f)
			continue
		}
		if k.Kind != yaml.ScalarNode {
			p.errorf(k, "a key must be a string")
			continue
		}
		f(k, n.Content[i+1])
	}
}

// merged calls f for the keys of a merge key (<<) that the mapping itself does not have.
func (p *file) merged(from, into *yaml.Node, f func(k, v *yaml.Node)) {
	for _, v := range (Value{from, p.f}).Elements() {
		n := source.Resolve(v.Node)
		if n.Kind != yaml.MappingNode {
			p.errorf(n, "<< needs a mapping")
			continue
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !(Value{into, p.f}).Get(n.Content[i].Value).IsSet() {
				f(n.Content[i], n.Content[i+1])
			}
		}
	}
}

// list accepts a list; null is an empty list.
func (p *file) list(n *yaml.Node, what string) []*yaml.Node {
	n = source.Resolve(n)
	if (Value{n, p.f}).IsNull() {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		p.errorf(n, "%s must be a list", what).WithHelp("start each element with `- `")
		return nil
	}
	out := make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out[i] = source.Resolve(c)
	}
	return out
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsIdentifier reports whether s is a valid variable name.
func IsIdentifier(s string) bool { return identifier.MatchString(s) }

func (p *file) vars(n *yaml.Node, what string) *Vars {
	out := &Vars{Values: map[string]Value{}}
	n = source.Resolve(n)
	if (Value{n, p.f}).IsNull() {
		return out
	}
	if n.Kind == yaml.SequenceNode { // a list of mappings is the language's oldest form
		for _, c := range n.Content {
			out.merge(p.vars(c, what))
		}
		return out
	}
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "%s must be a mapping of names to values", what)
		return out
	}
	p.each(n, func(k, v *yaml.Node) {
		if !IsIdentifier(k.Value) {
			p.errorf(k, "%q cannot be the name of a variable", k.Value).
				WithHelp("use letters, digits and _, not starting with a digit")
			return
		}
		out.set(k.Value, p.value(v))
	})
	return out
}

func (v *Vars) set(name string, to Value) {
	if v.Values == nil {
		v.Values = map[string]Value{}
	}
	if _, ok := v.Values[name]; !ok {
		v.Names = append(v.Names, name)
	}
	v.Values[name] = to
}

func (v *Vars) merge(more *Vars) {
	for _, n := range more.Names {
		v.set(n, more.Values[n])
	}
}

package inventory

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// yaml reads Ansible's YAML inventory, the KubeKey kind, or the JSON of a script.
func (l *loader) yaml(f *source.File, path string) {
	root, d := parseYAML(f)
	if d != nil {
		l.ds.Add(d)
		return
	}
	if root == nil {
		return
	}
	y := &yamlFile{loader: l, file: f, path: path}
	if root.Kind != yaml.MappingNode {
		y.fail(root, "an inventory is a mapping of groups, found %s", kindName(root)).
			WithHelp("start with `all:` and put hosts under `hosts:`")
		return
	}
	y.ds.Add(source.Tags(f, root)...)
	switch {
	case child(root, "kind") != nil && (child(root, "apiVersion") != nil || child(root, "spec") != nil):
		y.kubekey(root)
	case child(root, "plugin") != nil:
		y.fail(child(root, "plugin"), "inventory plugins are not supported").WithHelp("write the hosts down, or use an executable that prints JSON")
	case child(root, "_meta") != nil:
		y.listing(root)
	default:
		for k, v := range y.pairs(root, "the inventory") {
			y.group(k, v, 0)
		}
	}
}

// parseYAML returns the top node of a file's only document, nil when it has none.
func parseYAML(f *source.File) (*yaml.Node, *source.Diagnostic) {
	dec := yaml.NewDecoder(bytes.NewReader(f.Text))
	var doc, next yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, source.SyntaxError(f, err)
	}
	if err := dec.Decode(&next); err == nil {
		return nil, source.Errorf(source.Pos{File: f, Line: max(1, next.Line), Col: 1}, "a second document starts here").
			WithHelp("keep one document a file")
	} else if !errors.Is(err, io.EOF) {
		return nil, source.SyntaxError(f, err)
	}
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		return nil, nil
	}
	return doc.Content[0], nil
}

type yamlFile struct {
	*loader
	file *source.File
	path string

	visits int // of groups: aliases can make few lines into very many
}

func (y *yamlFile) at(n *yaml.Node) source.Pos { return nodePos(y.file, n) }

// nodePos is where a node starts; yaml counts columns in runes as we do.
func nodePos(f *source.File, n *yaml.Node) source.Pos {
	return source.Pos{File: f, Line: n.Line, Col: n.Column}
}

func (y *yamlFile) fail(n *yaml.Node, format string, args ...any) *source.Diagnostic {
	d := source.Errorf(y.at(n), format, args...)
	d.Width = utf8.RuneCountInString(n.Value)
	y.ds.Add(d)
	return d
}

// maxGroupDepth bounds groups nested in groups, maxVisits how many are read.
const (
	maxGroupDepth = 100
	maxVisits     = 100_000
)

func (y *yamlFile) group(key, n *yaml.Node, depth int) *group {
	g := y.inv.group(key.Value, y.at(key))
	n = deref(n)
	if y.visits++; y.visits > maxVisits {
		if y.visits == maxVisits+1 {
			y.fail(key, "aliases expand to more than %d groups", maxVisits)
		}
		return g
	}
	if depth > maxGroupDepth {
		y.fail(key, "groups are nested deeper than %d levels", maxGroupDepth)
		return g
	}
	if isNull(n) {
		return g
	}
	if n.Kind != yaml.MappingNode {
		y.fail(n, "group %q must be a mapping with hosts, children or vars, found %s", key.Value, kindName(n))
		return g
	}
	for k, v := range y.pairs(n, "group "+strconv.Quote(key.Value)) {
		switch k.Value {
		case "hosts":
			y.hosts(g, v)
		case "children":
			y.children(g, v, depth)
		case "vars":
			g.setVars(y.varSet(v))
		default:
			y.fail(k, "group %q has no key %q", key.Value, k.Value).
				WithHelp("%s", orElse(source.DidYouMean(k.Value, []string{"hosts", "children", "vars"}), "a group has hosts, children and vars"))
		}
	}
	return g
}

func (y *yamlFile) hosts(g *group, n *yaml.Node) {
	n = deref(n)
	switch {
	case isNull(n):
	case n.Kind == yaml.ScalarNode:
		y.host(g, n, nil)
	case n.Kind == yaml.MappingNode:
		for k, v := range y.pairs(n, "hosts of "+strconv.Quote(g.name)) {
			y.host(g, k, v)
		}
	default:
		y.fail(n, "hosts of group %q must be a mapping of names, found %s", g.name, kindName(n)).
			WithHelp("write `node1:` with a colon instead of `- node1`")
	}
}

func (y *yamlFile) host(g *group, key, vars *yaml.Node) {
	names, port, err := expandHosts(key.Value)
	if err != nil {
		y.fail(key, "%v", err)
		return
	}
	set := y.varSet(vars)
	for _, name := range names {
		h := y.inv.host(name, y.path)
		g.join(h)
		if g.name == Ungrouped {
			y.inv.groups[All].join(h)
		}
		if port > 0 {
			h.vars = append(h.vars, portVar(y.file.Name, port, y.at(key)))
		}
		if set != nil {
			h.vars = append(h.vars, set)
		}
	}
}

func portVar(name string, port int, at source.Pos) *VarSet {
	return &VarSet{Name: name, Values: value.NewDict("ansible_port", port), at: []keyPos{{"ansible_port", at}}}
}

func (y *yamlFile) children(g *group, n *yaml.Node, depth int) {
	n = deref(n)
	switch {
	case isNull(n):
	case n.Kind == yaml.ScalarNode:
		y.adopt(g, y.inv.group(n.Value, y.at(n)), n)
	case n.Kind == yaml.MappingNode:
		for k, v := range y.pairs(n, "children of "+strconv.Quote(g.name)) {
			if y.visits > maxVisits {
				return
			}
			y.adopt(g, y.group(k, v, depth+1), k)
		}
	default:
		y.fail(n, "children of group %q must be a mapping of groups, found %s", g.name, kindName(n)).
			WithHelp("write `web:` with a colon instead of `- web`")
	}
}

func (y *yamlFile) adopt(g, child *group, at *yaml.Node) {
	if err := g.adopt(child); err != nil {
		y.fail(at, "%v", err).WithHelp("remove one of the two")
	}
}

// pairs ranges over the keys of a mapping, merge keys applied; a repeated key is an error.
func (y *yamlFile) pairs(n *yaml.Node, of string) func(func(k, v *yaml.Node) bool) {
	return func(yield func(k, v *yaml.Node) bool) {
		seen := map[string]*yaml.Node{}
		var merged []*yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := deref(n.Content[i]), n.Content[i+1]
			switch {
			case k.ShortTag() == "!!merge":
				merged = append(merged, deref(v))
				continue
			case k.Kind != yaml.ScalarNode:
				y.fail(k, "a key of %s must be a name, found %s", of, kindName(k))
				continue
			case seen[k.Value] != nil:
				y.fail(k, "%q is already in %s", k.Value, of).WithHelp("the first is at line %d; keep one of them", seen[k.Value].Line)
				continue
			}
			seen[k.Value] = k
			if !yield(k, v) {
				return
			}
		}
		for _, m := range merged {
			for i := 0; m.Kind == yaml.MappingNode && i+1 < len(m.Content); i += 2 {
				if k := m.Content[i]; seen[k.Value] == nil && !yield(k, m.Content[i+1]) {
					return
				}
			}
		}
	}
}

func (y *yamlFile) varSet(n *yaml.Node) *VarSet {
	set, ds := nodeVars(y.file, n)
	y.ds.Add(ds...)
	return y.sealed(set)
}

// nodeVars turns a mapping into variables; nil when it is empty.
func nodeVars(f *source.File, n *yaml.Node) (*VarSet, source.Diagnostics) {
	if n = deref(n); isNull(n) {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, source.Diagnostics{source.Errorf(nodePos(f, n), "variables must be a mapping, found %s", kindName(n)).
			WithHelp("write `name: value`")}
	}
	v, err := value.FromYAMLFile(n, f.Name)
	var bad *value.YAMLError
	if errors.As(err, &bad) {
		return nil, source.Diagnostics{source.Errorf(source.Pos{File: f, Line: bad.Line, Col: bad.Col}, "%s", bad.Msg)}
	}
	set := &VarSet{Name: f.Name, Values: v.(*value.Dict)}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		set.at = append(set.at, keyPos{k.Value, nodePos(f, k)})
		if hasUnsafe(n.Content[i+1], 0) {
			set.unsafe = append(set.unsafe, k.Value)
		}
	}
	return set, nil
}

func hasUnsafe(n *yaml.Node, depth int) bool {
	return depth < maxGroupDepth && (n.Tag == "!unsafe" ||
		slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return hasUnsafe(c, depth+1) }))
}

var identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// sealed finishes a set of variables: odd names are warned of, secrets told.
func (l *loader) sealed(s *VarSet) *VarSet {
	if s == nil {
		return nil
	}
	l.ds.Add(s.oddNames()...)
	l.inv.secrets.tell(s)
	return s
}

func (s *VarSet) oddNames() source.Diagnostics {
	var ds source.Diagnostics
	for k := range s.Values.All() {
		if name := value.Str(k); !identifier.MatchString(name) {
			ds.Add(source.Warningf(s.At(name), "variable name %q is not a valid one: no template can use it", name).
				WithHelp("use letters, digits and _, and no digit first"))
		}
	}
	return ds
}

package inventory

import (
	"errors"
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
	root, ds := parseYAML(f)
	l.ds.Add(ds...)
	if root == nil {
		return
	}
	y := &yamlFile{loader: l, file: f, path: path}
	if root.Kind != yaml.MappingNode {
		y.fail(root, "an inventory is a mapping of groups, found %s", kindName(root)).
			WithHelp("start with `all:` and put hosts under `hosts:`")
		return
	}
	switch {
	case child(root, "kind") != nil && (child(root, "apiVersion") != nil || child(root, "spec") != nil):
		y.kubekey(root)
	case child(root, "plugin") != nil:
		y.fail(child(root, "plugin"), "inventory plugins are not supported").
			WithHelp("list the hosts, or use an executable that prints JSON")
	case child(root, "_meta") != nil:
		y.listing(root)
	default:
		for k, v := range y.pairs(root, "the inventory") {
			y.group(k, v)
		}
	}
}

// parseYAML returns the top node of a file's only document, nil if there is none to read. It
// can be returned along with errors: more are found below it.
func parseYAML(f *source.File) (*yaml.Node, source.Diagnostics) {
	docs, ds := source.ParseYAML(f)
	if d := OldVersion(f, docs, "inventory"); d != nil {
		return nil, source.Diagnostics{d}
	}
	if len(docs) > 1 {
		ds.Add(source.Errorf(source.NodePos(f, docs[1]), "a second YAML document").WithHelp("put everything under one ---"))
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 || isNull(docs[0].Content[0]) {
		return nil, ds
	}
	return docs[0].Content[0], ds
}

type yamlFile struct {
	*loader
	file *source.File
	path string
}

func (y *yamlFile) at(n *yaml.Node) source.Pos { return source.NodePos(y.file, n) }

func (y *yamlFile) fail(n *yaml.Node, format string, args ...any) *source.Diagnostic {
	d := source.Errorf(y.at(n), format, args...)
	d.Width = utf8.RuneCountInString(n.Value)
	y.ds.Add(d)
	return d
}

func (y *yamlFile) group(key, n *yaml.Node) *group {
	g := y.inv.group(key.Value, y.at(key))
	n = source.Resolve(n)
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
			y.children(g, v)
		case "vars":
			g.setVars(y.varSet(v))
		default:
			y.fail(k, "group %q has no key %q", key.Value, k.Value).
				WithHelp("%s", orElse(source.DidYouMean(k.Value, []string{"hosts", "children", "vars"}),
					"a group has hosts, children and vars"))
		}
	}
	return g
}

func (y *yamlFile) hosts(g *group, n *yaml.Node) {
	n = source.Resolve(n)
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
		h := y.inv.hostAt(name, y.path, y.at(key))
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

func (y *yamlFile) children(g *group, n *yaml.Node) {
	n = source.Resolve(n)
	switch {
	case isNull(n):
	case n.Kind == yaml.ScalarNode:
		y.addChild(g, y.inv.group(n.Value, y.at(n)), n)
	case n.Kind == yaml.MappingNode:
		for k, v := range y.pairs(n, "children of "+strconv.Quote(g.name)) {
			y.addChild(g, y.group(k, v), k)
		}
	default:
		y.fail(n, "children of group %q must be a mapping of groups, found %s", g.name, kindName(n)).
			WithHelp("write `web:` with a colon instead of `- web`")
	}
}

func (y *yamlFile) addChild(g, child *group, at *yaml.Node) {
	if err := g.addChild(child); err != nil {
		y.fail(at, "%v", err).WithHelp("remove one of the two")
	}
}

// pairs iterates over the keys of a mapping, with merge keys applied.
func (y *yamlFile) pairs(n *yaml.Node, of string) func(func(k, v *yaml.Node) bool) {
	return func(yield func(k, v *yaml.Node) bool) {
		own := map[string]bool{}
		var merged []*yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := source.Resolve(n.Content[i]), n.Content[i+1]
			switch {
			case k.ShortTag() == "!!merge":
				merged = append(merged, source.Resolve(v))
				continue
			case k.Kind != yaml.ScalarNode:
				y.fail(k, "a key of %s must be a name, found %s", of, kindName(k))
				continue
			}
			own[k.Value] = true
			if !yield(k, v) {
				return
			}
		}
		for _, m := range merged {
			for i := 0; m.Kind == yaml.MappingNode && i+1 < len(m.Content); i += 2 {
				if k := m.Content[i]; !own[k.Value] && !yield(k, m.Content[i+1]) {
					return
				}
			}
		}
	}
}

func (y *yamlFile) varSet(n *yaml.Node) *VarSet {
	set, ds := nodeVars(y.file, n, y.ds)
	y.ds.Add(ds...)
	return y.sealed(set)
}

// nodeVars converts a mapping to variables; nil if it is empty. Problems that are already in
// found are not reported again.
func nodeVars(f *source.File, n *yaml.Node, found source.Diagnostics) (*VarSet, source.Diagnostics) {
	if n = source.Resolve(n); isNull(n) {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, source.Diagnostics{source.Errorf(source.NodePos(f, n), "variables must be a mapping, found %s",
			kindName(n)).
			WithHelp("write `name: value`")}
	}
	v, err := value.FromYAMLFile(n, f.Name)
	var bad *value.YAMLError
	if errors.As(err, &bad) {
		at := source.Pos{File: f, Line: bad.Line, Col: bad.Col}
		if slices.ContainsFunc(found, func(d *source.Diagnostic) bool { return d.Pos == at }) {
			return nil, nil
		}
		return nil, source.Diagnostics{source.Errorf(at, "%s", bad.Msg)}
	}
	set := &VarSet{Name: f.Name, Values: v.(*value.Dict)}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		set.at = append(set.at, keyPos{k.Value, source.NodePos(f, k)})
		if hasUnsafe(n.Content[i+1]) {
			set.unsafe = append(set.unsafe, k.Value)
		}
	}
	return set, nil
}

func hasUnsafe(n *yaml.Node) bool {
	return n.Tag == "!unsafe" || slices.ContainsFunc(n.Content, hasUnsafe)
}

var identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// sealed completes a set of variables: it warns about invalid names and collects secrets.
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
			ds.Add(source.Warningf(s.At(name), "variable name %q is not valid: no template can use it", name).
				WithHelp("use letters, digits and _, not starting with a digit"))
		}
	}
	return ds
}

package cli

import (
	"errors"
	"slices"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/config"
	"kubekey/pkg/inventory"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// configure checks what people set for playbooks whose project has a schema
// of its config, and makes the merged config the run's highest layers. What
// is wrong is left in the session. It reports whether there is a schema.
func (a *app) configure(s *session, playbooks []string) bool {
	schemas := a.schemas(playbooks)
	if len(schemas) == 0 {
		return false
	}
	if len(schemas) > 1 {
		s.warnings.Add(source.Errorf(source.Pos{}, "the playbooks use different config schemas (%s, %s)", schemas[0], schemas[1]).
			WithHelp("run them in separate commands"))
		return true
	}
	schema, ds := config.Load(a.tree, schemas[0])
	s.warnings.Add(ds...)
	if ds.Err() != nil {
		return true
	}
	if !s.inventoryFails {
		for _, name := range schema.Groups() {
			s.inventory.AddGroup(name)
		}
	}
	parts := a.inventoryParts(s, schema, playbooks)
	parts = append(parts, s.given.configs...)
	for _, p := range s.given.extra {
		p.Values = without(p.Values, func(key string) bool { return !schema.Has(key) })
		parts = append(parts, p)
	}
	parts = append(parts, setParts(s, schema, parts)...)
	merged := schema.Merge(parts...)
	s.warnings.Add(merged.Check()...)
	s.warnings.Add(a.checkRules(s, schema, merged, playbooks)...)
	a.hideSecrets(merged.Values)
	a.configLayers(s, schema, merged, schema.Bundled())
	s.warnings = s.warnings.Sort()
	return true
}

// configLayers lays the config over everything, but for the variables of the
// command line that the schema does not know.
func (a *app) configLayers(s *session, schema *config.Schema, merged *config.Config, isBuiltin bool) {
	layers := []*vars.Layer{vars.Templates("config", merged.Values, s.templates, keyAt(merged), merged.Unsafe)}
	if isBuiltin {
		if known := a.versions(s, merged); known != nil {
			layers = append(layers, known)
		}
	}
	given := s.given
	given.configs = nil // all of it is in the merged config
	rest, _ := a.layers(given, s.templates, schema.Has)
	s.extra = append(layers, rest...)
}

// keyAt says where the keys of a config are set.
func keyAt(c *config.Config) func(key string) source.Pos {
	return func(key string) source.Pos { return c.At(key) }
}

// schemas lists the schemas of the projects that playbooks belong to.
func (a *app) schemas(playbooks []string) []string {
	var out []string
	for _, p := range playbooks {
		if file := config.Find(a.tree, p); file != "" && !slices.Contains(out, file) {
			out = append(out, file)
		}
	}
	return out
}

// inventoryParts are the config's keys that the inventory sets for the group
// all. Set for other groups or for hosts they are errors: there is one config.
func (a *app) inventoryParts(s *session, schema *config.Schema, playbooks []string) []config.Part {
	if s.inventoryFails {
		return nil
	}
	dir := source.Dir(playbooks[0])
	s.warnings.Add(s.inventory.LoadVars(dir)...)
	const nobody = "" // a host that is not in the inventory gets what all get
	all := s.inventory.VarLayers(nobody, dir)
	s.warnings.Add(misplaced(s.inventory, schema, all, dir)...)
	files := map[*source.File]*yaml.Node{}
	var parts []config.Part
	for _, set := range all {
		for _, key := range schema.Keys() {
			if v, ok := set.Values.Get(key); ok {
				parts = append(parts, variablePart(set, key, v, files))
			}
		}
	}
	return parts
}

// misplaced finds the config's keys in variables that are not for all hosts.
func misplaced(inv *inventory.Inventory, schema *config.Schema, all []*inventory.VarSet, dir string) source.Diagnostics {
	seen := map[*inventory.VarSet]bool{}
	for _, set := range all {
		seen[set] = true
	}
	var ds source.Diagnostics
	for _, host := range inv.Hosts() {
		for _, set := range inv.VarLayers(host, dir) {
			if seen[set] {
				continue
			}
			seen[set] = true
			ds.Add(misplacedIn(set, host, schema)...)
		}
	}
	return ds
}

func misplacedIn(set *inventory.VarSet, host string, schema *config.Schema) source.Diagnostics {
	var ds source.Diagnostics
	for k := range set.Values.All() {
		key, _ := k.(string)
		if !schema.Has(key) {
			continue
		}
		d := source.Errorf(set.At(key), "%s is set for %s only, but it is a cluster-wide config key", key, host).
			WithHelp("set it in the config (-c) or in the variables of the group all")
		d.Width = len(key)
		ds.Add(d)
	}
	return ds
}

// variablePart is one variable of the inventory as a part of the config, with
// the place of everything in it where its file is YAML.
func variablePart(set *inventory.VarSet, key string, v any, files map[*source.File]*yaml.Node) config.Part {
	p := config.Part{Name: set.Name, Values: value.NewDict(key, v)}
	at := set.At(key)
	if !at.IsValid() {
		return p
	}
	root, read := files[at.File]
	if !read {
		if docs, ds := source.ParseYAML(at.File); ds.Err() == nil && len(docs) > 0 {
			root = docs[0]
		}
		files[at.File] = root
	}
	k, val := pairAt(root, key, at)
	if k == nil {
		k = &yaml.Node{Kind: yaml.ScalarNode, Value: key, Line: at.Line, Column: at.Col}
		val = k
	}
	p.File, p.Node = at.File, &yaml.Node{Kind: yaml.MappingNode, Line: k.Line, Column: k.Column, Content: []*yaml.Node{k, val}}
	return p
}

// pairAt finds the key whose name or value stands at a place.
func pairAt(n *yaml.Node, key string, at source.Pos) (k, v *yaml.Node) {
	if n == nil {
		return nil, nil
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Value == key {
			val := n.Content[i+1]
			if source.NodePos(at.File, c) == at || source.NodePos(at.File, val) == at {
				return c, val
			}
		}
		if k, v := pairAt(c, key, at); k != nil {
			return k, v
		}
	}
	return nil, nil
}

// setParts are the --set of the config's keys. An index changes an element of
// the list that the parts before it make.
func setParts(s *session, schema *config.Schema, parts []config.Part) []config.Part {
	var out []config.Part
	for _, text := range s.given.sets {
		if !schema.Has(firstKey(text)) {
			if near := source.DidYouMean(firstKey(text), schema.Keys()); near != "" {
				s.warnings.Add(badSet(text, errors.New("unknown config key")).WithHelp("%s", near))
			}
			continue
		}
		values, err := setValues(schema.Merge(append(slices.Clone(parts), out...)...), text)
		if err != nil {
			continue // which begin found as well
		}
		out = append(out, config.Part{Name: commandLine, Values: values})
	}
	return out
}

// setValues is the mapping that a --set lays over the config.
func setValues(under *config.Config, text string) (*value.Dict, error) {
	path, raw, err := cutSet(text)
	if err != nil {
		return nil, err
	}
	v := setValue(raw)
	keys := slices.IndexFunc(path, func(k any) bool { _, isIndex := k.(int); return isIndex })
	if keys < 0 {
		keys = len(path)
	}
	if keys < len(path) {
		var names []string
		for _, k := range path[:keys] {
			names = append(names, k.(string))
		}
		list, _ := under.Get(names...)
		if v, err = setIn(value.Clone(list), path[keys:], v); err != nil {
			return nil, err
		}
	}
	d := value.NewDict()
	_, err = setIn(d, path[:keys], v)
	return d, err
}

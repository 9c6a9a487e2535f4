package config

import (
	"gopkg.in/yaml.v3"

	"kubekey/pkg/inventory"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// InventoryParts returns the config keys that are set for the group all: in the inventory, and in the variable
// files next to it and next to a playbook in dir. It is an error to set them for other groups or for hosts, because
// there is only one config.
func (s *Schema) InventoryParts(inv *inventory.Inventory, dir string) ([]Part, source.Diagnostics) {
	ds := inv.LoadVars(dir)
	const nobody = "" // a host that is not in the inventory gets the variables of all hosts
	all := inv.VarLayers(nobody, dir)
	ds = append(ds, misplaced(inv, s, all, dir)...)
	files := map[*source.File]*yaml.Node{}
	var parts []Part
	for _, set := range all {
		for _, key := range s.Keys() {
			if v, ok := set.Values.Get(key); ok {
				parts = append(parts, variablePart(set, key, v, files))
			}
		}
	}
	return parts, ds
}

// misplaced finds config keys in variables that do not apply to all hosts.
func misplaced(inv *inventory.Inventory, schema *Schema, all []*inventory.VarSet, dir string) source.Diagnostics {
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

func misplacedIn(set *inventory.VarSet, host string, schema *Schema) source.Diagnostics {
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

// variablePart returns one inventory variable as a part of the config. Where its file is YAML, the part includes
// the positions of all keys and values.
func variablePart(set *inventory.VarSet, key string, v any, files map[*source.File]*yaml.Node) Part {
	p := Part{Name: set.Name, Values: value.NewDict(key, v)}
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
	p.File, p.Node = at.File, &yaml.Node{Kind: yaml.MappingNode, Line: k.Line, Column: k.Column,
		Content: []*yaml.Node{k, val}}
	return p
}

// pairAt finds the key whose name or value is at a position.
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

package source

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Mappings reads mappings with a fixed set of keys from a YAML file. Problems are added to Problems.
type Mappings struct {
	File     *File
	Problems *Diagnostics
}

// Fields calls the function of each key of a mapping with its value. A key without a function is an error.
func (m Mappings) Fields(n *yaml.Node, what string, fields map[string]func(*yaml.Node)) {
	for k, v := range m.Pairs(n, what) {
		if read := fields[k.Value]; read != nil {
			read(v)
			continue
		}
		m.Unknown(k, what, slices.Sorted(maps.Keys(fields)))
	}
}

// Unknown reports a key that is not allowed in a mapping.
func (m Mappings) Unknown(k *yaml.Node, what string, known []string) {
	d := Errorf(NodePos(m.File, k), "%s has no key %q", what, k.Value)
	if d.Help = DidYouMean(k.Value, known); d.Help == "" {
		d.Help = "keys: " + strings.Join(known, ", ")
	}
	m.Problems.Add(d)
}

// Pairs ranges over the keys and values of a mapping. Null counts as an empty mapping.
func (m Mappings) Pairs(n *yaml.Node, what string) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(k, v *yaml.Node) bool) {
		n := Resolve(n)
		if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
			return
		}
		if n.Kind != yaml.MappingNode {
			m.Problems.Add(Errorf(NodePos(m.File, n), "%s must be a mapping", what))
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], Resolve(n.Content[i+1])
			if k.Kind != yaml.ScalarNode {
				m.Problems.Add(Errorf(NodePos(m.File, k), "a key of %s must be a text", what))
			} else if !yield(k, v) {
				return
			}
		}
	}
}

// Resolve returns the node that an alias refers to, or the content of a document.
func Resolve(n *yaml.Node) *yaml.Node {
	for n != nil && (n.Kind == yaml.AliasNode || n.Kind == yaml.DocumentNode && len(n.Content) > 0) {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		} else {
			n = n.Content[0]
		}
	}
	return n
}

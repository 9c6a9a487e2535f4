package source

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Mappings reads the mappings of a YAML file whose keys are known. What is wrong
// with them goes to Problems.
type Mappings struct {
	File     *File
	Problems *Diagnostics
}

// Fields calls for each key of a mapping its function with the value; a key
// without one is an error.
func (m Mappings) Fields(n *yaml.Node, what string, fields map[string]func(*yaml.Node)) {
	for k, v := range m.Pairs(n, what) {
		if read := fields[k.Value]; read != nil {
			read(v)
			continue
		}
		m.Unknown(k, what, slices.Sorted(maps.Keys(fields)))
	}
}

// Unknown reports a key that a mapping cannot have.
func (m Mappings) Unknown(k *yaml.Node, what string, known []string) {
	d := Errorf(NodePos(m.File, k), "%s has no key %q", what, k.Value)
	if d.Help = DidYouMean(k.Value, known); d.Help == "" {
		d.Help = "keys: " + strings.Join(known, ", ")
	}
	m.Problems.Add(d)
}

// Pairs are the keys and values of a mapping; null is an empty one.
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

// Resolve is the node that an alias or a document stands for.
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

package inventory

import (
	"kubekey/pkg/source"

	"gopkg.in/yaml.v3"
)

func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// child is the value of a key of a mapping, nil if there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	if n = source.Resolve(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return source.Resolve(n.Content[i+1])
		}
	}
	return nil
}

// kindName names the kind of a node for messages.
func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	case yaml.ScalarNode:
		if isNull(n) {
			return "nothing"
		}
		return "a single value"
	}
	return "something else"
}

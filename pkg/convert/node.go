package convert

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Limits on the size of a file after its aliases are resolved.
const (
	maxNodes = 500_000
	maxDepth = 100
)

// copier copies nodes without their comments, and resolves aliases and merges (<<).
type copier struct {
	file    *source.File
	left    int
	problem *source.Diagnostic
}

func (c *copier) copy(n *yaml.Node, depth int) *yaml.Node {
	n = source.Resolve(n)
	if n == nil || c.problem != nil {
		return mapping()
	}
	if c.left--; c.left < 0 || depth > maxDepth {
		c.problem = source.Errorf(source.NodePos(c.file, n), "the file is too large or nested too deep")
		return mapping()
	}
	out := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value, Line: n.Line, Column: n.Column}
	if n.Kind != yaml.MappingNode {
		for _, e := range n.Content {
			out.Content = append(out.Content, c.copy(e, depth+1))
		}
		return out
	}
	var lent []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := source.Resolve(n.Content[i]), n.Content[i+1]
		switch {
		case k.ShortTag() == "!!merge":
			lent = append(lent, c.merged(v, depth+1)...)
		case k.Kind != yaml.ScalarNode:
			c.problem = source.Errorf(source.NodePos(c.file, k), "a key must be a text").
				WithHelp("if this is a template ({{ }}), write the value itself")
		default:
			out.Content = append(out.Content, c.copy(k, depth+1), c.copy(v, depth+1))
		}
	}
	for _, m := range lent {
		for i := 0; i+1 < len(m.Content); i += 2 {
			if child(out, m.Content[i].Value) == nil {
				out.Content = append(out.Content, m.Content[i], m.Content[i+1])
			}
		}
	}
	return out
}

// merged returns the mappings that a merge key refers to.
func (c *copier) merged(n *yaml.Node, depth int) []*yaml.Node {
	n = c.copy(n, depth)
	if n.Kind == yaml.SequenceNode {
		return slices.DeleteFunc(n.Content, func(e *yaml.Node) bool { return e.Kind != yaml.MappingNode })
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	return []*yaml.Node{n}
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

func scalar(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	return n
}

// child returns the value of a key, or nil if the node does not have it.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// text returns the value of a key as text.
func text(n *yaml.Node, key string) string {
	if v := source.Resolve(child(n, key)); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// isEmpty reports whether a value sets nothing: null, "", [] or {}.
func isEmpty(n *yaml.Node) bool {
	return isNull(n) || n.Kind == yaml.ScalarNode && n.Value == "" || n.Kind != yaml.ScalarNode && len(n.Content) == 0
}

// nodeOf converts a value to a node with the position of another node. Null is nil.
func nodeOf(v any, at *yaml.Node) (*yaml.Node, error) {
	if v == nil {
		return nil, nil
	}
	n := &yaml.Node{}
	switch v := v.(type) {
	case *value.Dict:
		n = mapping()
		for key, e := range v.All() {
			inner, err := elementOf(e, at)
			if err != nil {
				return nil, err
			}
			k := scalar(value.Str(key))
			place(k, at)
			n.Content = append(n.Content, k, inner)
		}
	case []any:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		for _, e := range v {
			inner, err := elementOf(e, at)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, inner)
		}
	case string:
		n.SetString(v)
	default:
		if err := n.Encode(v); err != nil {
			return nil, fmt.Errorf("%s cannot be written as YAML", value.TypeName(v))
		}
	}
	place(n, at)
	return n, nil
}

// elementOf is nodeOf for values in containers, where null is a value.
func elementOf(v any, at *yaml.Node) (*yaml.Node, error) {
	n, err := nodeOf(v, at)
	if n == nil && err == nil {
		n = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
		place(n, at)
	}
	return n, err
}

func place(n, at *yaml.Node) {
	if at != nil {
		n.Line, n.Column = at.Line, at.Column
	}
}

// set sets a path below a mapping. Mappings are merged, lists are joined. The comment is added to the key's.
func set(n *yaml.Node, path []string, v *yaml.Node, comment []string) {
	key, in := path[0], child(n, path[0])
	if in == nil {
		k := scalar(key)
		place(k, v)
		in = mapping()
		place(in, v)
		if len(path) == 1 {
			in = v
		}
		n.Content = append(n.Content, k, in)
	} else if len(path) == 1 {
		merge(in, v)
	}
	if len(path) > 1 {
		set(in, path[1:], v, comment)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			addComment(n.Content[i], comment)
		}
	}
}

// merge merges a value into another one.
func merge(into, v *yaml.Node) {
	switch {
	case into.Kind == yaml.MappingNode && v.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(v.Content); i += 2 {
			if old := child(into, v.Content[i].Value); old != nil {
				merge(old, v.Content[i+1])
				continue
			}
			into.Content = append(into.Content, v.Content[i], v.Content[i+1])
		}
	case into.Kind == yaml.SequenceNode && v.Kind == yaml.SequenceNode:
		for _, e := range v.Content {
			same := func(o *yaml.Node) bool { return e.Kind == yaml.ScalarNode && o.Value == e.Value }
			if !slices.ContainsFunc(into.Content, same) {
				into.Content = append(into.Content, e)
			}
		}
	default:
		*into = *v
	}
}

func addComment(k *yaml.Node, lines []string) {
	for _, line := range lines {
		for _, part := range wrap(line) {
			if comment := "# " + part; !strings.Contains(k.HeadComment+"\n", comment+"\n") {
				k.HeadComment = strings.TrimPrefix(k.HeadComment+"\n"+comment, "\n")
			}
		}
	}
}

// wrap breaks a text into lines.
func wrap(text string) []string {
	const columns = 96
	var out []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > columns {
			out = append(out, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(out, line)
}

package config

import (
	"strconv"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Part is the config from one origin.
type Part struct {
	Name   string // as shown in messages: "config.yaml", "--set"
	Values *value.Dict
	File   *source.File // the file that contains it; nil for the command line
	Node   *yaml.Node   // the mapping in the file; nil if it is not YAML
}

// Config is the config of the user over the defaults of a schema, if there is one.
type Config struct {
	Values *value.Dict

	schema *Schema // nil if there is none
	parts  []Part  // lowest precedence first
}

// Merge merges parts without a schema, otherwise like Schema.Merge.
func Merge(parts ...Part) *Config { return overlay(nil, value.NewDict(), parts) }

// Merge merges parts over the schema's defaults. A later part takes precedence over an earlier one: mappings are
// merged at every depth, and anything else is replaced. A key without a value leaves an existing mapping unchanged.
func (s *Schema) Merge(parts ...Part) *Config {
	return overlay(s, s.Defaults(), parts)
}

func overlay(s *Schema, base *value.Dict, parts []Part) *Config {
	c := &Config{Values: base, schema: s, parts: parts}
	for _, p := range parts {
		c.Values = merged(c.Values, p.Values).(*value.Dict)
	}
	return c
}

// merged returns base with over merged into it. Neither is modified.
func merged(base, over any) any {
	b, isDict := base.(*value.Dict)
	if !isDict {
		return value.Clone(over)
	}
	if over == nil {
		return b
	}
	o, isDict := over.(*value.Dict)
	if !isDict {
		return value.Clone(over)
	}
	out := b.Copy()
	for k, v := range o.All() {
		old, there := b.Get(k)
		if !there {
			out.Set(k, value.Clone(v))
			continue
		}
		out.Set(k, merged(old, v))
	}
	return out
}

// Get returns the value at a path of keys and indexes, and whether it exists.
func (c *Config) Get(path ...string) (any, bool) { return at(c.Values, path) }

// at resolves a path: mappings by key, lists by index.
func at(v any, path []string) (any, bool) {
	for _, step := range path {
		switch in := v.(type) {
		case *value.Dict:
			inner, ok := in.Get(step)
			if !ok {
				return nil, false
			}
			v = inner
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// spot is the position of a key and its value.
type spot struct {
	key, value source.Pos
	width      int // of the key, in runes
}

// place finds a path below a mapping. If only part of the path exists, it returns the deepest part that does.
func place(f *source.File, n *yaml.Node, path []string) spot {
	n = source.Resolve(n)
	s := spot{key: source.NodePos(f, n), value: source.NodePos(f, n), width: 1}
	for _, step := range path {
		key, val := entry(n, step)
		if val == nil {
			break
		}
		s = spot{source.NodePos(f, key), source.NodePos(f, val), utf8.RuneCountInString(key.Value)}
		n = source.Resolve(val)
	}
	return s
}

// entry returns the key and the value for one step of a path. For a list both are the element.
func entry(n *yaml.Node, step string) (key, val *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		return pair(n, step)
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	}
	return nil, nil
}

// pair finds a key in a mapping, then in the mappings that it merges (<<).
func pair(n *yaml.Node, key string) (k, v *yaml.Node) {
	var lent []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.ShortTag() == "!!merge":
			lent = append(lent, source.Resolve(v))
		case k.Value == key:
			return k, v
		}
	}
	for _, from := range lent {
		if k, v := entry(from, key); v != nil {
			return k, v
		}
	}
	return nil, nil
}

// origin returns the part with the highest precedence that sets a path, or nil for a default.
func (c *Config) origin(path []string) *Part {
	for i := len(c.parts) - 1; i >= 0; i-- {
		if _, ok := at(c.parts[i].Values, path); ok {
			return &c.parts[i]
		}
	}
	return nil
}

// Unsafe reports whether the text at a path was tagged !unsafe where it was set. Such text is never a template.
func (c *Config) Unsafe(path []string) bool {
	p := c.origin(path)
	if p == nil {
		return false
	}
	n := p.Node
	for _, step := range path {
		if n == nil {
			return false
		}
		if _, n = entry(source.Resolve(n), step); n != nil && source.Resolve(n).Tag == "!unsafe" {
			return true
		}
	}
	return false
}

// locate returns the position of a path, and a description for an origin without positions.
func (c *Config) locate(path []string) (spot, string) {
	for n := len(path); n > 0; n-- {
		p := c.origin(path[:n])
		switch {
		case p == nil:
			continue
		case p.File == nil || p.Node == nil:
			return spot{}, " (from " + p.Name + ")"
		}
		return place(p.File, p.Node, path), ""
	}
	return spot{}, " (the default)"
}

// Problem returns a diagnostic at the position where the value of a path is set.
func (c *Config) Problem(path []string, summary, help string) *source.Diagnostic {
	s, from := c.locate(path)
	return source.Errorf(s.value, "%s: %s%s", dotted(path), summary, from).WithHelp("%s", help)
}

// At returns the position where a path is set. It is the zero Pos for a default and for the command line.
func (c *Config) At(path ...string) source.Pos {
	s, _ := c.locate(path)
	return s.value
}

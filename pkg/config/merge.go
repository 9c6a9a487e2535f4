package config

import (
	"strconv"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Part is what one origin sets.
type Part struct {
	Name   string // as people are told it: "config.yaml", "--set"
	Values *value.Dict
	File   *source.File // where it is written; nil for the command line
	Node   *yaml.Node   // the mapping as it is written; nil where it is not YAML
}

// Config is what people set, over the defaults of a schema where there is one.
type Config struct {
	Values *value.Dict

	schema *Schema // nil when there is none
	parts  []Part  // lowest first
}

// Merge puts parts together that no schema describes, as Schema.Merge does.
func Merge(parts ...Part) *Config { return overlay(nil, value.NewDict(), parts) }

// Merge puts parts over the schema's defaults, a later part over an earlier:
// mappings are merged at every depth, anything else is replaced. A key without
// value leaves a mapping as it is.
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

// merged returns over laid on base; neither changes.
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

// Get returns the value at a path of keys and indexes, and whether there is one.
func (c *Config) Get(path ...string) (any, bool) { return at(c.Values, path) }

// at walks into mappings by key and into lists by index.
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

// spot is where a key and its value are written.
type spot struct {
	key, value source.Pos
	width      int // runes of the key
}

// place finds a path below a mapping; of a path that is not all there, the
// deepest part that is.
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

// entry returns the key and the value of one step into a node; for a list the
// element is both.
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

// pair looks a key up in a mapping, then in what it merges (<<).
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

// origin is the part that set a path, the highest first; nil for a default.
func (c *Config) origin(path []string) *Part {
	for i := len(c.parts) - 1; i >= 0; i-- {
		if _, ok := at(c.parts[i].Values, path); ok {
			return &c.parts[i]
		}
	}
	return nil
}

// Unsafe reports whether the text at a path was tagged !unsafe where it was
// set: it is no template, whatever it looks like.
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

// locate returns the place of a path, and words for an origin that has none.
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

// Problem is a diagnostic that stands where the value of a path is set.
func (c *Config) Problem(path []string, summary, help string) *source.Diagnostic {
	s, from := c.locate(path)
	return source.Errorf(s.value, "%s: %s%s", dotted(path), summary, from).WithHelp("%s", help)
}

// At is where a path is set; the zero Pos for a default and for the command line.
func (c *Config) At(path ...string) source.Pos {
	s, _ := c.locate(path)
	return s.value
}

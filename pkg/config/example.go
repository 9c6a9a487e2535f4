package config

import (
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/value"
)

// Example writes a config with every key, its description and its default. Values in over replace the defaults.
func (s *Schema) Example(w io.Writer, over *value.Dict) error {
	e := &example{values: merged(s.Defaults(), over).(*value.Dict)}
	if d := s.root.description(); d != "" {
		e.comment("", d)
	}
	e.properties(s.root, e.values, "")
	if e.err != nil {
		return e.err
	}
	_, err := io.WriteString(w, e.b.String())
	return err
}

type example struct {
	b      strings.Builder
	values *value.Dict
	err    error
}

// properties writes the keys of one mapping.
func (e *example) properties(n node, values *value.Dict, indent string) {
	for name, sub := range n.properties() {
		v, set := values.Get(name)
		if indent == "" && e.b.Len() > 0 {
			e.b.WriteByte('\n')
		}
		e.describe(sub, indent)
		if d, isDict := v.(*value.Dict); isDict && hasDefaults(sub) {
			fmt.Fprintf(&e.b, "%s%s:\n", indent, name)
			e.properties(sub, d, indent+"  ")
			continue
		}
		if !set {
			indent := indent + "# " // without a default the key is a comment, too
			fmt.Fprintf(&e.b, "%s%s:\n", indent, name)
			continue
		}
		fmt.Fprintf(&e.b, "%s%s:%s\n", indent, name, e.inline(v))
	}
}

// hasDefaults reports whether a mapping has keys with default values.
func hasDefaults(n node) bool {
	for _, sub := range n.properties() {
		if _, ok := sub.fallback(); ok {
			return true
		}
	}
	return false
}

func (e *example) describe(n node, indent string) {
	text := n.description()
	if c := n.choices(); len(c) > 0 {
		for i := range c {
			if c[i] == "" {
				c[i] = `""`
			}
		}
		text = strings.TrimSpace(text + " One of " + strings.Join(c, ", ") + ".")
	}
	if text != "" {
		e.comment(indent, text)
	}
}

// inline formats a value on the line of its key.
func (e *example) inline(v any) string {
	if v == nil {
		return ""
	}
	var n yaml.Node
	if err := n.Encode(plain(v)); err != nil {
		e.err = err
		return ""
	}
	n.Style |= yaml.FlowStyle
	text, err := yaml.Marshal(&n)
	if err != nil {
		e.err = err
	}
	return " " + strings.TrimSpace(string(text))
}

// comment writes text as comment lines of at most 100 columns.
func (e *example) comment(indent, text string) {
	const columns = 100
	line := indent + "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > columns && line != indent+"#" {
			e.b.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	e.b.WriteString(line + "\n")
}

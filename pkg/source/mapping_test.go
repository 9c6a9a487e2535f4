package source

import (
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

func TestMappings(t *testing.T) {
	for text, want := range map[string]string{
		"{port: 80}":                    "port=80",
		"{port: &p 80, name: *p}":       "port=80 name=80",
		"null":                          "",
		"[]":                            "f:1:1: a site must be a mapping",
		"{prot: 80}":                    `f:1:2: a site has no key "prot" (did you mean "port"?)`,
		"{x: 80, port: 1}":              `port=1 f:1:2: a site has no key "x" (keys: name, port)`,
		"{[a]: 1}":                      "f:1:2: a key of a site must be a text",
		"{other: &o {port: 3}, <<: *o}": `f:1:2: a site has no key "other"`,
	} {
		f := NewFile("f", []byte(text))
		docs, ds := ParseYAML(f)
		var got []string
		m := Mappings{File: f, Problems: &ds}
		read := func(key string) func(*yaml.Node) {
			return func(n *yaml.Node) { got = append(got, key+"="+n.Value) }
		}
		for _, doc := range docs {
			m.Fields(doc, "a site", map[string]func(*yaml.Node){"port": read("port"), "name": read("name")})
		}
		for _, d := range ds {
			line := d.Pos.String() + ": " + d.Summary
			if d.Help != "" {
				line += " (" + d.Help + ")"
			}
			got = append(got, line)
		}
		if all := strings.Join(slices.Compact(got), " "); !strings.HasPrefix(all, want) || want == "" && all != "" {
			t.Errorf("%s: got %s, want %s", text, all, want)
		}
	}
}

// Package config handles the config of a project. A schema next to the project's playbooks defines the keys, their
// meaning and their defaults. The package merges the user's config over the defaults and reports every error in it
// with its position.
package config

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// schemaFile is the path of the schema, relative to the project root.
const schemaFile = "config/schema.yaml"

// Find returns the path of the schema of a playbook's project: in the folder above playbooks/, or in the playbook's
// own folder. It is "" if there is none.
func Find(tree source.Tree, playbook string) string {
	root := source.Dir(playbook)
	if path.Base(strings.TrimPrefix(root, source.Builtin)) == "playbooks" {
		root = source.Dir(root)
	}
	if file := source.Join(root, schemaFile); tree.IsFile(file) {
		return file
	}
	return ""
}

// Schema defines the keys that a project's config may have.
type Schema struct {
	file     *source.File
	root     node
	compiled *jsonschema.Schema
}

// Bundled reports whether it is the schema of the builtin project.
func (s *Schema) Bundled() bool { return s.file.Bundled() }

// Load reads a JSON Schema (2020-12) written in YAML.
func Load(tree source.Tree, name string) (*Schema, source.Diagnostics) {
	text, err := tree.ReadFile(name)
	if err != nil {
		return nil, source.Diagnostics{source.Errorf(source.Pos{}, "read the schema of the config: %s", err)}
	}
	f := source.NewFile(name, text)
	docs, ds := source.ParseYAML(f)
	if ds.Err() != nil {
		return nil, ds
	}
	if len(docs) != 1 || docs[0].Content[0].Kind != yaml.MappingNode {
		return nil, source.Diagnostics{source.Errorf(source.Pos{File: f, Line: 1, Col: 1},
			"expected a JSON schema: one mapping")}
	}
	s := &Schema{file: f}
	s.root = node{schema: s, yaml: docs[0].Content[0]}
	if s.compiled, err = compile(s.root.yaml); err != nil {
		return nil, s.broken(err)
	}
	return s, nil
}

func compile(n *yaml.Node) (*jsonschema.Schema, error) {
	v, err := value.FromYAML(n)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	for name, check := range formats() {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: text(check)})
	}
	c.AssertFormat()
	const url = "schema.json"
	if err := c.AddResource(url, plain(v)); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// broken reports an error in the schema itself.
func (s *Schema) broken(err error) source.Diagnostics {
	var ye *value.YAMLError
	var invalid *jsonschema.SchemaValidationError
	var ve *jsonschema.ValidationError
	switch {
	case errors.As(err, &ye):
		return source.Diagnostics{source.Errorf(source.Pos{File: s.file, Line: ye.Line, Col: ye.Col}, "%s", ye.Msg)}
	case errors.As(err, &invalid) && errors.As(invalid.Err, &ve):
		var ds source.Diagnostics
		for _, leaf := range leaves(ve) {
			p := place(s.file, s.root.yaml, leaf.InstanceLocation)
			ds.Add(source.Errorf(p.value, "the schema of the config: %s: %s", dotted(leaf.InstanceLocation), reason(leaf)))
		}
		return ds.Sort()
	}
	return source.Diagnostics{source.Errorf(source.Pos{File: s.file, Line: 1, Col: 1}, "the schema of the config: %s",
		err)}
}

// Keys returns the keys that the schema describes at a path, or the top-level keys.
func (s *Schema) Keys(path ...string) []string { return s.keysAt(path) }

// Describes reports whether the config may have a key at a path. Below mappings with any keys, every key is described.
func (s *Schema) Describes(path ...string) bool {
	n := s.root
	for _, step := range path {
		next, ok := n.property(step)
		if !ok {
			others := n.keyword("additionalProperties")
			if others != nil && others.Kind == yaml.ScalarNode && others.Value == "false" {
				return false
			}
			if k := n.keyword("type"); k == nil || k.Kind == yaml.ScalarNode && k.Value != "object" {
				return false
			}
			next = node{s, others}
			if others == nil || others.Kind == yaml.ScalarNode {
				return true // a mapping with any content
			}
		}
		n = next
	}
	return true
}

// Groups returns the host groups that the project's playbooks use (the schema's x-groups). An inventory need not
// define all of them.
func (s *Schema) Groups() []string {
	var out []string
	if list := child(s.root.yaml, "x-groups"); list != nil {
		for _, n := range list.Content {
			out = append(out, n.Value)
		}
	}
	return out
}

// Has reports whether the config may have a top-level key.
func (s *Schema) Has(key string) bool {
	_, ok := s.root.property(key)
	return ok
}

// Defaults returns the config when the user sets nothing.
func (s *Schema) Defaults() *value.Dict {
	v, _ := s.root.fallback()
	d, _ := v.(*value.Dict)
	if d == nil {
		d = value.NewDict()
	}
	return d
}

// node is one schema: a mapping of keywords.
type node struct {
	schema *Schema
	yaml   *yaml.Node
}

// child returns the value of a key, or nil if the node does not have it.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return source.Resolve(n.Content[i+1])
		}
	}
	return nil
}

// follow returns the schema that $ref refers to in this file, else n itself.
func (n node) follow() node {
	ref := child(n.yaml, "$ref")
	if ref == nil || !strings.HasPrefix(ref.Value, "#/") {
		return n
	}
	to := n.schema.root.yaml
	for _, part := range strings.Split(ref.Value[2:], "/") {
		to = child(to, part)
	}
	return node{n.schema, to}
}

// keyword returns the value of a keyword, from the node itself or from the schema that $ref refers to.
func (n node) keyword(name string) *yaml.Node {
	if v := child(n.yaml, name); v != nil {
		return v
	}
	return child(n.follow().yaml, name)
}

// properties ranges over the keys that the schema describes, in the order of the file.
func (n node) properties() iter.Seq2[string, node] {
	return func(yield func(string, node) bool) {
		p := n.keyword("properties")
		if p == nil {
			return
		}
		for i := 0; i+1 < len(p.Content); i += 2 {
			if !yield(p.Content[i].Value, node{n.schema, source.Resolve(p.Content[i+1])}) {
				return
			}
		}
	}
}

func (n node) property(name string) (node, bool) {
	for p, sub := range n.properties() {
		if p == name {
			return sub, true
		}
	}
	return node{}, false
}

// fallback returns the default value. The default of an object is made of the defaults of its properties.
func (n node) fallback() (any, bool) {
	var own any
	found := false
	if d := n.keyword("default"); d != nil {
		own, found = fromYAML(d), true
	}
	d, isDict := own.(*value.Dict)
	if own != nil && !isDict {
		return own, true
	}
	for name, sub := range n.properties() {
		v, ok := sub.fallback()
		if !ok {
			continue
		}
		if d == nil {
			d = value.NewDict()
		}
		if said, ok := d.Get(name); ok {
			v = merged(v, said)
		}
		d.Set(name, v)
		own, found = d, true
	}
	return own, found
}

// fromYAML returns the value of a node. Errors are impossible: compile has already read it.
func fromYAML(n *yaml.Node) any {
	v, err := value.FromYAML(n)
	if err != nil {
		return nil
	}
	return v
}

// description returns the schema's description of a key.
func (n node) description() string {
	if d := n.keyword("description"); d != nil {
		return strings.TrimSpace(d.Value)
	}
	return ""
}

// choices returns the allowed values of a key as text, or nil if any value is allowed.
func (n node) choices() []string {
	e := n.keyword("enum")
	if e == nil {
		return nil
	}
	var out []string
	for _, c := range e.Content {
		out = append(out, c.Value)
	}
	return out
}

// plain converts a value to JSON data types.
func plain(v any) any {
	switch v := v.(type) {
	case *value.Dict:
		m := make(map[string]any, v.Len())
		for k, e := range v.All() {
			m[value.Str(k)] = plain(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = plain(e)
		}
		return l
	case nil, bool, int, float64, string:
		return v
	}
	return fmt.Sprint(v)
}

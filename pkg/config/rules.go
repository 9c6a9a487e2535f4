package config

import (
	"errors"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// Rule is what a JSON schema cannot say: about several keys, or about the
// inventory. A schema has them in x-rules.
type Rule struct {
	Of        []string // keys that it reads; the first is where a problem stands. None: the inventory
	Playbooks []string // names of those that it is for; all when there are none
	Problem   string   // a template that yields what is wrong, one problem a line
	Help      string
	At        source.Pos
}

// For reports whether the rule is for a playbook.
func (r Rule) For(playbook string) bool {
	return len(r.Playbooks) == 0 || slices.Contains(r.Playbooks, playbook)
}

// Rules are the schema's x-rules.
func (s *Schema) Rules() []Rule {
	var out []Rule
	list := child(s.root.yaml, "x-rules")
	if list == nil {
		return nil
	}
	for _, n := range list.Content {
		r := Rule{Of: scalars(child(n, "of")), Playbooks: scalars(child(n, "playbooks"))}
		if p := child(n, "problem"); p != nil {
			r.Problem, r.At = p.Value, source.NodePos(s.file, p)
		}
		if h := child(n, "help"); h != nil {
			r.Help = h.Value
		}
		out = append(out, r)
	}
	return out
}

// scalars is a text, or a list of them.
func scalars(n *yaml.Node) []string {
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}
	}
	var out []string
	for _, e := range n.Content {
		out = append(out, e.Value)
	}
	return out
}

// Known reports whether what stands at all the paths is known now, and is as the
// schema has it: no template, and no mistake that Check finds.
func (c *Config) Known(paths []string) bool {
	var ve *jsonschema.ValidationError
	var wrong []*jsonschema.ValidationError
	if errors.As(c.schema.compiled.Validate(plain(c.Values)), &ve) {
		wrong = leaves(ve)
	}
	for _, path := range paths {
		steps := strings.Split(path, ".")
		if v, ok := c.Get(steps...); !ok || IsTemplate(v) {
			return false
		}
		for _, leaf := range wrong {
			at := leaf.InstanceLocation
			if n := min(len(at), len(steps)); slices.Equal(at[:n], steps[:n]) {
				if _, unknown := leaf.ErrorKind.(*kind.AdditionalProperties); !unknown {
					return false
				}
			}
		}
	}
	return true
}

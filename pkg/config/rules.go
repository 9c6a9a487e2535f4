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

// Rule is a condition that JSON Schema cannot express: about several keys, or about the inventory. A schema lists
// its rules in x-rules.
type Rule struct {
	Of        []string // keys that it reads; problems are reported at the first. None: the inventory
	Playbooks []string // names of the playbooks that it applies to; empty for all
	Problem   string   // a template that yields the problems, one per line
	Check     string   // instead of Problem, a check of files: one of the constants below
	Help      string
	At        source.Pos
}

// Checks of files of the control node, whose paths are the keys of the rule. An empty path is not checked.
const (
	CheckCerts = "certs" // one key: certificates in PEM
	CheckPair  = "pair"  // two keys: a certificate that is valid now, and its key
	CheckCA    = "ca"    // two keys: the same, and the certificate is that of a CA
)

// For reports whether the rule applies to the playbook.
func (r Rule) For(playbook string) bool {
	return len(r.Playbooks) == 0 || slices.Contains(r.Playbooks, playbook)
}

// Rules returns the rules in the schema's x-rules.
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
		if c := child(n, "check"); c != nil {
			r.Check, r.At = c.Value, source.NodePos(s.file, c)
		}
		if h := child(n, "help"); h != nil {
			r.Help = h.Value
		}
		out = append(out, r)
	}
	return out
}

// scalars returns a text, or a list of texts, as a list.
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

// Known reports whether the values at all the paths are known before the run and valid: no templates, and no errors
// that Check finds.
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

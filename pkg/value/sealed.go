package value

import "gopkg.in/yaml.v3"

// Sealed is a text that is encrypted: what the tag !vault marks in YAML. It is
// no value yet; package template opens it when it is used.
type Sealed struct {
	Text      string // as encrypted
	File      string // where it stands; "" when not known
	Line, Col int
}

// IsSealed reports whether a node has the tag of an encrypted text.
func IsSealed(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.Tag == "!vault" || n.Tag == "!vault-encrypted")
}

// String never shows the text: it would be many lines of digits.
func (s Sealed) String() string { return "!vault (encrypted)" }

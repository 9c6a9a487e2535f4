package value

import "gopkg.in/yaml.v3"

// Sealed is an encrypted text: a YAML scalar with the tag !vault. Package template decrypts it when it is used.
type Sealed struct {
	Text      string // as encrypted
	File      string // the file it is in; "" if unknown
	Line, Col int
}

// IsSealed reports whether a node has the tag !vault.
func IsSealed(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.Tag == "!vault" || n.Tag == "!vault-encrypted")
}

// String never shows the text: it would be many lines of digits.
func (s Sealed) String() string { return "!vault (encrypted)" }

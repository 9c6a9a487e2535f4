package value

import (
	"fmt"

	"gopkg.in/yaml.v3"
)

// YAMLError is a problem with a YAML node, with its position in the text.
type YAMLError struct {
	Line, Col int
	Msg       string
}

func (e *YAMLError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Col, e.Msg)
}

// maxAliased bounds what aliases may expand to (the "billion laughs").
const maxAliased = 500_000

// decoding is one call of FromYAML.
type decoding struct {
	file    string
	inside  int // depth of aliases
	aliased int // number of values that aliases expanded to
}

// FromYAML turns a node into a value. Scalars mean what they mean in YAML 1.1:
// see Scalar. Mappings keep their order; merge keys (<<) are applied; a
// duplicate key is an error at its place. Scalars tagged !vault become Sealed.
func FromYAML(n *yaml.Node) (any, error) { return FromYAMLFile(n, "") }

// DecodeYAML reads the next document; the error is io.EOF after the last. A panic of the parser becomes an error.
func DecodeYAML(dec *yaml.Decoder) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("yaml: the text cannot be parsed (%v)", r)
		}
	}()
	var n yaml.Node
	if err := dec.Decode(&n); err != nil {
		return nil, err
	}
	return FromYAML(&n)
}

// FromYAMLFile is FromYAML for a node of a file: Sealed values record the file's name.
func FromYAMLFile(n *yaml.Node, file string) (any, error) {
	return fromNode(n, 0, &decoding{file: file})
}

func fromNode(n *yaml.Node, depth int, dec *decoding) (any, error) {
	if dec.inside > 0 {
		dec.aliased++
	}
	if dec.aliased > maxAliased {
		return nil, &YAMLError{n.Line, n.Column, fmt.Sprintf("aliases expand to more than %d values", maxAliased)}
	}
	if depth > maxDepth {
		return nil, &YAMLError{n.Line, n.Column, ErrTooDeep.Error()}
	}
	switch n.Kind {
	case 0:
		return nil, nil
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return fromNode(n.Content[0], depth, dec)
	case yaml.AliasNode:
		dec.inside++
		defer func() { dec.inside-- }()
		return fromNode(n.Alias, depth+1, dec)
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := fromNode(c, depth+1, dec)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.MappingNode:
		return fromMapping(n, depth, dec)
	}
	if IsSealed(n) {
		return Sealed{n.Value, dec.file, n.Line, n.Column}, nil
	}
	return Scalar(n)
}

func fromMapping(n *yaml.Node, depth int, dec *decoding) (any, error) {
	d := NewDict()
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		kn, vn := n.Content[i], n.Content[i+1]
		if kn.ShortTag() == "!!merge" {
			merges = append(merges, vn)
			continue
		}
		key, err := fromNode(kn, depth+1, dec)
		if err != nil {
			return nil, err
		}
		switch key.(type) {
		case []any, *Dict, Sealed:
			return nil, &YAMLError{kn.Line, kn.Column,
				"a list or mapping cannot be a key; a value that starts with {{ needs quotes"}
		}
		if d.Has(key) {
			return nil, &YAMLError{kn.Line, kn.Column, fmt.Sprintf("key %q is already set in this mapping", Str(key))}
		}
		v, err := fromNode(vn, depth+1, dec)
		if err != nil {
			return nil, err
		}
		d.Set(key, v)
	}
	for _, m := range merges {
		if err := merge(d, m, depth, dec); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func merge(d *Dict, n *yaml.Node, depth int, dec *decoding) error {
	v, err := fromNode(n, depth+1, dec)
	if err != nil {
		return err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, e := range list {
		from, ok := e.(*Dict)
		if !ok {
			return &YAMLError{n.Line, n.Column, "<< needs a mapping or a list of mappings"}
		}
		for k, v := range from.All() {
			if !d.Has(k) {
				d.Set(k, v)
			}
		}
	}
	return nil
}

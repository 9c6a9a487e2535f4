package expr

import "kubekey/pkg/source"

// Read is one place where an expression reads a variable.
type Read struct {
	Name string
	Pos  source.Pos
	// Optional is true when the variable does not need to exist: the expression has a default, or checks whether it
	// is defined.
	Optional bool
}

// Reads returns the places where the expression reads variables, in source order. Functions are included.
func (x *Expr) Reads() []Read {
	optional := map[string]bool{}
	note := func(n node) {
		walk(n, func(n node) {
			if n, ok := n.(*nameNode); ok {
				optional[n.name] = true
			}
		})
	}
	walk(x.root, func(n node) {
		switch n := n.(type) {
		case *filterNode:
			if n.name == "default" || n.name == "d" {
				note(n.in)
			}
		case *testNode:
			if n.fn == nil {
				note(n.in)
			}
		}
	})
	var out []Read
	walk(x.root, func(n node) {
		if n, ok := n.(*nameNode); ok {
			out = append(out, Read{n.name, advance(x.at, x.src, n.pos), optional[n.name]})
		}
	})
	return out
}

// Keys returns the attributes and constant keys in the expression: b and c of a.b['c'].
func (x *Expr) Keys() []string {
	var out []string
	walk(x.root, func(n node) {
		switch n := n.(type) {
		case *attrNode:
			if key, ok := n.key.(string); ok {
				out = append(out, key)
			}
		case *constNode:
			if text, ok := n.v.(string); ok {
				out = append(out, text)
			}
		}
	})
	return out
}

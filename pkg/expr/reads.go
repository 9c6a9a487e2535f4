package expr

import "kubekey/pkg/source"

// Read is one place where an expression reads a variable.
type Read struct {
	Name string
	Pos  source.Pos
	// Optional says that the expression copes with the variable's absence: it
	// has a default, or is asked whether it is defined.
	Optional bool
}

// Reads are the places where the expression reads variables, in their order.
// Functions are among them.
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

// Keys are the attributes and constant keys that the expression names: b and c of a.b['c'].
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

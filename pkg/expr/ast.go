package expr

import "kubekey/pkg/value"

// node is one operation of a parsed expression. eval has a case for each node type. Positions are byte offsets in
// the source.
type node interface{ where() span }

type span struct{ pos, end int }

func (s span) where() span { return s }

type (
	constNode struct {
		span
		v any
	}
	nameNode struct {
		span
		name string
	}
	// attrNode is a.name, a['name'], a.0 and a[0]: a key that is known at compile time.
	attrNode struct {
		span
		obj  node
		key  any // string or int
		item bool
	}
	// indexNode is a[key] with a key that must be evaluated.
	indexNode struct {
		span
		obj, key node
	}
	sliceNode struct {
		span
		obj           node
		low, up, step node // can be nil
	}
	callNode struct {
		span
		fn   node
		args arguments
	}
	filterNode struct {
		span
		in   node
		name string
		fn   filter
		args arguments
		lazy bool // its arguments are not forced
	}
	testNode struct {
		span
		in      node
		name    string
		fn      test // nil for defined and undefined, which need no call
		args    arguments
		negated bool
	}
	notNode struct {
		span
		x node
	}
	negNode struct {
		span
		x    node
		plus bool
	}
	// logicNode is a chain of `and` or of `or`.
	logicNode struct {
		span
		or    bool
		terms []node
	}
	// mathNode is a chain of operators with the same precedence: a + b - c.
	mathNode struct {
		span
		first node
		rest  []operation
	}
	compareNode struct {
		span
		first node
		rest  []operation
	}
	concatNode struct {
		span
		parts []node
	}
	condNode struct {
		span
		cond, then, els node // els can be nil
	}
	listNode struct {
		span
		items []node
		tuple bool // written (a, b) or a, b
	}
	dictNode struct {
		span
		keys, values []node
	}
)

// operation is an operator with its right operand.
type operation struct {
	op operator
	x  node
}

type operator uint8

const (
	opAdd operator = iota
	opSub
	opMul
	opDiv
	opFloor
	opMod
	opPow
	opEq
	opNe
	opLt
	opLe
	opGt
	opGe
	opIn
	opNotIn
)

// operatorText is the source text of each operator.
var operatorText = [...]string{"+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"}

func (o operator) String() string { return operatorText[o] }

// arguments are the arguments of a call, in source order.
type arguments []argument

type argument struct {
	name   string // of a keyword argument
	x      node
	spread spread
}

type spread uint8

const (
	single     spread = iota
	spreadList        // *args
	spreadDict        // **kwargs
)

// walk calls visit for n and everything below it.
func walk(n node, visit func(node)) {
	if n == nil {
		return
	}
	visit(n)
	for _, c := range children(n) {
		walk(c, visit)
	}
}

func children(n node) []node {
	switch n := n.(type) {
	case *attrNode:
		return []node{n.obj}
	case *indexNode:
		return []node{n.obj, n.key}
	case *sliceNode:
		return present(n.obj, n.low, n.up, n.step)
	case *callNode:
		return append([]node{n.fn}, n.args.nodes()...)
	case *filterNode:
		return append([]node{n.in}, n.args.nodes()...)
	case *testNode:
		return append([]node{n.in}, n.args.nodes()...)
	case *notNode:
		return []node{n.x}
	case *negNode:
		return []node{n.x}
	case *logicNode:
		return n.terms
	case *mathNode:
		return append([]node{n.first}, operands(n.rest)...)
	case *compareNode:
		return append([]node{n.first}, operands(n.rest)...)
	case *concatNode:
		return n.parts
	case *condNode:
		return present(n.cond, n.then, n.els)
	case *listNode:
		return n.items
	case *dictNode:
		return append(append([]node(nil), n.keys...), n.values...)
	}
	return nil
}

func present(nodes ...node) []node {
	var out []node
	for _, n := range nodes {
		if n != nil {
			out = append(out, n)
		}
	}
	return out
}

func operands(ops []operation) []node {
	out := make([]node, len(ops))
	for i, o := range ops {
		out[i] = o.x
	}
	return out
}

func (a arguments) nodes() []node {
	out := make([]node, len(a))
	for i := range a {
		out[i] = a[i].x
	}
	return out
}

// constant folds literals: strings and numbers, lists and dicts of them, and signs before them.
func constant(n node) (any, bool) {
	switch n := n.(type) {
	case *constNode:
		return n.v, true
	case *negNode:
		return constantSign(n)
	case *listNode:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			v, ok := constant(item)
			if !ok {
				return nil, false
			}
			out[i] = v
		}
		return out, true
	case *dictNode:
		return constantDict(n)
	}
	return nil, false
}

func constantSign(n *negNode) (any, bool) {
	v, ok := constant(n.x)
	if !ok {
		return nil, false
	}
	v, err := sign(v, n.plus)
	return v, err == nil
}

func constantDict(n *dictNode) (any, bool) {
	d := value.NewDict()
	for i := range n.keys {
		k, ok := constant(n.keys[i])
		v, ok2 := constant(n.values[i])
		if !ok || !ok2 || !IsKey(k) {
			return nil, false
		}
		d.Set(k, v)
	}
	return d, true
}

// IsKey reports whether a value can be the key of a dict.
func IsKey(v any) bool {
	switch v.(type) {
	case nil, bool, int, float64, string:
		return true
	}
	return false
}

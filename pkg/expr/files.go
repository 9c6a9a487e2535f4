package expr

import "kubekey/pkg/source"

// FileRead is a file that an expression reads by a literal name.
type FileRead struct {
	Dir, Name string // Dir is the folder where it is searched first: files or templates
	Pos       source.Pos
}

// Files are the files that the expression is sure to look up whenever it is
// evaluated, and cannot do without: none that an inline if, a default or errors=ignore excuses.
func (x *Expr) Files() []FileRead {
	var out []FileRead
	certain(x.root, func(n *callNode) {
		dir, names := filesOf(x.env, n)
		for _, c := range names {
			out = append(out, FileRead{dir, c.v.(string), advance(x.at, x.src, c.pos)})
		}
	})
	return out
}

// filesOf are the literal names of lookup('file', NAME...) and its kin.
func filesOf(e *Env, n *callNode) (dir string, names []*constNode) {
	fn, ok := n.fn.(*nameNode)
	if !ok || len(n.args) == 0 || fn.name != "lookup" && fn.name != "query" && fn.name != "q" {
		return "", nil
	}
	kind, _ := text(n.args[0])
	switch e.ShortName(kind) {
	case "file", "unvault":
		dir = "files"
	case "template":
		dir = "templates"
	default:
		return "", nil
	}
	for _, a := range n.args[1:] {
		if word, _ := text(a); a.spread != single || a.name == "errors" && word != "strict" {
			return "", nil
		}
		if _, literal := text(a); literal && a.name == "" {
			names = append(names, a.x.(*constNode))
		}
	}
	return dir, names
}

func text(a argument) (string, bool) {
	c, ok := a.x.(*constNode)
	if !ok {
		return "", false
	}
	s, ok := c.v.(string)
	return s, ok
}

// certain visits the calls that are made whenever a node is evaluated.
func certain(n node, visit func(*callNode)) {
	below := children(n)
	switch n := n.(type) {
	case *callNode:
		visit(n)
	case *filterNode:
		if n.lazy || n.name == "default" || n.name == "d" {
			return
		}
	case *testNode:
		if n.fn == nil {
			return
		}
	case *logicNode:
		below = n.terms[:1]
	case *condNode:
		below = []node{n.cond}
	case *listNode, *dictNode: // their members are evaluated when they are used
		return
	}
	for _, c := range below {
		certain(c, visit)
	}
}

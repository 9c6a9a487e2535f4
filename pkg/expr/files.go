package expr

import "kubekey/pkg/source"

// FileRead is a file that an expression reads by a literal name.
type FileRead struct {
	Dir, Name string // Dir is the folder that is searched first: files or templates
	Pos       source.Pos
}

// Files returns the files that every evaluation of the expression looks up and requires. Files that are optional
// because of an inline if, a default or errors=ignore are not included.
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

// filesOf returns the literal names of lookup('file', NAME...) and similar lookups.
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

// certain visits the calls that happen in every evaluation of a node.
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
	case *listNode, *dictNode: // their members are evaluated only when they are used
		return
	}
	for _, c := range below {
		certain(c, visit)
	}
}

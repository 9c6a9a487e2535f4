package expr

import (
	"context"

	"kubekey/pkg/value"
)

// Author is a Scope that distinguishes authored values, which the project or the command line contains, from values
// found during a run. Only authored values can become code, such as a condition in a variable. Results of hosts,
// lookups and filters have no authored form, so they are always data.
type Author interface {
	Scope
	// Authored returns the unevaluated value of a name from the project's files or the command line; ok is false
	// when the value comes from anywhere else. Only the scope knows the type of authored.
	Authored(name string) (authored any, ok bool)
	// AuthoredMember returns a member of such a value.
	AuthoredMember(of, key any) (authored any, ok bool)
}

// Authored returns the authored value behind the expression. The expression must be a name, a member of a name, a
// choice between such expressions, or a text. ok is false for everything else, which is data.
func (x *Expr) Authored(ctx context.Context, s Scope) (authored any, ok bool) {
	author, ok := s.(Author)
	if !ok {
		return nil, false
	}
	var err error
	defer func() { ok = ok && err == nil }()
	defer x.rescue(&err)
	f := x.frame(ctx, s)
	return f.authored(x.root, author)
}

func (f *frame) authored(n node, s Author) (any, bool) {
	switch n := n.(type) {
	case *constNode:
		text, ok := n.v.(string)
		return text, ok
	case *nameNode:
		return s.Authored(n.name)
	case *attrNode:
		return f.authoredMember(n.obj, n.key, s)
	case *indexNode:
		key, err := f.need(n.key)
		if err != nil {
			return nil, false
		}
		return f.authoredMember(n.obj, key, s)
	case *condNode:
		return f.authoredChoice(n, s)
	case *filterNode:
		if n.name == "default" || n.name == "d" {
			return f.authoredDefault(n, s)
		}
	}
	return nil, false
}

func (f *frame) authoredMember(obj node, key any, s Author) (any, bool) {
	of, ok := f.authored(obj, s)
	if !ok {
		return nil, false
	}
	return s.AuthoredMember(of, key)
}

func (f *frame) authoredChoice(n *condNode, s Author) (any, bool) {
	yes, err := f.truth(n.cond)
	switch {
	case err != nil:
		return nil, false
	case yes:
		return f.authored(n.then, s)
	case n.els == nil:
		return nil, false
	}
	return f.authored(n.els, s)
}

// authoredDefault handles `x | default(y)`: x is used if it exists, y otherwise.
func (f *frame) authoredDefault(n *filterNode, s Author) (any, bool) {
	v, err := f.force(n.in)
	if err != nil {
		return nil, false
	}
	switch {
	case len(n.args) > 1 || len(n.args) == 1 && (n.args[0].name != "" || n.args[0].spread != single):
		return nil, false
	case !value.IsUndefined(v):
		return f.authored(n.in, s)
	case len(n.args) == 0:
		return "", true
	}
	return f.authored(n.args[0].x, s)
}

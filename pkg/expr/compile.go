package expr

import (
	"context"
	"fmt"
	"slices"

	"kubekey/pkg/source"
)

// Expr is a compiled expression. It does not change: many goroutines may
// evaluate it at once.
type Expr struct {
	env  *Env
	root node
	src  string
	at   source.Pos

	// builds is set when a list or dict is written out in the expression, with
	// members that are no literals: any of them may be undefined.
	builds bool
}

// Compile parses an expression. at is the position of the first rune of src;
// the zero Pos is nowhere. The error is a *source.Diagnostic at the place of
// the problem: bad syntax, or a filter, test or lookup that does not exist.
func (e *Env) Compile(src string, at source.Pos, lit Literals) (*Expr, error) {
	return e.compile(src, at, lit, (*parser).expression)
}

// CompileTuple is Compile that also takes several expressions with commas,
// which yield a list: {% for a in 1, 2 %}, {% set a, b = 1, 2 %}.
func (e *Env) CompileTuple(src string, at source.Pos, lit Literals) (*Expr, error) {
	return e.compile(src, at, lit, (*parser).tuple)
}

func (e *Env) compile(src string, at source.Pos, lit Literals, rule func(*parser) node) (*Expr, error) {
	root, err := e.parse(src, lit, rule)
	if err != nil {
		return nil, err.diagnostic(src, at)
	}
	x := &Expr{env: e, root: root, src: src, at: at, builds: buildsContainer(root)}
	if e.opts.Seen != nil {
		e.opts.Seen(x)
	}
	return x, nil
}

func buildsContainer(root node) bool {
	found := false
	walk(root, func(n node) {
		switch n.(type) {
		case *listNode, *dictNode:
			_, literal := constant(n)
			found = found || !literal
		}
	})
	return found
}

// Source is the text that was compiled.
func (x *Expr) Source() string { return x.src }

// Pos is the position of the first rune of Source.
func (x *Expr) Pos() source.Pos { return x.at }

// Names are the variables that the expression reads, sorted, each once.
// Global functions are among them when they are called.
func (x *Expr) Names() []string {
	var names []string
	walk(x.root, func(n node) {
		if n, ok := n.(*nameNode); ok {
			names = append(names, n.name)
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// Const is the value of an expression that is a literal: a string, a number,
// a list of such. The caller may change it.
func (x *Expr) Const() (any, bool) { return constant(x.root) }

// Eval evaluates to plain data. An undefined result is an error (an *Error
// that errors.As finds a *value.Undefined in), and so is an undefined element
// of a list or dict that the expression itself made. An inline if that has
// no else and is false yields nil.
func (x *Expr) Eval(ctx context.Context, s Scope) (v any, err error) {
	defer x.rescue(&err)
	f := x.frame(ctx, s)
	return f.strict(x.root)
}

// EvalLoose is Eval for {% set %} and for variables: an undefined result
// comes back as a *value.Undefined, and a value.Lazy is not forced.
func (x *Expr) EvalLoose(ctx context.Context, s Scope) (v any, err error) {
	defer x.rescue(&err)
	f := x.frame(ctx, s)
	return f.eval(x.root)
}

// Bool evaluates a condition. An undefined result is an error.
func (x *Expr) Bool(ctx context.Context, s Scope) (ok bool, err error) {
	defer x.rescue(&err)
	f := x.frame(ctx, s)
	return f.truth(x.root)
}

// rescue is the last resort: a defect of a filter must not end the whole run.
func (x *Expr) rescue(err *error) {
	if r := recover(); r != nil {
		*err = &Error{Pos: x.at, Source: x.src, Err: fmt.Errorf("internal error while evaluating '%s': %v", x.src, r)}
	}
}

func (x *Expr) frame(ctx context.Context, s Scope) frame {
	return frame{expr: x, ctx: ctx, scope: s}
}

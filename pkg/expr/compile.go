package expr

import (
	"context"
	"fmt"
	"slices"

	"kubekey/pkg/source"
)

// Expr is a compiled expression. It is immutable: many goroutines can evaluate it at once.
type Expr struct {
	env  *Env
	root node
	src  string
	at   source.Pos

	// builds is set when the expression contains a list or dict display with members that are not literals. Any of
	// these members can be undefined.
	builds bool
}

// Compile parses an expression. at is the position of the first rune of src; the zero Pos means no position. The
// error is a *source.Diagnostic at the position of the problem: a syntax error, or an unknown filter, test or
// lookup.
func (e *Env) Compile(src string, at source.Pos, lit Literals) (*Expr, error) {
	return e.compile(src, at, lit, (*parser).expression)
}

// CompileTuple is Compile that also accepts several expressions with commas, which yield a list:
// {% for a in 1, 2 %}, {% set a, b = 1, 2 %}.
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

// Source returns the text that was compiled.
func (x *Expr) Source() string { return x.src }

// Pos returns the position of the first rune of Source.
func (x *Expr) Pos() source.Pos { return x.at }

// Names returns the variables that the expression reads, sorted and without duplicates. Global functions are
// included when they are called.
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

// Const returns the value of an expression that is a literal: a string, a number, or a list of these. The caller
// may change the value.
func (x *Expr) Const() (any, bool) { return constant(x.root) }

// Eval evaluates the expression to plain data. An undefined result is an error (an *Error in which errors.As finds
// a *value.Undefined). So is an undefined element of a list or dict that the expression itself created. An inline
// if that has no else and is false yields nil.
func (x *Expr) Eval(ctx context.Context, s Scope) (v any, err error) {
	defer x.rescue(&err)
	f := x.frame(ctx, s)
	return f.strict(x.root)
}

// EvalLoose is Eval for {% set %} and for variables: an undefined result is returned as a *value.Undefined, and a
// value.Lazy is not forced.
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

// rescue turns a panic into an error, so that a defect in a filter does not stop the whole run.
func (x *Expr) rescue(err *error) {
	if r := recover(); r != nil {
		*err = &Error{Pos: x.at, Source: x.src, Err: fmt.Errorf("internal error while evaluating '%s': %v", x.src, r)}
	}
}

func (x *Expr) frame(ctx context.Context, s Scope) frame {
	return frame{expr: x, ctx: ctx, scope: s}
}

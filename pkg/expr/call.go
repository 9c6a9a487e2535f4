package expr

import (
	"context"

	"kubekey/pkg/value"
)

// Call is the context of one call of a filter, test, lookup or function.
type Call struct {
	Context context.Context
	Env     *Env
	Scope   Scope
}

// Args are the evaluated arguments of a call. Values can be *value.Undefined. A value.Lazy has already been forced,
// except for extract and default, which pick from it.
type Args struct {
	Positional []any
	Named      *value.Dict // nil when there are none
}

// Callable is a value that a template can call: a macro, caller, loop, a bound method. It receives the context of
// the call.
type Callable interface {
	Call(c *Call, a Args) (any, error)
}

// Func converts a Go function to a Callable.
type Func func(c *Call, a Args) (any, error)

// Call implements Callable.
func (f Func) Call(c *Call, a Args) (any, error) { return f(c, a) }

// Attrs is a value with attributes that is not a dict: loop, a namespace, an imported template. ok is false for an
// attribute that does not exist.
type Attrs interface {
	Attr(name string) (v any, ok bool)
}

// AttrSetter is a value whose attributes can be set: {% set ns.x = 1 %}.
type AttrSetter interface {
	SetAttr(name string, v any)
}

// filter is one filter; in is the value before the bar.
type filter func(c *Call, in any, a Args) (any, error)

// test is one test; in is the value before `is`.
type test func(c *Call, in any, a Args) (bool, error)

// function is a global function or a lookup; a lookup returns a list.
type function func(c *Call, a Args) (any, error)

// Filter calls a filter by its short or full name. An unknown name is an error with a hint.
func (c *Call) Filter(name string, in any, a Args) (any, error) {
	fn, err := c.Env.filter(name)
	if err != nil {
		return nil, err
	}
	return fn(c, in, a)
}

// Test calls a test by its short or full name. An unknown name is an error with a hint.
func (c *Call) Test(name string, in any, a Args) (bool, error) {
	fn, err := c.Env.test(name)
	if err != nil {
		return false, err
	}
	return fn(c, in, a)
}

// Attr follows a dotted path ("name", "address.0.ip") from v. A missing member is a *value.Undefined, not an error.
// The result is forced.
func (c *Call) Attr(v any, path string) (any, error) { return Attr(v, path) }

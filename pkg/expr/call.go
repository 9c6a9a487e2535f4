package expr

import (
	"context"

	"kubekey/pkg/value"
)

// Call is the surroundings of one call of a filter, test, lookup or function.
type Call struct {
	Context context.Context
	Env     *Env
	Scope   Scope
}

// Args are the evaluated arguments of a call. Values may be *value.Undefined;
// a value.Lazy has been forced.
type Args struct {
	Positional []any
	Named      *value.Dict // nil when there are none
}

// filter is one filter: in is what stands before the bar.
type filter func(c *Call, in any, a Args) (any, error)

// test is one test: in is what stands before `is`.
type test func(c *Call, in any, a Args) (bool, error)

// function is a global function or a lookup; a lookup returns a list.
type function func(c *Call, a Args) (any, error)

package expr

import (
	"context"
	"fmt"

	"kubekey/pkg/value"
)

// RunLookup runs a lookup by its name, as with_NAME does, and returns its list.
func (e *Env) RunLookup(ctx context.Context, s Scope, name string, terms []any) ([]any, error) {
	f, err := e.lookup(name)
	if err != nil {
		return nil, err
	}
	v, err := f(&Call{Context: ctx, Env: e, Scope: s}, Args{Positional: terms})
	if err != nil {
		return nil, fmt.Errorf("with_%s: %w", name, err)
	}
	if list, ok := v.([]any); ok {
		return list, nil
	}
	return []any{value.Clone(v)}, nil
}

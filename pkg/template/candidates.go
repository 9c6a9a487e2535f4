package template

import (
	"context"
	"errors"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// Candidates is Value of things to choose from, as with_first_found has them:
// an element of a list that needs an undefined variable is left out.
func (d *Data) Candidates(ctx context.Context, s expr.Scope) (any, error) {
	switch d.kind {
	case list:
		out := []any{}
		for _, e := range d.list {
			v, err := e.Candidates(ctx, s)
			var u *value.Undefined
			switch {
			case errors.As(err, &u):
				continue
			case err != nil:
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case mapping:
		out := value.NewDict()
		for i, k := range d.keys {
			key, err := k.Value(ctx, s)
			if err != nil {
				return nil, err
			}
			v, err := d.vals[i].Candidates(ctx, s)
			if err != nil {
				return nil, err
			}
			out.Set(key, v)
		}
		return out, nil
	}
	return d.Value(ctx, s)
}

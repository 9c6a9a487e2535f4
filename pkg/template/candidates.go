package template

import (
	"context"
	"errors"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// Candidates is Value for lists of candidates, as in with_first_found: list elements that need an undefined
// variable are skipped.
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

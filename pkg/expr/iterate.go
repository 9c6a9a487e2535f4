package expr

import "kubekey/pkg/value"

// iterate lists what Python's iter() yields: elements, the keys of a dict,
// the characters of a string. It forces a Lazy; undefined and scalars are
// errors, but an inline if without else yields nothing.
func iterate(v any) ([]any, error) {
	if u, ok := v.(*value.Undefined); ok && u.Lenient {
		return nil, nil
	}
	return items(v)
}

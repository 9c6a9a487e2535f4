package expr

import "kubekey/pkg/value"

// Iterate lists what Python's iter() yields: elements, the keys of a dict,
// the characters of a string. It forces a Lazy; undefined and scalars are
// errors, but an inline if without else yields nothing.
func Iterate(v any) ([]any, error) {
	if u, ok := v.(*value.Undefined); ok && u.Lenient {
		return nil, nil
	}
	return Items(v)
}

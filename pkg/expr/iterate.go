package expr

import "kubekey/pkg/value"

// Iterate returns the items that Python's iter() yields: elements, the keys of a dict, the characters of a string.
// It forces a Lazy. Undefined values and scalars are errors, except that an inline if without else yields nothing.
func Iterate(v any) ([]any, error) {
	if u, ok := v.(*value.Undefined); ok && u.Lenient {
		return nil, nil
	}
	return Items(v)
}

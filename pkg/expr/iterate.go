package expr

// iterate lists what Python's iter() yields: elements, the keys of a dict,
// the characters of a string. It forces a Lazy; undefined and scalars are errors.
func iterate(v any) ([]any, error) { return nil, nil }

package expr

// attrPath follows a dotted path; what is missing is a *value.Undefined.
func attrPath(v any, path string) (any, error) { return nil, nil }

package expr

// builtinFilters returns the filters that every Env has, by short name.
func builtinFilters() map[string]filter { return map[string]filter{} }

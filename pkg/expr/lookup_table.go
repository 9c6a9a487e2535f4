package expr

// builtinLookups returns the lookups that every Env has, by short name.
func builtinLookups() map[string]function { return map[string]function{} }

package expr

// builtinFunctions are the global functions.
func builtinFunctions() map[string]function { return map[string]function{} }

package expr

// builtinTests are all tests by short name.
func builtinTests() map[string]test { return map[string]test{} }

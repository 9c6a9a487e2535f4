package expr

// percentFormat is Python's format % args. A list is several arguments, a
// dict serves %(name)s, anything else is the one argument.
func percentFormat(format string, args any) (string, error) { return "", nil }

package value

import "iter"

// Strings yields every text inside a value with its key: its own or, in a list, that of the list. key is the key of v.
func Strings(key string, v any) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		walk(key, v, 0, func(_, key string) string { return key }, func(key string, v any) bool {
			text, ok := v.(string)
			return !ok || yield(key, text)
		})
	}
}

// Named yields every text and number inside a value with its name. within builds the name of a member from the name
// of its mapping and its key.
func Named(name string, v any, within func(mapping, key string) string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		walk(name, v, 0, within, func(name string, v any) bool {
			switch v.(type) {
			case string, int, float64:
				return yield(name, Str(v))
			}
			return true
		})
	}
}

// walk visits the scalars of a value until visit returns false.
func walk(name string, v any, depth int, within func(mapping, key string) string, visit func(string, any) bool) bool {
	if depth > maxDepth {
		return true
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if !walk(name, e, depth+1, within, visit) {
				return false
			}
		}
		return true
	case *Dict:
		for k, e := range v.All() {
			if !walk(within(name, Str(k)), e, depth+1, within, visit) {
				return false
			}
		}
		return true
	}
	return visit(name, v)
}

// List converts texts to a list value.
func List(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

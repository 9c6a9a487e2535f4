package value

import "iter"

// Strings yields every text inside a value with the key that it stands under:
// its own or, in a list, that of the list; key is the value's own.
func Strings(key string, v any) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) { eachString(key, v, 0, yield) }
}

func eachString(key string, v any, depth int, yield func(string, string) bool) bool {
	if depth > maxDepth {
		return true
	}
	switch v := v.(type) {
	case string:
		return yield(key, v)
	case []any:
		for _, e := range v {
			if !eachString(key, e, depth+1, yield) {
				return false
			}
		}
	case *Dict:
		for k, e := range v.All() {
			name, _ := k.(string)
			if !eachString(name, e, depth+1, yield) {
				return false
			}
		}
	}
	return true
}

// List is texts as a list of playbooks.
func List(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

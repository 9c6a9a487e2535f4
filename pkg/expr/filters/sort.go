package filters

import (
	"slices"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// foldCase converts texts to lower case, for comparisons that ignore case.
func foldCase(v any) any {
	if s, ok := v.(string); ok {
		return strings.ToLower(s)
	}
	return v
}

// keyed is an item with its sort key.
type keyed struct{ item, key any }

// withKeys evaluates the attributes ("a" or "a,b.c") by which items are compared.
func withKeys(c *expr.Call, list []any, attribute string, caseSensitive bool) ([]keyed, error) {
	paths := strings.Split(attribute, ",")
	out := make([]keyed, len(list))
	for i, item := range list {
		item, err := expr.Defined(item)
		if err != nil {
			return nil, err
		}
		key := item
		if attribute != "" {
			if key, err = attributeKey(c, item, paths); err != nil {
				return nil, err
			}
		}
		out[i] = keyed{item, fold(key, caseSensitive)}
	}
	return out, nil
}

func attributeKey(c *expr.Call, item any, paths []string) (any, error) {
	parts := make([]any, len(paths))
	for i, path := range paths {
		v, err := c.Attr(item, strings.TrimSpace(path))
		if err != nil {
			return nil, err
		}
		if parts[i], err = expr.Defined(v); err != nil {
			return nil, err
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return parts, nil
}

func fold(key any, caseSensitive bool) any {
	if caseSensitive {
		return key
	}
	if list, ok := key.([]any); ok {
		out := make([]any, len(list))
		for i, v := range list {
			out[i] = foldCase(v)
		}
		return out
	}
	return foldCase(key)
}

// sortKeyed sorts stably. With reverse, equal items also keep their order.
func sortKeyed(list []keyed, reverse bool) error {
	var failed error
	slices.SortStableFunc(list, func(a, b keyed) int {
		n, err := value.Compare(a.key, b.key)
		if err != nil && failed == nil {
			failed = err
		}
		if reverse {
			return -n
		}
		return n
	})
	return failed
}

func filterSort(c *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	pairs, err := withKeys(c, list, value.Str(p.Value("attribute", "")), p.Flag("case_sensitive", false))
	if err != nil {
		return nil, err
	}
	if err := sortKeyed(pairs, p.Flag("reverse", false)); err != nil {
		return nil, err
	}
	return unkey(pairs), nil
}

func unkey(pairs []keyed) []any {
	out := make([]any, len(pairs))
	for i, k := range pairs {
		out[i] = k.item
	}
	return out
}

// extreme makes the filters min (sign -1) and max (sign 1).
func extreme(sign int) func(*expr.Call, any, *expr.Bound) (any, error) {
	return func(c *expr.Call, in any, p *expr.Bound) (any, error) {
		list, err := expr.Items(in)
		if err != nil {
			return nil, err
		}
		pairs, err := withKeys(c, list, value.Str(p.Value("attribute", "")), p.Flag("case_sensitive", false))
		if err != nil {
			return nil, err
		}
		if len(pairs) == 0 {
			return &value.Undefined{Name: p.Callee(), Hint: "the sequence is empty"}, nil
		}
		best := pairs[0]
		for _, k := range pairs[1:] {
			n, err := value.Compare(k.key, best.key)
			if err != nil {
				return nil, err
			}
			if n*sign > 0 {
				best = k
			}
		}
		return best.item, nil
	}
}

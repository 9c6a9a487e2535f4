package filters

import (
	"fmt"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

func setFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "unique", Params: "case_sensitive attribute", Do: filterUnique},
		{Names: "union", Params: "other!", Do: twoLists(Union)},
		{Names: "intersect", Params: "other!", Do: twoLists(Intersect)},
		{Names: "difference", Params: "other!", Do: twoLists(Difference)},
		{Names: "symmetric_difference", Params: "other!", Do: twoLists(symmetricDifference)},
		{Names: "lists_union", Of: "community.general", Params: "* **", Do: manyLists(Union)},
		{Names: "lists_intersect", Of: "community.general", Params: "* **", Do: manyLists(Intersect)},
		{Names: "lists_difference", Of: "community.general", Params: "* **", Do: manyLists(Difference)},
		{Names: "lists_symmetric_difference", Of: "community.general", Params: "* **", Do: manyLists(symmetricDifference)},
	}
}

// members is a set of values: scalars by hash, containers in a list.
type members struct {
	scalars    *value.Dict
	containers []any
}

func membersOf(list []any) *members {
	m := &members{scalars: value.NewDict()}
	for _, v := range list {
		m.add(v)
	}
	return m
}

// add reports whether v is new.
func (m *members) add(v any) bool {
	if m.has(v) {
		return false
	}
	if key, ok := Hashable(v); ok {
		m.scalars.Set(key, nil)
	} else {
		m.containers = append(m.containers, v)
	}
	return true
}

func (m *members) has(v any) bool {
	if key, ok := Hashable(v); ok {
		return m.scalars.Has(key)
	}
	for _, w := range m.containers {
		if value.Equal(v, w) {
			return true
		}
	}
	return false
}

// Hashable returns a map key that is the same for equal values; True is 1.
func Hashable(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		n, _ := expr.WholeNumber(v)
		return n, true
	case nil, string, int:
		return v, true
	case float64:
		return v, v == v
	}
	return nil, false
}

func uniqueOf(list []any) []any {
	seen, out := membersOf(nil), []any{}
	for _, v := range list {
		if seen.add(v) {
			out = append(out, v)
		}
	}
	return out
}

// filterUnique ignores case unless case_sensitive is set, as Ansible does.
func filterUnique(c *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	pairs, err := withKeys(c, list, value.Str(p.Value("attribute", "")), p.Flag("case_sensitive", false))
	if err != nil {
		return nil, err
	}
	seen, out := membersOf(nil), []any{}
	for _, k := range pairs {
		if seen.add(k.key) {
			out = append(out, k.item)
		}
	}
	return out, nil
}

// twoLists makes a filter from a function of the input's and the argument's items.
func twoLists(f func(a, b []any) []any) func(*expr.Call, any, *expr.Bound) (any, error) {
	return func(_ *expr.Call, in any, p *expr.Bound) (any, error) {
		a, err := DefinedItems(in)
		if err != nil {
			return nil, err
		}
		b, err := DefinedItems(p.Value("other", nil))
		if p.Err != nil {
			return nil, p.Err
		}
		if err != nil {
			return nil, err
		}
		return f(a, b), nil
	}
}

// manyLists makes a filter from a function of two lists and applies it to any number of lists in turn, as the
// filters of community.general do. With flatten, the input is the list of lists.
func manyLists(f func(a, b []any) []any) func(*expr.Call, any, *expr.Bound) (any, error) {
	return func(_ *expr.Call, in any, p *expr.Bound) (any, error) {
		lists := append([]any{in}, p.Rest...)
		flatten, _ := p.Named.Get("flatten")
		for name := range p.Named.All() {
			if name != "flatten" {
				return nil, p.Unknown(value.Str(name))
			}
		}
		if value.Truth(flatten) {
			var err error
			if lists, err = DefinedItems(in); err != nil {
				return nil, err
			}
			lists = append(lists, p.Rest...)
		}
		var out []any
		for i, v := range lists {
			if _, ok := v.(string); ok {
				return nil, fmt.Errorf("list %d is a text", i+1)
			}
			list, err := DefinedItems(v)
			switch {
			case err != nil:
				return nil, fmt.Errorf("list %d: %w", i+1, err)
			case i == 0:
				out = uniqueOf(list)
			default:
				out = f(out, list)
			}
		}
		return out, nil
	}
}

// DefinedItems returns the items of v in a new list. Lazy items are forced, undefined items are an error.
func DefinedItems(v any) ([]any, error) {
	list, err := freshList(v)
	if err != nil {
		return nil, err
	}
	for i, v := range list {
		if list[i], err = expr.Defined(v); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Union returns the items of a or b, without duplicates.
func Union(a, b []any) []any { return uniqueOf(append(a, b...)) }

// Intersect returns the items of both a and b, without duplicates.
func Intersect(a, b []any) []any { return uniqueOf(only(a, membersOf(b), true)) }

// Difference returns the items of a that are not in b, without duplicates.
func Difference(a, b []any) []any { return uniqueOf(only(a, membersOf(b), false)) }

func symmetricDifference(a, b []any) []any {
	both := membersOf(Intersect(a, b))
	return only(Union(a, b), both, false)
}

// only keeps the items that are (or, if in is false, are not) members of the set.
func only(list []any, set *members, in bool) []any {
	var out []any
	for _, v := range list {
		if set.has(v) == in {
			out = append(out, v)
		}
	}
	if out == nil {
		return []any{}
	}
	return out
}

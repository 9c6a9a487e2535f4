package expr

import (
	"fmt"

	"kubekey/pkg/value"
)

func setFilters() []filterSpec {
	return []filterSpec{
		{names: "unique", params: "case_sensitive attribute", do: filterUnique},
		{names: "union", params: "other!", do: twoLists(union)},
		{names: "intersect", params: "other!", do: twoLists(intersect)},
		{names: "difference", params: "other!", do: twoLists(difference)},
		{names: "symmetric_difference", params: "other!", do: twoLists(symmetricDifference)},
		{names: "lists_union", of: "community.general", params: "* **", do: manyLists(union)},
		{names: "lists_intersect", of: "community.general", params: "* **", do: manyLists(intersect)},
		{names: "lists_difference", of: "community.general", params: "* **", do: manyLists(difference)},
		{names: "lists_symmetric_difference", of: "community.general", params: "* **", do: manyLists(symmetricDifference)},
	}
}

// members is a set of values: scalars by hash, containers one by one.
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
	if key, ok := hashable(v); ok {
		m.scalars.Set(key, nil)
	} else {
		m.containers = append(m.containers, v)
	}
	return true
}

func (m *members) has(v any) bool {
	if key, ok := hashable(v); ok {
		return m.scalars.Has(key)
	}
	for _, w := range m.containers {
		if value.Equal(v, w) {
			return true
		}
	}
	return false
}

// hashable is a key under which equal values meet; True is 1.
func hashable(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		n, _ := wholeNumber(v)
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

// filterUnique ignores case unless it is told to heed it, as Ansible does.
func filterUnique(c *Call, in any, p *bound) (any, error) {
	list, err := items(in)
	if err != nil {
		return nil, err
	}
	pairs, err := withKeys(c, list, value.Str(p.value("attribute", "")), p.flag("case_sensitive", false))
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

// twoLists makes a filter of a function of the input's and the argument's items.
func twoLists(f func(a, b []any) []any) func(*Call, any, *bound) (any, error) {
	return func(_ *Call, in any, p *bound) (any, error) {
		a, err := definedItems(in)
		if err != nil {
			return nil, err
		}
		b, err := definedItems(p.value("other", nil))
		if p.err != nil {
			return nil, p.err
		}
		if err != nil {
			return nil, err
		}
		return f(a, b), nil
	}
}

// manyLists makes a filter of a function of two lists that takes any number of them, one after the
// other, as the filters of community.general do. With flatten the input is the list of the lists.
func manyLists(f func(a, b []any) []any) func(*Call, any, *bound) (any, error) {
	return func(_ *Call, in any, p *bound) (any, error) {
		lists := append([]any{in}, p.rest...)
		flatten, _ := p.named.Get("flatten")
		for name := range p.named.All() {
			if name != "flatten" {
				return nil, p.unknown(value.Str(name))
			}
		}
		if value.Truth(flatten) {
			var err error
			if lists, err = definedItems(in); err != nil {
				return nil, err
			}
			lists = append(lists, p.rest...)
		}
		var out []any
		for i, v := range lists {
			if _, ok := v.(string); ok {
				return nil, fmt.Errorf("list %d is a text", i+1)
			}
			list, err := definedItems(v)
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

// definedItems is items of which none is undefined or lazy.
func definedItems(v any) ([]any, error) {
	list, err := freshList(v)
	if err != nil {
		return nil, err
	}
	for i, v := range list {
		if list[i], err = defined(v); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func union(a, b []any) []any { return uniqueOf(append(a, b...)) }

func intersect(a, b []any) []any { return uniqueOf(only(a, membersOf(b), true)) }

func difference(a, b []any) []any { return uniqueOf(only(a, membersOf(b), false)) }

func symmetricDifference(a, b []any) []any {
	both := membersOf(intersect(a, b))
	return only(union(a, b), both, false)
}

// only keeps what is, or is not, a member of the set.
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

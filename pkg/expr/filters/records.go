package filters

import (
	"errors"
	"fmt"
	"slices"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// recordFilters are the filters of community.general and ansible.utils that read and join lists of dictionaries.
func recordFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "lists_mergeby", Of: "community.general", Params: "* **", Do: filterListsMergeBy},
	}
}

// filterListsMergeBy merges dictionaries from several lists that have the same value under a key. Values from later
// lists override earlier ones.
func filterListsMergeBy(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	m, err := newMerger(p)
	if err != nil {
		return nil, err
	}
	if len(p.Rest) == 0 {
		return nil, errors.New("at least one list and the index are needed")
	}
	var lists [][]any
	for _, v := range append([]any{in}, p.Rest[:len(p.Rest)-1]...) {
		list, err := expr.Items(v)
		if err != nil {
			return nil, fmt.Errorf("all arguments before the index must be lists: %w", err)
		}
		if len(list) == 0 {
			continue
		}
		inner, err := listsOf(list)
		if err != nil {
			return nil, err
		}
		lists = append(lists, inner...)
	}
	if len(lists) < 2 {
		return slices.Concat([]any{}, slices.Concat(lists...)), nil
	}
	last, err := expr.Defined(p.Rest[len(p.Rest)-1])
	if err != nil {
		return nil, err
	}
	index, ok := last.(string)
	if !ok {
		return nil, fmt.Errorf("the index, behind the lists, must be a text, not %s", expr.DescribeType(last))
	}
	result := lists[len(lists)-1]
	for i := len(lists) - 2; i >= 0; i-- {
		if result, err = m.mergeBy(lists[i], result, index); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// listsOf returns a list of lists, or wraps a list as the only one.
func listsOf(list []any) ([][]any, error) {
	var out [][]any
	for _, v := range list {
		v, err := expr.Defined(v)
		if err != nil {
			return nil, err
		}
		inner, ok := v.([]any)
		if !ok {
			return [][]any{list}, nil
		}
		out = append(out, inner)
	}
	return out, nil
}

// mergeBy merges two lists and sorts the result by the index.
func (m *merger) mergeBy(older, newer []any, index string) ([]any, error) {
	found := value.NewDict()
	for _, v := range slices.Concat(older, newer) {
		d, err := expr.AsDict(v)
		if err != nil {
			return nil, fmt.Errorf("elements of the lists must be dictionaries: %w", err)
		}
		at, there := d.Get(index)
		if !there {
			continue
		}
		key, ok := Hashable(at)
		if !ok {
			return nil, fmt.Errorf("%s under %q cannot be compared", value.Repr(at), index)
		}
		was, _ := found.Get(key)
		if merged, ok := was.(*value.Dict); ok {
			if d, err = m.merge(merged, d, 0); err != nil {
				return nil, err
			}
		}
		found.Set(key, d)
	}
	out := []any{}
	for _, d := range found.All() {
		out = append(out, d)
	}
	var failed error
	slices.SortStableFunc(out, func(a, b any) int {
		x, _ := a.(*value.Dict).Get(index)
		y, _ := b.(*value.Dict).Get(index)
		n, err := value.Compare(x, y)
		failed = errors.Join(failed, err)
		return n
	})
	return out, failed
}

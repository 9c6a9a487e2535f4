package filters

import (
	"errors"
	"fmt"
	"slices"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// columns returns the input and the further lists of zip and product.
func columns(in any, p *expr.Bound) ([][]any, int, error) {
	out, longest := [][]any{}, 0
	for _, v := range append([]any{in}, p.Rest...) {
		list, err := expr.Items(v)
		if err != nil {
			return nil, 0, err
		}
		longest = max(longest, len(list))
		out = append(out, list)
	}
	return out, longest, nil
}

func filterZip(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	cols, shortest, err := columns(in, p)
	if err != nil {
		return nil, err
	}
	for _, col := range cols {
		shortest = min(shortest, len(col))
	}
	return Zip(cols, shortest, nil)
}

func filterZipLongest(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	fill, err := onlyNamed(p, "fillvalue", nil)
	if err != nil {
		return nil, err
	}
	cols, longest, err := columns(in, p)
	if err != nil {
		return nil, err
	}
	return Zip(cols, longest, fill)
}

// Zip makes n rows of columns. fill replaces the missing items of shorter columns.
func Zip(cols [][]any, n int, fill any) (any, error) {
	if n*len(cols) > expr.MaxItems {
		return nil, expr.ErrListTooBig
	}
	out := make([]any, n)
	for i := range out {
		row := make([]any, len(cols))
		for j, col := range cols {
			row[j] = fill
			if i < len(col) {
				row[j] = col[i]
			}
		}
		out[i] = row
	}
	return out, nil
}

// onlyNamed returns the only named argument that a filter with * accepts.
func onlyNamed(p *expr.Bound, name string, def any) (any, error) {
	for k := range p.Named.All() {
		if k != name {
			return nil, fmt.Errorf("%s has no argument %q (it takes %s)", p.Callee(), value.Str(k), name)
		}
	}
	v, ok := p.Named.Get(name)
	if !ok {
		return def, nil
	}
	return expr.Defined(v)
}

func filterProduct(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	v, err := onlyNamed(p, "repeat", 1)
	if err != nil {
		return nil, err
	}
	cols, _, err := columns(in, p)
	if err != nil {
		return nil, err
	}
	repeat, ok := expr.WholeNumber(v)
	if !ok || repeat < 0 || repeat > 64 {
		return nil, fmt.Errorf("argument repeat must be a small whole number, not %s", value.Repr(v))
	}
	var all [][]any
	for range repeat {
		all = append(all, cols...)
	}
	return Product(all)
}

// Product returns every combination of one item of each list. The last list changes fastest.
func Product(lists [][]any) (any, error) {
	total := 1
	for _, list := range lists {
		if len(list) > 0 && total > expr.MaxItems/len(list) {
			return nil, expr.ErrListTooBig
		}
		total *= len(list)
	}
	out := make([]any, total)
	for i := range out {
		row, rest := make([]any, len(lists)), i
		for j := len(lists) - 1; j >= 0; j-- {
			row[j] = lists[j][rest%len(lists[j])]
			rest /= len(lists[j])
		}
		out[i] = row
	}
	return out, nil
}

func filterPermutations(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	n := p.Int("length", len(list))
	if err := errors.Join(p.Err, countable(len(list), n, false)); err != nil {
		return nil, err
	}
	return choose(list, n, func(taken []int, i int) bool { return !slices.Contains(taken, i) }), nil
}

func filterCombinations(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	n := p.Int("length", 0)
	if err := errors.Join(p.Err, countable(len(list), n, true)); err != nil {
		return nil, err
	}
	return choose(list, n, func(taken []int, i int) bool {
		return len(taken) == 0 || i > taken[len(taken)-1]
	}), nil
}

// countable returns an error when there are too many ways to choose n of the items. The order of the n items
// matters unless set is true.
func countable(of, n int, set bool) error {
	if n < 0 {
		return fmt.Errorf("argument length must not be negative")
	}
	if n > of {
		return nil
	}
	ways, small := 1.0, n
	if set {
		small = min(n, of-n)
	}
	for i := range small {
		ways *= float64(of - i)
		if set {
			ways /= float64(i + 1)
		}
	}
	if ways*float64(n) > 4*expr.MaxItems || float64(n)*float64(of) > 4*expr.MaxItems {
		return expr.ErrListTooBig
	}
	return nil
}

// choose lists the ways to choose n items. may reports whether an index can follow the ones already chosen.
func choose(list []any, n int, may func(taken []int, i int) bool) []any {
	out := []any{}
	if n > len(list) {
		return out
	}
	var walk func(taken []int)
	walk = func(taken []int) {
		if len(taken) == n {
			row := make([]any, n)
			for j, i := range taken {
				row[j] = list[i]
			}
			out = append(out, row)
			return
		}
		for i := range list {
			if may(taken, i) {
				walk(append(taken, i))
			}
		}
	}
	walk(make([]int, 0, n))
	return out
}

package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"kubekey/pkg/value"
)

func listFilters() []filterSpec {
	return []filterSpec{
		{names: "list", do: func(_ *Call, in any, _ *bound) (any, error) { return freshList(in) }},
		{names: "first", do: filterFirst},
		{names: "last", do: filterLast},
		{names: "join", params: "d attribute", do: filterJoin},
		{names: "sort", params: "reverse case_sensitive attribute", do: filterSort},
		{names: "min", params: "case_sensitive attribute", do: extreme(-1)},
		{names: "max", params: "case_sensitive attribute", do: extreme(1)},
		{names: "sum", params: "attribute start", do: filterSum},
		{names: "batch", params: "linecount! fill_with", do: filterBatch},
		{names: "slice", params: "slices! fill_with", do: filterSlice},
		{names: "flatten", params: "levels skip_nulls", do: filterFlatten},
		{names: "shuffle", params: "seed", do: filterShuffle},
		{names: "zip", params: "*", do: filterZip},
		{names: "zip_longest", params: "* **", do: filterZipLongest},
		{names: "product", params: "* **", do: filterProduct},
		{names: "permutations", params: "length", do: filterPermutations},
		{names: "combinations", params: "length!", do: filterCombinations},
		{names: "version_sort", params: "reverse", do: filterVersionSort},
	}
}

func freshList(in any) ([]any, error) {
	list, err := items(in)
	if err != nil {
		return nil, err
	}
	return append([]any{}, list...), nil
}

func filterFirst(_ *Call, in any, _ *bound) (any, error) {
	list, err := items(in)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return &value.Undefined{Name: "first", Hint: "the sequence is empty"}, nil
	}
	return list[0], nil
}

func filterLast(_ *Call, in any, _ *bound) (any, error) {
	list, err := items(in)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return &value.Undefined{Name: "last", Hint: "the sequence is empty"}, nil
	}
	return list[len(list)-1], nil
}

func filterJoin(c *Call, in any, p *bound) (any, error) {
	list, err := items(in)
	if err != nil {
		return nil, err
	}
	if path := p.str("attribute", ""); path != "" {
		if list, err = attributes(c, list, path); err != nil {
			return nil, err
		}
	}
	return joinText(list, p.str("d", ""))
}

func joinText(list []any, sep string) (string, error) {
	var b strings.Builder
	for i, v := range list {
		s, err := plainText(v)
		if err != nil {
			return "", err
		}
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(s)
		if b.Len() > maxText {
			return "", errTextTooBig
		}
	}
	return b.String(), nil
}

func attributes(c *Call, list []any, path string) ([]any, error) {
	out := make([]any, len(list))
	for i, v := range list {
		var err error
		if out[i], err = c.Attr(v, path); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// foldCase makes texts lower case, as comparisons do that ignore it.
func foldCase(v any) any {
	if s, ok := v.(string); ok {
		return strings.ToLower(s)
	}
	return v
}

// keyed is items with what they are compared by.
type keyed struct{ item, key any }

// withKeys evaluates the attributes ("a" or "a,b.c") that items are compared by.
func withKeys(c *Call, list []any, attribute string, caseSensitive bool) ([]keyed, error) {
	paths := strings.Split(attribute, ",")
	out := make([]keyed, len(list))
	for i, item := range list {
		item, err := defined(item)
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

func attributeKey(c *Call, item any, paths []string) (any, error) {
	parts := make([]any, len(paths))
	for i, path := range paths {
		v, err := c.Attr(item, strings.TrimSpace(path))
		if err != nil {
			return nil, err
		}
		if parts[i], err = defined(v); err != nil {
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

// sortKeyed sorts stably; reverse keeps the order of equals too.
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

func filterSort(c *Call, in any, p *bound) (any, error) {
	list, err := items(in)
	if err != nil {
		return nil, err
	}
	pairs, err := withKeys(c, list, value.Str(p.value("attribute", "")), p.flag("case_sensitive", false))
	if err != nil {
		return nil, err
	}
	if err := sortKeyed(pairs, p.flag("reverse", false)); err != nil {
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

// extreme makes min (sign -1) and max (sign 1).
func extreme(sign int) func(*Call, any, *bound) (any, error) {
	return func(c *Call, in any, p *bound) (any, error) {
		list, err := items(in)
		if err != nil {
			return nil, err
		}
		pairs, err := withKeys(c, list, value.Str(p.value("attribute", "")), p.flag("case_sensitive", false))
		if err != nil {
			return nil, err
		}
		if len(pairs) == 0 {
			return &value.Undefined{Name: p.sig.name, Hint: "the sequence is empty"}, nil
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

func filterSum(c *Call, in any, p *bound) (any, error) {
	list, err := items(in)
	if err != nil {
		return nil, err
	}
	if path := p.value("attribute", nil); path != nil {
		if list, err = attributes(c, list, value.Str(path)); err != nil {
			return nil, err
		}
	}
	total := p.value("start", 0)
	if start, ok := total.([]any); ok {
		total = slices.Clone(start)
	}
	for _, v := range list {
		if v, err = defined(v); err != nil {
			return nil, err
		}
		if total, err = plus(total, v); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// plus adds numbers, and appends lists to a list that belongs to the caller.
func plus(a, b any) (any, error) {
	if x, ok := a.([]any); ok {
		y, ok := b.([]any)
		switch {
		case !ok:
		case len(x)+len(y) > maxItems:
			return nil, errListTooBig
		default:
			return append(x, y...), nil
		}
	}
	x, xInt := intOrBool(a)
	y, yInt := intOrBool(b)
	if xInt && yInt {
		return x + y, nil
	}
	f, okF := floatOf(a)
	g, okG := floatOf(b)
	if okF && okG {
		return f + g, nil
	}
	return nil, fmt.Errorf("unsupported operand type(s) for +: '%s' and '%s'", value.TypeName(a), value.TypeName(b))
}

func intOrBool(v any) (int, bool) {
	switch v.(type) {
	case int, bool:
		return wholeNumber(v)
	}
	return 0, false
}

func filterBatch(_ *Call, in any, p *bound) (any, error) {
	list, err := items(in)
	if err != nil {
		return nil, err
	}
	n, fill := p.int("linecount", 1), p.value("fill_with", nil)
	switch {
	case p.err != nil:
		return nil, p.err
	case n < 1:
		return nil, fmt.Errorf("argument linecount must be above 0, not %d", n)
	case fill != nil && n > maxItems:
		return nil, errListTooBig
	}
	out := []any{}
	for len(list) > n {
		out = append(out, slices.Clone(list[:n]))
		list = list[n:]
	}
	if len(list) == 0 {
		return out, nil
	}
	row := slices.Clone(list)
	for fill != nil && len(row) < n {
		row = append(row, fill)
	}
	return append(out, row), nil
}

func filterSlice(_ *Call, in any, p *bound) (any, error) {
	list, err := items(in)
	if err != nil {
		return nil, err
	}
	n, fill := p.int("slices", 1), p.value("fill_with", nil)
	switch {
	case p.err != nil:
		return nil, p.err
	case n < 1:
		return nil, fmt.Errorf("argument slices must be above 0, not %d", n)
	case n > maxItems:
		return nil, errListTooBig
	}
	out := make([]any, 0, n)
	each, extra := len(list)/n, len(list)%n
	for i := range n {
		size := each
		if i < extra {
			size++
		}
		row := slices.Clone(list[:size])
		list = list[size:]
		if fill != nil && i >= extra {
			row = append(row, fill)
		}
		out = append(out, append([]any{}, row...))
	}
	return out, nil
}

func filterFlatten(_ *Call, in any, p *bound) (any, error) {
	list, err := listOnly(in)
	if err != nil {
		return nil, err
	}
	return flatten(list, p.int("levels", maxFlatten), p.flag("skip_nulls", true), 0)
}

// maxFlatten bounds how deep lists are flattened: values do not nest deeper.
const maxFlatten = 100

func flatten(list []any, levels int, skipNulls bool, depth int) ([]any, error) {
	if depth > maxFlatten {
		return nil, value.ErrTooDeep
	}
	out := []any{}
	for _, v := range list {
		v, err := value.Force(v)
		if err != nil {
			return nil, err
		}
		inner, isList := v.([]any)
		switch {
		case skipNulls && (v == nil || v == "None" || v == "null"):
		case isList && levels > 0:
			flat, err := flatten(inner, levels-1, skipNulls, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, flat...)
		default:
			out = append(out, v)
		}
	}
	return out, nil
}

// columns are the input and the further lists of zip and product.
func columns(in any, p *bound) ([][]any, int, error) {
	out, longest := [][]any{}, 0
	for _, v := range append([]any{in}, p.rest...) {
		list, err := items(v)
		if err != nil {
			return nil, 0, err
		}
		longest = max(longest, len(list))
		out = append(out, list)
	}
	return out, longest, nil
}

func filterZip(_ *Call, in any, p *bound) (any, error) {
	cols, shortest, err := columns(in, p)
	if err != nil {
		return nil, err
	}
	for _, col := range cols {
		shortest = min(shortest, len(col))
	}
	return rows(cols, shortest, nil)
}

func filterZipLongest(_ *Call, in any, p *bound) (any, error) {
	fill, err := onlyNamed(p, "fillvalue", nil)
	if err != nil {
		return nil, err
	}
	cols, longest, err := columns(in, p)
	if err != nil {
		return nil, err
	}
	return rows(cols, longest, fill)
}

func rows(cols [][]any, n int, fill any) (any, error) {
	if n*len(cols) > maxItems {
		return nil, errListTooBig
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

// onlyNamed is the one named argument that a filter with * takes.
func onlyNamed(p *bound, name string, def any) (any, error) {
	for k := range p.named.All() {
		if k != name {
			return nil, fmt.Errorf("%s has no argument %q (it takes %s)", p.sig.name, value.Str(k), name)
		}
	}
	v, ok := p.named.Get(name)
	if !ok {
		return def, nil
	}
	return defined(v)
}

func filterProduct(_ *Call, in any, p *bound) (any, error) {
	v, err := onlyNamed(p, "repeat", 1)
	if err != nil {
		return nil, err
	}
	cols, _, err := columns(in, p)
	if err != nil {
		return nil, err
	}
	repeat, ok := wholeNumber(v)
	if !ok || repeat < 0 || repeat > 64 {
		return nil, fmt.Errorf("argument repeat must be a small whole number, not %s", value.Repr(v))
	}
	var all [][]any
	for range repeat {
		all = append(all, cols...)
	}
	return cartesian(all)
}

// cartesian is every choice of one item of each list, the last list fastest.
func cartesian(lists [][]any) (any, error) {
	total := 1
	for _, list := range lists {
		if len(list) > 0 && total > maxItems/len(list) {
			return nil, errListTooBig
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

func filterPermutations(_ *Call, in any, p *bound) (any, error) {
	list, err := items(in)
	if err != nil {
		return nil, err
	}
	n := p.int("length", len(list))
	if err := errors.Join(p.err, countable(len(list), n, false)); err != nil {
		return nil, err
	}
	return choose(list, n, func(taken []int, i int) bool { return !slices.Contains(taken, i) }), nil
}

func filterCombinations(_ *Call, in any, p *bound) (any, error) {
	list, err := items(in)
	if err != nil {
		return nil, err
	}
	n := p.int("length", 0)
	if err := errors.Join(p.err, countable(len(list), n, true)); err != nil {
		return nil, err
	}
	return choose(list, n, func(taken []int, i int) bool {
		return len(taken) == 0 || i > taken[len(taken)-1]
	}), nil
}

// countable refuses to take n of so many items in too many ways. The order
// of the n matters unless they are a set.
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
	if ways*float64(n) > 4*maxItems || float64(n)*float64(of) > 4*maxItems {
		return errListTooBig
	}
	return nil
}

// choose lists the ways to take n items, where may says which index can
// follow those that are taken.
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

func filterVersionSort(_ *Call, in any, p *bound) (any, error) {
	list, err := freshList(in)
	if err != nil {
		return nil, err
	}
	for i, v := range list {
		if list[i], err = defined(v); err != nil {
			return nil, err
		}
	}
	reverse := p.flag("reverse", false)
	slices.SortStableFunc(list, func(a, b any) int {
		n := looseCompare(value.Str(a), value.Str(b))
		if reverse {
			return -n
		}
		return n
	})
	return list, nil
}

// truncateText keeps error messages short.
func truncateText(s string) string {
	if utf8.RuneCountInString(s) <= 60 {
		return s
	}
	return string([]rune(s)[:60]) + "…"
}

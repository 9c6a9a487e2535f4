package expr

import (
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
		{names: "version_sort", of: "community.general", params: "reverse", do: filterVersionSort},
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

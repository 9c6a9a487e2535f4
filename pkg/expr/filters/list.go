package filters

import (
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

func listFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "list", Do: func(_ *expr.Call, in any, _ *expr.Bound) (any, error) { return freshList(in) }},
		{Names: "first", Do: filterFirst},
		{Names: "last", Do: filterLast},
		{Names: "join", Params: "d attribute", Do: filterJoin},
		{Names: "sort", Params: "reverse case_sensitive attribute", Do: filterSort},
		{Names: "min", Params: "case_sensitive attribute", Do: extreme(-1)},
		{Names: "max", Params: "case_sensitive attribute", Do: extreme(1)},
		{Names: "sum", Params: "attribute start", Do: filterSum},
		{Names: "batch", Params: "linecount! fill_with", Do: filterBatch},
		{Names: "slice", Params: "slices! fill_with", Do: filterSlice},
		{Names: "flatten", Params: "levels skip_nulls", Do: filterFlatten},
		{Names: "shuffle", Params: "seed", Do: filterShuffle},
		{Names: "zip", Params: "*", Do: filterZip},
		{Names: "zip_longest", Params: "* **", Do: filterZipLongest},
		{Names: "product", Params: "* **", Do: filterProduct},
		{Names: "permutations", Params: "length", Do: filterPermutations},
		{Names: "combinations", Params: "length!", Do: filterCombinations},
		{Names: "version_sort", Of: "community.general", Params: "reverse", Do: filterVersionSort},
	}
}

func freshList(in any) ([]any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	return append([]any{}, list...), nil
}

func filterFirst(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return &value.Undefined{Name: "first", Hint: "the sequence is empty"}, nil
	}
	return list[0], nil
}

func filterLast(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return &value.Undefined{Name: "last", Hint: "the sequence is empty"}, nil
	}
	return list[len(list)-1], nil
}

func filterJoin(c *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	if path := p.Str("attribute", ""); path != "" {
		if list, err = attributes(c, list, path); err != nil {
			return nil, err
		}
	}
	return joinText(list, p.Str("d", ""))
}

func joinText(list []any, sep string) (string, error) {
	var b strings.Builder
	for i, v := range list {
		s, err := expr.Text(v)
		if err != nil {
			return "", err
		}
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(s)
		if b.Len() > expr.MaxText {
			return "", expr.ErrTextTooBig
		}
	}
	return b.String(), nil
}

func attributes(c *expr.Call, list []any, path string) ([]any, error) {
	out := make([]any, len(list))
	for i, v := range list {
		var err error
		if out[i], err = c.Attr(v, path); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func filterSum(c *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	if path := p.Value("attribute", nil); path != nil {
		if list, err = attributes(c, list, value.Str(path)); err != nil {
			return nil, err
		}
	}
	total := p.Value("start", 0)
	if start, ok := total.([]any); ok {
		total = slices.Clone(start)
	}
	for _, v := range list {
		if v, err = expr.Defined(v); err != nil {
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
		case len(x)+len(y) > expr.MaxItems:
			return nil, expr.ErrListTooBig
		default:
			return append(x, y...), nil
		}
	}
	x, xInt := intOrBool(a)
	y, yInt := intOrBool(b)
	if xInt && yInt {
		return x + y, nil
	}
	f, okF := expr.FloatOf(a)
	g, okG := expr.FloatOf(b)
	if okF && okG {
		return f + g, nil
	}
	return nil, fmt.Errorf("unsupported operand type(s) for +: '%s' and '%s'", value.TypeName(a), value.TypeName(b))
}

func intOrBool(v any) (int, bool) {
	switch v.(type) {
	case int, bool:
		return expr.WholeNumber(v)
	}
	return 0, false
}

func filterBatch(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	n, fill := p.Int("linecount", 1), p.Value("fill_with", nil)
	switch {
	case p.Err != nil:
		return nil, p.Err
	case n < 1:
		return nil, fmt.Errorf("argument linecount must be above 0, not %d", n)
	case fill != nil && n > expr.MaxItems:
		return nil, expr.ErrListTooBig
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

func filterSlice(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	n, fill := p.Int("slices", 1), p.Value("fill_with", nil)
	switch {
	case p.Err != nil:
		return nil, p.Err
	case n < 1:
		return nil, fmt.Errorf("argument slices must be above 0, not %d", n)
	case n > expr.MaxItems:
		return nil, expr.ErrListTooBig
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

func filterFlatten(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.ListItems(in)
	if err != nil {
		return nil, err
	}
	return Flatten(list, p.Int("levels", expr.MaxDepth), p.Flag("skip_nulls", true), 0)
}

// Flatten flattens nested lists by the given number of levels; depth is the current level, 0 at first.
func Flatten(list []any, levels int, skipNulls bool, depth int) ([]any, error) {
	if depth > expr.MaxDepth {
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
			flat, err := Flatten(inner, levels-1, skipNulls, depth+1)
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

func filterVersionSort(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := freshList(in)
	if err != nil {
		return nil, err
	}
	for i, v := range list {
		if list[i], err = expr.Defined(v); err != nil {
			return nil, err
		}
	}
	reverse := p.Flag("reverse", false)
	slices.SortStableFunc(list, func(a, b any) int {
		n := CompareVersions(value.Str(a), value.Str(b))
		if reverse {
			return -n
		}
		return n
	})
	return list, nil
}

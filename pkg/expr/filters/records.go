package filters

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// recordFilters read and join lists of dictionaries: those of community.general
// and ansible.utils.
func recordFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "from_csv", Of: "community.general", Params: "dialect fieldnames delimiter skipinitialspace strict", Do: filterFromCSV},
		{Names: "lists_mergeby", Of: "community.general", Params: "* **", Do: filterListsMergeBy},
		{Names: "index_of", Of: "ansible.utils", Params: "test! value key fail_on_missing wantlist", Do: filterIndexOf},
	}
}

// filterFromCSV makes a dictionary of each row. The rules are those of Python's
// csv module, but that a quote amid a text stays one.
func filterFromCSV(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	text, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.FieldsPerRecord, r.LazyQuotes = -1, !p.Flag("strict", false)
	r.TrimLeadingSpace = p.Flag("skipinitialspace", false)
	switch dialect := p.Str("dialect", "excel"); dialect {
	case "excel", "unix":
	case "excel-tab":
		r.Comma = '\t'
	default:
		return nil, fmt.Errorf("Dialect '%s' is not supported: name excel, excel-tab or unix", dialect) //nolint:staticcheck // the text users know
	}
	if d := []rune(p.Str("delimiter", "")); len(d) == 1 && !strings.ContainsRune("\"\r\n\uFFFD", d[0]) {
		r.Comma = d[0]
	} else if len(d) > 0 {
		return nil, fmt.Errorf("argument delimiter must be one character, not %q", string(d))
	}
	names := p.Value("fieldnames", nil)
	if p.Err != nil {
		return nil, p.Err
	}
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("Unable to process file: %w", err) //nolint:staticcheck // the text users know
	}
	var header []any
	if names != nil {
		if header, err = expr.Items(names); err != nil {
			return nil, fmt.Errorf("argument fieldnames: %w", err)
		}
	} else if len(rows) > 0 {
		header, rows = value.List(rows[0]), rows[1:]
	}
	out := make([]any, len(rows))
	for i, row := range rows {
		if out[i], err = csvRow(header, row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// csvRow has None for cells that are missing, and under None those that no name is for.
func csvRow(header []any, row []string) (*value.Dict, error) {
	d := value.NewDict()
	for i, name := range header {
		key, ok := hashable(name)
		if !ok {
			return nil, fmt.Errorf("%s is no name of a field", value.Repr(name))
		}
		if i < len(row) {
			d.Set(key, row[i])
		} else {
			d.Set(key, nil)
		}
	}
	if len(row) > len(header) {
		d.Set(nil, value.List(row[len(header):]))
	}
	return d, nil
}

// filterListsMergeBy merges dictionaries of several lists that have the same
// value under a key; later lists win.
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

// listsOf is a list of lists, or the list itself as the only one.
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

// mergeBy merges two lists, and sorts what comes out by the index.
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
		key, ok := hashable(at)
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

// filterIndexOf tells where in a list the entries are that pass a test.
func filterIndexOf(c *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	key, strict, whole := p.Value("key", nil), p.Flag("fail_on_missing", false), p.Flag("wantlist", false)
	passes, err := entryTest(c, p)
	if err != nil {
		return nil, err
	}
	found := []any{}
	for i, v := range list {
		if key != nil {
			d, err := expr.AsDict(v)
			if err != nil {
				return nil, fmt.Errorf("with a key all entries must be dictionaries: %w", err)
			}
			at, there := d.Get(key)
			if !there && strict {
				return nil, fmt.Errorf("%s was not found in entry %d: %s", value.Repr(key), i, value.Repr(d))
			}
			if !there {
				continue
			}
			v = at
		}
		ok, err := passes(v)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
		if ok {
			found = append(found, i)
		}
	}
	if len(found) == 1 && !whole {
		return found[0], nil
	}
	return found, nil
}

// entryTest is the test that the arguments name: "in", "!=", "not match" and so on.
func entryTest(c *expr.Call, p *expr.Bound) (func(any) (bool, error), error) {
	name, right := strings.TrimSpace(p.Str("test", "")), p.Value("value", nil)
	if p.Err != nil {
		return nil, p.Err
	}
	plain, inverted := strings.CutPrefix(name, "!")
	if !inverted {
		plain, inverted = strings.CutPrefix(name, "not ")
	}
	if plain == "=" {
		plain = "=="
	}
	if _, isList := right.([]any); plain == "in" && !isList {
		right = []any{right}
	}
	a := expr.Args{}
	if right != nil {
		a.Positional = []any{right}
	}
	return func(entry any) (bool, error) {
		ok, err := c.Test(plain, entry, a)
		return ok != inverted, err
	}, nil
}

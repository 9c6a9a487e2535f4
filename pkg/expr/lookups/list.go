package lookups

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/value"
)

func listLookups() []expr.Lookup {
	return []expr.Lookup{
		{Names: "items", Do: lookupItems},
		{Names: "list", Do: func(_ *expr.Call, terms []any, _ *expr.Bound) ([]any, error) { return terms, nil }},
		{Names: "flattened", Do: lookupFlattened},
		{Names: "dict", Do: lookupDict},
		{Names: "nested cartesian", Do: lookupNested},
		{Names: "together", Do: lookupTogether},
		{Names: "indexed_items", Do: lookupIndexedItems},
		{Names: "sequence", Params: "start end count stride format", Do: lookupSequence},
		{Names: "subelements", Do: lookupSubelements},
		{Names: "random_choice", Do: lookupRandomChoice},
	}
}

func lookupItems(_ *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	return filters.Flatten(terms, 1, false, 0)
}

func lookupFlattened(_ *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	return filters.Flatten(terms, expr.MaxDepth, true, 0)
}

func lookupDict(_ *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	flat, err := filters.Flatten(terms, 1, false, 0)
	if err != nil {
		return nil, err
	}
	var out []any
	for _, term := range flat {
		d, err := expr.AsDict(term)
		if err != nil {
			return nil, err
		}
		out = append(out, filters.DictItems(d, "key", "value")...)
	}
	return out, nil
}

// termLists returns the terms as lists. A single value becomes a list of one item.
func termLists(terms []any) [][]any {
	out := make([][]any, len(terms))
	for i, term := range terms {
		list, ok := term.([]any)
		if !ok {
			list = []any{term}
		}
		out[i] = list
	}
	return out
}

// flatRows returns the rows of a table with the lists in their cells flattened.
func flatRows(table any, err error, levels int) ([]any, error) {
	if err != nil {
		return nil, err
	}
	out := table.([]any)
	for i, row := range out {
		if out[i], err = filters.Flatten(row.([]any), levels, false, 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func lookupNested(_ *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	if len(terms) == 0 {
		return nil, fmt.Errorf("needs at least one list")
	}
	table, err := filters.Product(termLists(terms))
	return flatRows(table, err, 2)
}

func lookupTogether(_ *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	if len(terms) == 0 {
		return nil, fmt.Errorf("needs at least one list")
	}
	lists, longest := termLists(terms), 0
	for _, list := range lists {
		longest = max(longest, len(list))
	}
	table, err := filters.Zip(lists, longest, nil)
	return flatRows(table, err, 1)
}

func lookupIndexedItems(_ *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	flat, err := filters.Flatten(terms, 1, false, 0)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(flat))
	for i, v := range flat {
		out[i] = []any{i, v}
	}
	return out, nil
}

// sequence has the parameters of the sequence lookup.
type sequence struct {
	start, end, count, stride int
	hasEnd, hasCount          bool
	format                    string
}

func lookupSequence(_ *expr.Call, terms []any, p *expr.Bound) ([]any, error) {
	if len(terms) == 0 {
		terms = []any{""}
	}
	var out []any
	err := eachTerm(terms, func(term string) error {
		s, err := newSequence(term, p)
		if err != nil {
			return err
		}
		list, err := s.list()
		out = append(out, list...)
		return err
	})
	return out, err
}

func newSequence(term string, p *expr.Bound) (*sequence, error) {
	s := &sequence{start: 1, stride: 1, format: "%d"}
	for _, name := range p.Names() {
		if !p.Has(name) {
			continue
		}
		if err := s.set(name, value.Str(p.Value(name, ""))); err != nil {
			return nil, err
		}
	}
	if err := s.parse(term); err != nil {
		return nil, err
	}
	switch {
	case s.hasCount && s.hasEnd:
		return nil, fmt.Errorf("takes count or end, not both")
	case !s.hasCount && !s.hasEnd:
		return nil, fmt.Errorf("needs count or end")
	case s.hasCount && s.count <= 0:
		s.stride, s.end, s.start = 0, 0, 0
	case s.hasCount:
		s.end = s.start + (s.count-1)*s.stride
	}
	return s, nil
}

// parse parses "start=1 end=5 stride=2 format=x%02d" and the short form "1-5/2:x%02d".
func (s *sequence) parse(term string) error {
	if strings.Contains(term, "=") {
		for _, word := range strings.Fields(term) {
			name, text, ok := strings.Cut(word, "=")
			if !ok {
				return fmt.Errorf("%q is not name=value", word)
			}
			if err := s.set(name, text); err != nil {
				return err
			}
		}
		return nil
	}
	if strings.TrimSpace(term) == "" {
		return nil
	}
	numbers, format, ok := strings.Cut(term, ":")
	if ok {
		s.format = format
	}
	numbers, stride, ok := strings.Cut(numbers, "/")
	if ok {
		if err := s.set("stride", stride); err != nil {
			return err
		}
	}
	start, end, ok := strings.Cut(numbers, "-")
	if !ok {
		return s.set("end", start)
	}
	if err := s.set("start", start); err != nil {
		return err
	}
	return s.set("end", end)
}

func (s *sequence) set(name, text string) error {
	if name == "format" {
		s.format = text
		return nil
	}
	if !slices.Contains([]string{"start", "end", "count", "stride"}, name) {
		return fmt.Errorf("no argument %q (it takes start, end, count, stride, format)", name)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 0, 32)
	if err != nil {
		return fmt.Errorf("%s must be a whole number, not %q", name, expr.Shorten(text))
	}
	switch name {
	case "start":
		s.start = int(n)
	case "end":
		s.end, s.hasEnd = int(n), true
	case "count":
		s.count, s.hasCount = int(n), true
	case "stride":
		s.stride = int(n)
	}
	return nil
}

func (s *sequence) list() ([]any, error) {
	if s.stride == 0 {
		return nil, nil
	}
	switch {
	case s.hasEnd && s.stride > 0 && s.end < s.start:
		return nil, fmt.Errorf("cannot count from %d to %d by %d: to count backwards make stride negative", s.start, s.end,
			s.stride)
	case s.hasEnd && s.stride < 0 && s.end > s.start:
		return nil, fmt.Errorf("cannot count from %d to %d by %d: to count forward don't make stride negative", s.start,
			s.end, s.stride)
	}
	if n := (s.end-s.start)/s.stride + 1; n > expr.MaxItems {
		return nil, expr.ErrListTooBig
	}
	var out []any
	for i := s.start; s.stride > 0 && i <= s.end || s.stride < 0 && i >= s.end; i += s.stride {
		text, err := expr.FormatPercent(s.format, []any{i})
		if err != nil {
			return nil, fmt.Errorf("format %q: %w", expr.Shorten(s.format), err)
		}
		out = append(out, text)
	}
	return out, nil
}

// lookupSubelements accepts a list, a key and optionally {skip_missing: true}.
func lookupSubelements(_ *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	if len(terms) < 2 || len(terms) > 3 {
		return nil, fmt.Errorf("needs a list, the name of a key and perhaps {skip_missing: true}")
	}
	list, err := expr.ListItems(terms[0])
	if err != nil {
		return nil, err
	}
	if d, ok := terms[0].(*value.Dict); ok {
		list = list[:0:0]
		for _, v := range d.All() {
			list = append(list, v)
		}
	}
	path, err := expr.Text(terms[1])
	if err != nil {
		return nil, err
	}
	skip := false
	if len(terms) == 3 {
		flags, err := expr.AsDict(terms[2])
		if err != nil {
			return nil, err
		}
		v, _ := flags.Get("skip_missing")
		skip = value.Truth(v)
	}
	keys := value.Of(strings.Split(path, ".")).([]any)
	out, err := filters.Subelements(list, keys, skip)
	if err != nil {
		return nil, err
	}
	for _, pair := range out {
		pair := pair.([]any)
		if pair[0], err = dropPath(pair[0], keys); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// dropPath returns a copy of nested dicts without the member at the path keys. Unlike the filter, the lookup
// removes the list from the item with which it is paired.
func dropPath(item any, keys []any) (any, error) {
	d, err := expr.AsDict(item)
	if err != nil {
		return nil, err
	}
	d = d.Copy()
	if len(keys) == 1 {
		d.Delete(keys[0])
		return d, nil
	}
	inner, _ := d.Get(keys[0])
	if inner, err = dropPath(inner, keys[1:]); err != nil {
		return nil, err
	}
	d.Set(keys[0], inner)
	return d, nil
}

func lookupRandomChoice(c *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	if len(terms) == 0 {
		return nil, nil
	}
	return []any{terms[filters.NewGenerator(c, terms, nil).Below(len(terms))]}, nil
}

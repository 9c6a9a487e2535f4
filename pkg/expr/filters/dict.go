package filters

import (
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

func dictFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "combine", Params: "* **", Do: filterCombine},
		{Names: "dict2items", Params: "key_name value_name", Do: filterDict2Items},
		{Names: "items2dict", Params: "key_name value_name", Do: filterItems2Dict},
		{Names: "items", UndefinedToo: true, Do: filterItems},
		{Names: "dictsort", Params: "case_sensitive by reverse", Do: filterDictSort},
		{Names: "dict", Of: "community.general", Do: filterPairsToDict},
		{Names: "rekey_on_member", Params: "key! duplicates", Do: filterRekey},
		{Names: "subelements", Params: "subelements! skip_missing", Do: filterSubelements},
	}
}

func filterDict2Items(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	d, ok := in.(*value.Dict)
	if !ok {
		return nil, fmt.Errorf("dict2items requires a dictionary, got %s", expr.DescribeType(in))
	}
	key, val := p.Str("key_name", "key"), p.Str("value_name", "value")
	return DictItems(d, key, val), nil
}

// DictItems returns a dict with the keys key and val for each item.
func DictItems(d *value.Dict, key, val string) []any {
	out := make([]any, 0, d.Len())
	for k, v := range d.All() {
		out = append(out, value.NewDict(key, k, val, v))
	}
	return out
}

func filterItems2Dict(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	list, ok := in.([]any)
	if !ok {
		return nil, fmt.Errorf("items2dict requires a list, got %s", expr.DescribeType(in))
	}
	key, val := p.Str("key_name", "key"), p.Str("value_name", "value")
	out := value.NewDict()
	for i, v := range list {
		item, err := expr.AsDict(v)
		if err != nil {
			return nil, fmt.Errorf("items2dict requires a list of dictionaries; item %d: %w", i, err)
		}
		k, hasKey := item.Get(key)
		w, hasValue := item.Get(val)
		if !hasKey || !hasValue {
			return nil, fmt.Errorf("items2dict requires each dictionary in the list to contain the keys '%s' and '%s'; item "+
				"%d has %s", key, val, i, keyNames(item))
		}
		if err := SetKey(out, k, w); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func keyNames(d *value.Dict) string {
	names := make([]string, 0, d.Len())
	for k := range d.All() {
		names = append(names, value.Str(k))
	}
	return expr.Shorten(strings.Join(names, ", "))
}

// SetKey sets a key, or returns an error if the value cannot be a key.
func SetKey(d *value.Dict, k, v any) error {
	k, err := expr.Defined(k)
	if err != nil {
		return err
	}
	switch k.(type) {
	case nil, bool, int, float64, string:
		d.Set(k, v)
		return nil
	}
	return fmt.Errorf("%s cannot be a key", expr.DescribeType(k))
}

func filterItems(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	if value.IsUndefined(in) {
		return []any{}, nil
	}
	d, err := expr.AsDict(in)
	if err != nil {
		return nil, err
	}
	return dictPairs(d), nil
}

func dictPairs(d *value.Dict) []any {
	out := make([]any, 0, d.Len())
	for k, v := range d.All() {
		out = append(out, []any{k, v})
	}
	return out
}

func filterDictSort(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	d, err := expr.AsDict(in)
	if err != nil {
		return nil, err
	}
	by := p.Str("by", "key")
	if by != "key" && by != "value" {
		return nil, fmt.Errorf("argument by must be key or value, not %q", by)
	}
	caseSensitive := p.Flag("case_sensitive", false)
	var pairs []keyed
	for _, pair := range dictPairs(d) {
		key := pair.([]any)[0]
		if by == "value" {
			key = pair.([]any)[1]
		}
		if key, err = expr.Defined(key); err != nil {
			return nil, err
		}
		pairs = append(pairs, keyed{pair, fold(key, caseSensitive)})
	}
	if err := sortKeyed(pairs, p.Flag("reverse", false)); err != nil {
		return nil, err
	}
	return unkey(pairs), nil
}

func filterPairsToDict(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	list, err := expr.ListItems(in)
	if err != nil {
		return nil, err
	}
	out := value.NewDict()
	for i, v := range list {
		pair, err := expr.ListItems(v)
		if err != nil || len(pair) != 2 {
			return nil, fmt.Errorf("item %d must be a list of a key and a value", i)
		}
		if err := SetKey(out, pair[0], pair[1]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func filterRekey(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	list, ok := membersOrValues(in)
	if !ok {
		return nil, fmt.Errorf("Type is not a valid list, set, or dict: got %s", expr.DescribeType(in))
	}
	key, duplicates := p.Value("key", nil), p.Str("duplicates", "error")
	if duplicates != "error" && duplicates != "overwrite" {
		return nil, fmt.Errorf("duplicates parameter to rekey_on_member has unknown value: %q (there are error and "+
			"overwrite)", duplicates)
	}
	out := value.NewDict()
	for _, v := range list {
		item, err := expr.AsDict(v)
		if err != nil {
			return nil, fmt.Errorf("List item is not a valid dict: %w", err)
		}
		k, ok := item.Get(key)
		if !ok {
			return nil, fmt.Errorf("key %s was not found in an item with the keys %s", value.Str(key), keyNames(item))
		}
		if duplicates == "error" && out.Has(k) {
			return nil, fmt.Errorf("Key %s is not unique, cannot correctly turn into dict", value.Repr(k))
		}
		if err := SetKey(out, k, item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// membersOrValues returns the members of a list, or the values of a dict.
func membersOrValues(in any) ([]any, bool) {
	switch in := in.(type) {
	case []any:
		return in, true
	case *value.Dict:
		out := make([]any, 0, in.Len())
		for _, v := range in.All() {
			out = append(out, v)
		}
		return out, true
	}
	return nil, false
}

// filterSubelements pairs every item with each item of one of its lists.
func filterSubelements(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	list, ok := membersOrValues(in)
	if !ok {
		return nil, fmt.Errorf("obj must be a list of dicts or a nested dict, not %s", expr.DescribeType(in))
	}
	path := p.Value("subelements", nil)
	if s, ok := path.(string); ok {
		path = value.Of(strings.Split(s, "."))
	}
	keys, ok := path.([]any)
	if !ok {
		return nil, fmt.Errorf("subelements must be a list or a string, not %s", expr.DescribeType(path))
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("subelements is empty: it must name a key of the items")
	}
	return Subelements(list, keys, p.Flag("skip_missing", false))
}

// Subelements pairs each item of list with the items of the list at the path keys in it.
func Subelements(list, keys []any, skipMissing bool) ([]any, error) {
	out := []any{}
	for _, item := range list {
		v, err := expr.Defined(item)
		for i, key := range keys {
			if err != nil || value.IsUndefined(v) {
				break
			}
			if v, err = value.Force(v); err != nil {
				return nil, err
			}
			if _, isDict := v.(*value.Dict); !isDict && i > 0 {
				return nil, fmt.Errorf("the key %s should point to a dictionary, not to %s", dotted(keys[:i]), expr.DescribeType(v))
			}
			v, err = expr.Member(v, key)
		}
		if err != nil {
			return nil, err
		}
		v, err = value.Force(v)
		if err != nil {
			return nil, err
		}
		if value.IsUndefined(v) {
			if skipMissing {
				continue
			}
			return nil, fmt.Errorf("could not find %q key in an item", dotted(keys))
		}
		subs, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("the key %s should point to a list, not to %s", dotted(keys), expr.DescribeType(v))
		}
		if len(out)+len(subs) > expr.MaxItems {
			return nil, expr.ErrListTooBig
		}
		for _, sub := range subs {
			out = append(out, []any{item, sub})
		}
	}
	return out, nil
}

func dotted(keys []any) string {
	words := make([]string, len(keys))
	for i, k := range keys {
		words[i] = value.Str(k)
	}
	return strings.Join(words, ".")
}

// listMerges are the ways in which combine can merge two lists under one key: a is the older list, b the newer one.
func listMerges() map[string]func(a, b []any) []any {
	return map[string]func(a, b []any) []any{
		"replace":    func(_, b []any) []any { return b },
		"keep":       func(a, _ []any) []any { return a },
		"append":     func(a, b []any) []any { return slices.Concat(a, b) },
		"prepend":    func(a, b []any) []any { return slices.Concat(b, a) },
		"append_rp":  func(a, b []any) []any { return slices.Concat(only(a, membersOf(b), false), b) },
		"prepend_rp": func(a, b []any) []any { return slices.Concat(b, only(a, membersOf(b), false)) },
	}
}

// merger has the options of combine.
type merger struct {
	recursive bool
	lists     func(a, b []any) []any // nil means replace
}

func filterCombine(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	m, err := newMerger(p)
	if err != nil {
		return nil, err
	}
	terms, err := Flatten(append([]any{in}, p.Rest...), 1, true, 0)
	if err != nil {
		return nil, err
	}
	// Merge from the last to the first, because append_rp and similar modes are not associative.
	out := value.NewDict()
	for i := len(terms) - 1; i >= 0; i-- {
		term, err := expr.Defined(terms[i])
		if err != nil {
			return nil, err
		}
		d, ok := term.(*value.Dict)
		if !ok {
			return nil, fmt.Errorf("failed to combine variables, expected dicts but got %s", expr.DescribeType(term))
		}
		if i == len(terms)-1 {
			out = d.Copy()
			continue
		}
		if out, err = m.merge(d, out, 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func newMerger(p *expr.Bound) (*merger, error) {
	m := &merger{}
	for k, v := range p.Named.All() {
		v, err := expr.Defined(v)
		if err != nil {
			return nil, err
		}
		switch k {
		case "recursive":
			m.recursive = value.Truth(v)
		case "list_merge":
			merge, ok := listMerges()[value.Str(v)]
			if !ok {
				return nil, fmt.Errorf("argument list_merge must be replace, keep, append, prepend, append_rp or prepend_rp, "+
					"not %s", value.Repr(v))
			}
			m.lists = merge
		default:
			return nil, fmt.Errorf("combine has no argument %q: 'recursive' and 'list_merge' are the only valid keyword "+
				"arguments", value.Str(k))
		}
	}
	return m, nil
}

// merge merges the newer dict over the older one. It changes neither.
func (m *merger) merge(older, newer *value.Dict, depth int) (*value.Dict, error) {
	if depth > expr.MaxDepth {
		return nil, value.ErrTooDeep
	}
	out := older.Copy()
	for k, v := range newer.All() {
		had, ok := out.Get(k)
		if ok && (m.recursive || m.lists != nil) {
			var err error
			if v, err = m.both(had, v, depth); err != nil {
				return nil, err
			}
		}
		out.Set(k, v)
	}
	return out, nil
}

func (m *merger) both(a, b any, depth int) (any, error) {
	a, err := value.Force(a)
	if err != nil {
		return nil, err
	}
	if b, err = value.Force(b); err != nil {
		return nil, err
	}
	switch x := a.(type) {
	case *value.Dict:
		if y, ok := b.(*value.Dict); ok && m.recursive {
			return m.merge(x, y, depth+1)
		}
	case []any:
		if y, ok := b.([]any); ok && m.lists != nil {
			return m.lists(x, y), nil
		}
	}
	return b, nil
}

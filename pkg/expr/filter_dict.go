package expr

import (
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/value"
)

func dictFilters() []filterSpec {
	return []filterSpec{
		{names: "combine", params: "* **", do: filterCombine},
		{names: "fact_diff", of: "ansible.utils", params: "after!", do: filterFactDiff},
		{names: "dict2items", params: "key_name value_name", do: filterDict2Items},
		{names: "items2dict", params: "key_name value_name", do: filterItems2Dict},
		{names: "items", undefinedToo: true, do: filterItems},
		{names: "dictsort", params: "case_sensitive by reverse", do: filterDictSort},
		{names: "dict", of: "community.general", do: filterPairsToDict},
		{names: "rekey_on_member", params: "key! duplicates", do: filterRekey},
		{names: "subelements", params: "subelements! skip_missing", do: filterSubelements},
	}
}

func filterDict2Items(_ *Call, in any, p *bound) (any, error) {
	d, ok := in.(*value.Dict)
	if !ok {
		return nil, fmt.Errorf("dict2items requires a dictionary, got %s", aType(in))
	}
	key, val := p.str("key_name", "key"), p.str("value_name", "value")
	return keyValueDicts(d, key, val), nil
}

func keyValueDicts(d *value.Dict, key, val string) []any {
	out := make([]any, 0, d.Len())
	for k, v := range d.All() {
		out = append(out, value.NewDict(key, k, val, v))
	}
	return out
}

func filterItems2Dict(_ *Call, in any, p *bound) (any, error) {
	list, ok := in.([]any)
	if !ok {
		return nil, fmt.Errorf("items2dict requires a list, got %s", aType(in))
	}
	key, val := p.str("key_name", "key"), p.str("value_name", "value")
	out := value.NewDict()
	for i, v := range list {
		item, err := asDict(v)
		if err != nil {
			return nil, fmt.Errorf("items2dict requires a list of dictionaries; item %d: %w", i, err)
		}
		k, hasKey := item.Get(key)
		w, hasValue := item.Get(val)
		if !hasKey || !hasValue {
			return nil, fmt.Errorf("items2dict requires each dictionary in the list to contain the keys '%s' and '%s'; item %d has %s", key, val, i, keyNames(item))
		}
		if err := setKey(out, k, w); err != nil {
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
	return truncateText(strings.Join(names, ", "))
}

// setKey sets a key that may be no key at all.
func setKey(d *value.Dict, k, v any) error {
	k, err := defined(k)
	if err != nil {
		return err
	}
	switch k.(type) {
	case nil, bool, int, float64, string:
		d.Set(k, v)
		return nil
	}
	return fmt.Errorf("%s cannot be a key", aType(k))
}

func filterItems(_ *Call, in any, _ *bound) (any, error) {
	if value.IsUndefined(in) {
		return []any{}, nil
	}
	d, err := asDict(in)
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

func filterDictSort(_ *Call, in any, p *bound) (any, error) {
	d, err := asDict(in)
	if err != nil {
		return nil, err
	}
	by := p.str("by", "key")
	if by != "key" && by != "value" {
		return nil, fmt.Errorf("argument by must be key or value, not %q", by)
	}
	caseSensitive := p.flag("case_sensitive", false)
	var pairs []keyed
	for _, pair := range dictPairs(d) {
		key := pair.([]any)[0]
		if by == "value" {
			key = pair.([]any)[1]
		}
		if key, err = defined(key); err != nil {
			return nil, err
		}
		pairs = append(pairs, keyed{pair, fold(key, caseSensitive)})
	}
	if err := sortKeyed(pairs, p.flag("reverse", false)); err != nil {
		return nil, err
	}
	return unkey(pairs), nil
}

func filterPairsToDict(_ *Call, in any, _ *bound) (any, error) {
	list, err := listOnly(in)
	if err != nil {
		return nil, err
	}
	out := value.NewDict()
	for i, v := range list {
		pair, err := listOnly(v)
		if err != nil || len(pair) != 2 {
			return nil, fmt.Errorf("item %d must be a list of a key and a value", i)
		}
		if err := setKey(out, pair[0], pair[1]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func filterRekey(_ *Call, in any, p *bound) (any, error) {
	list, ok := membersOrValues(in)
	if !ok {
		return nil, fmt.Errorf("Type is not a valid list, set, or dict: got %s", aType(in))
	}
	key, duplicates := p.value("key", nil), p.str("duplicates", "error")
	if duplicates != "error" && duplicates != "overwrite" {
		return nil, fmt.Errorf("duplicates parameter to rekey_on_member has unknown value: %q (there are error and overwrite)", duplicates)
	}
	out := value.NewDict()
	for _, v := range list {
		item, err := asDict(v)
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
		if err := setKey(out, k, item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// membersOrValues are the members of a list, or the values of a dict.
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
func filterSubelements(_ *Call, in any, p *bound) (any, error) {
	list, ok := membersOrValues(in)
	if !ok {
		return nil, fmt.Errorf("obj must be a list of dicts or a nested dict, not %s", aType(in))
	}
	path := p.value("subelements", nil)
	if s, ok := path.(string); ok {
		path = value.Of(strings.Split(s, "."))
	}
	keys, ok := path.([]any)
	if !ok {
		return nil, fmt.Errorf("subelements must be a list or a string, not %s", aType(path))
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("subelements is empty: it must name a key of the items")
	}
	return subelements(list, keys, p.flag("skip_missing", false))
}

// subelements pairs each item of list with those of the list at keys in it.
func subelements(list, keys []any, skipMissing bool) ([]any, error) {
	out := []any{}
	for _, item := range list {
		v, err := defined(item)
		for i, key := range keys {
			if err != nil || value.IsUndefined(v) {
				break
			}
			if v, err = value.Force(v); err != nil {
				return nil, err
			}
			if _, isDict := v.(*value.Dict); !isDict && i > 0 {
				return nil, fmt.Errorf("the key %s should point to a dictionary, not to %s", dotted(keys[:i]), aType(v))
			}
			v, err = member(v, key)
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
			return nil, fmt.Errorf("the key %s should point to a list, not to %s", dotted(keys), aType(v))
		}
		if len(out)+len(subs) > maxItems {
			return nil, errListTooBig
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

// listMerges are the ways in which combine treats two lists under one key:
// a is the older list, b the newer one.
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

// merger is how combine merges.
type merger struct {
	recursive bool
	lists     func(a, b []any) []any // nil replaces
}

func filterCombine(_ *Call, in any, p *bound) (any, error) {
	m, err := newMerger(p)
	if err != nil {
		return nil, err
	}
	terms, err := flatten(append([]any{in}, p.rest...), 1, true, 0)
	if err != nil {
		return nil, err
	}
	// From the last to the first, since append_rp and its like are not associative.
	out := value.NewDict()
	for i := len(terms) - 1; i >= 0; i-- {
		term, err := defined(terms[i])
		if err != nil {
			return nil, err
		}
		d, ok := term.(*value.Dict)
		if !ok {
			return nil, fmt.Errorf("failed to combine variables, expected dicts but got %s", aType(term))
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

func newMerger(p *bound) (*merger, error) {
	m := &merger{}
	for k, v := range p.named.All() {
		v, err := defined(v)
		if err != nil {
			return nil, err
		}
		switch k {
		case "recursive":
			m.recursive = value.Truth(v)
		case "list_merge":
			merge, ok := listMerges()[value.Str(v)]
			if !ok {
				return nil, fmt.Errorf("argument list_merge must be replace, keep, append, prepend, append_rp or prepend_rp, not %s", value.Repr(v))
			}
			m.lists = merge
		default:
			return nil, fmt.Errorf("combine has no argument %q: 'recursive' and 'list_merge' are the only valid keyword arguments", value.Str(k))
		}
	}
	return m, nil
}

// merge puts the newer dict over the older one; neither is changed.
func (m *merger) merge(older, newer *value.Dict, depth int) (*value.Dict, error) {
	if depth > maxFlatten {
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

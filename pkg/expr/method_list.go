package expr

import (
	"errors"
	"fmt"
	"sort"

	"kubekey/pkg/value"
)

func listMethods() []methodSpec {
	return []methodSpec{
		{name: "count", params: "value!", do: func(v any, p *bound) (any, error) {
			n := 0
			for _, e := range v.([]any) {
				if value.Equal(e, p.raw("value", nil)) {
					n++
				}
			}
			return n, nil
		}},
		{name: "index", params: "value! start stop", do: listIndex},
		{name: "copy", do: func(v any, _ *bound) (any, error) { return append([]any{}, v.([]any)...), nil }},
		{name: "append", params: "value!", mutate: func(v any, p *bound) (any, any, error) {
			return nil, grown(v, p.raw("value", nil)), nil
		}},
		{name: "extend", params: "values!", mutate: func(v any, p *bound) (any, any, error) {
			more, err := iterate(p.raw("values", nil))
			return nil, grown(v, more...), err
		}},
		{name: "insert", params: "index! value!", mutate: listInsert},
		{name: "pop", params: "index", mutate: listPop},
		{name: "remove", params: "value!", mutate: listRemove},
		{name: "clear", mutate: func(any, *bound) (any, any, error) { return nil, []any{}, nil }},
		{name: "reverse", mutate: listReverse},
		{name: "sort", params: "reverse", mutate: listSort},
	}
}

// grown is a copy of a list with more elements.
func grown(v any, more ...any) []any {
	list := v.([]any)
	return append(list[:len(list):len(list)], more...)
}

func listIndex(v any, p *bound) (any, error) {
	list := v.([]any)
	picked, err := indices(len(list), p.value("start", nil), p.value("stop", nil), nil)
	if err != nil {
		return nil, err
	}
	for _, i := range picked {
		if value.Equal(list[i], p.raw("value", nil)) {
			return i, nil
		}
	}
	return nil, fmt.Errorf("%s is not in list", value.Repr(p.raw("value", nil)))
}

func listInsert(v any, p *bound) (any, any, error) {
	list := v.([]any)
	i := p.int("index", 0)
	if i < 0 {
		i += len(list)
	}
	i = max(0, min(len(list), i))
	out := append(make([]any, 0, len(list)+1), list[:i]...)
	return nil, append(append(out, p.raw("value", nil)), list[i:]...), nil
}

func listPop(v any, p *bound) (any, any, error) {
	list := v.([]any)
	i := p.int("index", -1)
	if i < 0 {
		i += len(list)
	}
	switch {
	case len(list) == 0:
		return nil, nil, errors.New("pop from empty list")
	case i < 0 || i >= len(list):
		return nil, nil, errors.New("pop index out of range")
	}
	return list[i], without(list, i), nil
}

func without(list []any, i int) []any {
	return append(append(make([]any, 0, len(list)), list[:i]...), list[i+1:]...)
}

func listRemove(v any, p *bound) (any, any, error) {
	list := v.([]any)
	for i, e := range list {
		if value.Equal(e, p.raw("value", nil)) {
			return nil, without(list, i), nil
		}
	}
	return nil, nil, fmt.Errorf("%s is not in the list", value.Repr(p.raw("value", nil)))
}

func listReverse(v any, _ *bound) (any, any, error) {
	list := v.([]any)
	out := make([]any, len(list))
	for i, e := range list {
		out[len(list)-1-i] = e
	}
	return nil, out, nil
}

func listSort(v any, p *bound) (any, any, error) {
	out := append([]any{}, v.([]any)...)
	reverse := p.flag("reverse", false)
	var failed error
	sort.SliceStable(out, func(i, j int) bool {
		if reverse {
			i, j = j, i
		}
		c, err := order(out[i], out[j])
		if err != nil && failed == nil {
			failed = err
		}
		return c < 0
	})
	return nil, out, failed
}

func dictMethods() []methodSpec {
	return []methodSpec{
		{name: "get", params: "key! default", do: func(v any, p *bound) (any, error) {
			if e, ok := v.(*value.Dict).Get(p.raw("key", nil)); ok {
				return e, nil
			}
			return p.raw("default", nil), nil
		}},
		{name: "keys", do: func(v any, _ *bound) (any, error) { return append([]any{}, v.(*value.Dict).Keys()...), nil }},
		{name: "values", do: func(v any, _ *bound) (any, error) { return dictValues(v.(*value.Dict)), nil }},
		{name: "items", do: func(v any, _ *bound) (any, error) { return dictItems(v.(*value.Dict)), nil }},
		{name: "copy", do: func(v any, _ *bound) (any, error) { return v.(*value.Dict).Copy(), nil }},
		{name: "has_key", params: "key!", do: func(v any, p *bound) (any, error) { return v.(*value.Dict).Has(p.raw("key", nil)), nil }},
		{name: "update", params: "other **", mutate: dictUpdate},
		{name: "setdefault", params: "key! default", mutate: dictSetDefault},
		{name: "pop", params: "key! default", mutate: dictPop},
		{name: "popitem", mutate: dictPopItem},
		{name: "clear", mutate: func(any, *bound) (any, any, error) { return nil, value.NewDict(), nil }},
	}
}

func dictValues(d *value.Dict) []any {
	out := make([]any, 0, d.Len())
	for _, v := range d.All() {
		out = append(out, v)
	}
	return out
}

func dictItems(d *value.Dict) []any {
	out := make([]any, 0, d.Len())
	for k, v := range d.All() {
		out = append(out, []any{k, v})
	}
	return out
}

func dictUpdate(v any, p *bound) (any, any, error) {
	out := v.(*value.Dict).Copy()
	more, err := dictOf(p.raw("other", nil))
	if err != nil {
		return nil, nil, err
	}
	out.Merge(more)
	out.Merge(p.named)
	return nil, out, nil
}

// dictOf is a dict of a dict, of a list of pairs, or empty for none.
func dictOf(v any) (*value.Dict, error) {
	v, err := defined(v)
	if err != nil || v == nil {
		return nil, err
	}
	if d, ok := v.(*value.Dict); ok {
		return d, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("'%s' object is no dict and no list of pairs", value.TypeName(v))
	}
	d := value.NewDict()
	for _, e := range list {
		pair, ok := e.([]any)
		if !ok || len(pair) != 2 || !isKey(pair[0]) {
			return nil, fmt.Errorf("%s is no pair of a key and a value", value.Repr(e))
		}
		d.Set(pair[0], pair[1])
	}
	return d, nil
}

func dictSetDefault(v any, p *bound) (any, any, error) {
	d, key := v.(*value.Dict), p.value("key", nil)
	if e, ok := d.Get(key); ok || !isKey(key) {
		return e, d, nil
	}
	out := d.Copy()
	out.Set(key, p.raw("default", nil))
	return p.raw("default", nil), out, nil
}

func dictPop(v any, p *bound) (any, any, error) {
	d, key := v.(*value.Dict), p.value("key", nil)
	e, ok := d.Get(key)
	switch {
	case ok:
		out := d.Copy()
		out.Delete(key)
		return e, out, nil
	case p.has("default"):
		return p.raw("default", nil), d, nil
	}
	return nil, nil, fmt.Errorf("the dict has no key %s", value.Repr(key))
}

func dictPopItem(v any, _ *bound) (any, any, error) {
	d := v.(*value.Dict)
	if d.Len() == 0 {
		return nil, nil, errors.New("popitem(): dictionary is empty")
	}
	keys := d.Keys()
	last := keys[len(keys)-1]
	e, _ := d.Get(last)
	out := d.Copy()
	out.Delete(last)
	return []any{last, e}, out, nil
}

package methods

import (
	"errors"
	"fmt"
	"sort"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

func listMethods() []expr.Method {
	return []expr.Method{
		{Name: "count", Params: "value!", Do: func(v any, p *expr.Bound) (any, error) {
			n := 0
			for _, e := range v.([]any) {
				if value.Equal(e, p.Raw("value", nil)) {
					n++
				}
			}
			return n, nil
		}},
		{Name: "index", Params: "value! start stop", Do: listIndex},
		{Name: "copy", Do: func(v any, _ *expr.Bound) (any, error) { return append([]any{}, v.([]any)...), nil }},
		{Name: "append", Params: "value!", Mutate: func(v any, p *expr.Bound) (any, any, error) {
			return nil, grown(v, p.Raw("value", nil)), nil
		}},
		{Name: "extend", Params: "values!", Mutate: func(v any, p *expr.Bound) (any, any, error) {
			more, err := expr.Iterate(p.Raw("values", nil))
			return nil, grown(v, more...), err
		}},
		{Name: "insert", Params: "index! value!", Mutate: listInsert},
		{Name: "pop", Params: "index", Mutate: listPop},
		{Name: "remove", Params: "value!", Mutate: listRemove},
		{Name: "clear", Mutate: func(any, *expr.Bound) (any, any, error) { return nil, []any{}, nil }},
		{Name: "reverse", Mutate: listReverse},
		{Name: "sort", Params: "reverse", Mutate: listSort},
	}
}

// grown returns a copy of a list with more elements.
func grown(v any, more ...any) []any {
	list := v.([]any)
	return append(list[:len(list):len(list)], more...)
}

func listIndex(v any, p *expr.Bound) (any, error) {
	list := v.([]any)
	picked, err := expr.Indices(len(list), p.Value("start", nil), p.Value("stop", nil), nil)
	if err != nil {
		return nil, err
	}
	for _, i := range picked {
		if value.Equal(list[i], p.Raw("value", nil)) {
			return i, nil
		}
	}
	return nil, fmt.Errorf("%s is not in list", value.Repr(p.Raw("value", nil)))
}

func listInsert(v any, p *expr.Bound) (any, any, error) {
	list := v.([]any)
	i := p.Int("index", 0)
	if i < 0 {
		i += len(list)
	}
	i = max(0, min(len(list), i))
	out := append(make([]any, 0, len(list)+1), list[:i]...)
	return nil, append(append(out, p.Raw("value", nil)), list[i:]...), nil
}

func listPop(v any, p *expr.Bound) (any, any, error) {
	list := v.([]any)
	i := p.Int("index", -1)
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

func listRemove(v any, p *expr.Bound) (any, any, error) {
	list := v.([]any)
	for i, e := range list {
		if value.Equal(e, p.Raw("value", nil)) {
			return nil, without(list, i), nil
		}
	}
	return nil, nil, fmt.Errorf("%s is not in the list", value.Repr(p.Raw("value", nil)))
}

func listReverse(v any, _ *expr.Bound) (any, any, error) {
	list := v.([]any)
	out := make([]any, len(list))
	for i, e := range list {
		out[len(list)-1-i] = e
	}
	return nil, out, nil
}

func listSort(v any, p *expr.Bound) (any, any, error) {
	out := append([]any{}, v.([]any)...)
	reverse := p.Flag("reverse", false)
	var failed error
	sort.SliceStable(out, func(i, j int) bool {
		if reverse {
			i, j = j, i
		}
		c, err := expr.Order(out[i], out[j])
		if err != nil && failed == nil {
			failed = err
		}
		return c < 0
	})
	return nil, out, failed
}

func dictMethods() []expr.Method {
	return []expr.Method{
		{Name: "get", Params: "key! default", Do: func(v any, p *expr.Bound) (any, error) {
			if e, ok := v.(*value.Dict).Get(p.Raw("key", nil)); ok {
				return e, nil
			}
			return p.Raw("default", nil), nil
		}},
		{Name: "keys", Do: func(v any, _ *expr.Bound) (any, error) { return append([]any{}, v.(*value.Dict).Keys()...), nil }},
		{Name: "values", Do: func(v any, _ *expr.Bound) (any, error) { return dictValues(v.(*value.Dict)), nil }},
		{Name: "items", Do: func(v any, _ *expr.Bound) (any, error) { return dictItems(v.(*value.Dict)), nil }},
		{Name: "copy", Do: func(v any, _ *expr.Bound) (any, error) { return v.(*value.Dict).Copy(), nil }},
		{Name: "has_key", Params: "key!", Do: func(v any, p *expr.Bound) (any, error) { return v.(*value.Dict).Has(p.Raw("key", nil)), nil }},
		{Name: "update", Params: "other **", Mutate: dictUpdate},
		{Name: "setdefault", Params: "key! default", Mutate: dictSetDefault},
		{Name: "pop", Params: "key! default", Mutate: dictPop},
		{Name: "popitem", Mutate: dictPopItem},
		{Name: "clear", Mutate: func(any, *expr.Bound) (any, any, error) { return nil, value.NewDict(), nil }},
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

func dictUpdate(v any, p *expr.Bound) (any, any, error) {
	out := v.(*value.Dict).Copy()
	more, err := dictOf(p.Raw("other", nil))
	if err != nil {
		return nil, nil, err
	}
	out.Merge(more)
	out.Merge(p.Named)
	return nil, out, nil
}

// dictOf makes a dict from a dict, from a list of pairs, or from nothing.
func dictOf(v any) (*value.Dict, error) {
	v, err := expr.Defined(v)
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
		if !ok || len(pair) != 2 || !expr.IsKey(pair[0]) {
			return nil, fmt.Errorf("%s is no pair of a key and a value", value.Repr(e))
		}
		d.Set(pair[0], pair[1])
	}
	return d, nil
}

func dictSetDefault(v any, p *expr.Bound) (any, any, error) {
	d, key := v.(*value.Dict), p.Value("key", nil)
	if e, ok := d.Get(key); ok || !expr.IsKey(key) {
		return e, d, nil
	}
	out := d.Copy()
	out.Set(key, p.Raw("default", nil))
	return p.Raw("default", nil), out, nil
}

func dictPop(v any, p *expr.Bound) (any, any, error) {
	d, key := v.(*value.Dict), p.Value("key", nil)
	e, ok := d.Get(key)
	switch {
	case ok:
		out := d.Copy()
		out.Delete(key)
		return e, out, nil
	case p.Has("default"):
		return p.Raw("default", nil), d, nil
	}
	return nil, nil, fmt.Errorf("the dict has no key %s", value.Repr(key))
}

func dictPopItem(v any, _ *expr.Bound) (any, any, error) {
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

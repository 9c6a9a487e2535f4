package filters

import (
	"fmt"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

func selectFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "map", Params: "* **", Do: filterMap},
		{Names: "select", Params: "* **", Do: choosing(true)},
		{Names: "reject", Params: "* **", Do: choosing(false)},
		{Names: "selectattr", Params: "attribute! * **", Do: choosingByAttr(true)},
		{Names: "rejectattr", Params: "attribute! * **", Do: choosingByAttr(false)},
		{Names: "groupby", Params: "attribute! default case_sensitive", Do: filterGroupBy},
		{Names: "attr", Params: "name!", Do: filterAttr},
		{Names: "extract", Params: "container! morekeys", Do: filterExtract},
	}
}

// filterMap keeps undefined results, so that select('defined') can drop them.
func filterMap(c *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := someItems(in)
	if err != nil {
		return nil, err
	}
	each, err := mapping(c, p)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(list))
	for i, v := range list {
		if out[i], err = each(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// mapping returns the function that map applies to an item: read an attribute, or call a filter.
func mapping(c *expr.Call, p *expr.Bound) (func(any) (any, error), error) {
	if len(p.Rest) == 0 {
		return attributeMapping(c, p)
	}
	name, ok := p.Rest[0].(string)
	if !ok {
		return nil, fmt.Errorf("needs the name of a filter, not %s", expr.DescribeType(p.Rest[0]))
	}
	args := expr.Args{Positional: p.Rest[1:], Named: p.Named}
	return func(v any) (any, error) { return c.Filter(name, v, args) }, nil
}

func attributeMapping(c *expr.Call, p *expr.Bound) (func(any) (any, error), error) {
	path, ok := p.Named.Get("attribute")
	if !ok {
		return nil, fmt.Errorf("needs the name of a filter, or attribute=")
	}
	fallback, hasFallback := p.Named.Get("default")
	for k := range p.Named.All() {
		if k != "attribute" && k != "default" {
			return nil, fmt.Errorf("map has no argument %q (it takes attribute, default)", value.Str(k))
		}
	}
	return func(v any) (any, error) {
		got, err := c.Attr(v, value.Str(path))
		if hasFallback && value.IsUndefined(got) {
			return fallback, err
		}
		return got, err
	}, nil
}

// condition returns the test that select and similar filters apply: the truth value when no test is named.
func condition(c *expr.Call, p *expr.Bound) (func(any) (bool, error), error) {
	if len(p.Rest) == 0 {
		for k := range p.Named.All() {
			return nil, p.Unknown(value.Str(k))
		}
		return func(v any) (bool, error) {
			v, err := expr.Defined(v)
			return value.Truth(v), err
		}, nil
	}
	name, ok := p.Rest[0].(string)
	if !ok {
		return nil, fmt.Errorf("needs the name of a test, not %s", expr.DescribeType(p.Rest[0]))
	}
	args := expr.Args{Positional: p.Rest[1:], Named: p.Named}
	return func(v any) (bool, error) { return c.Test(name, v, args) }, nil
}

func choosing(want bool) func(*expr.Call, any, *expr.Bound) (any, error) {
	return func(c *expr.Call, in any, p *expr.Bound) (any, error) {
		return keep(c, in, p, want, func(v any) (any, error) { return value.Force(v) })
	}
}

func choosingByAttr(want bool) func(*expr.Call, any, *expr.Bound) (any, error) {
	return func(c *expr.Call, in any, p *expr.Bound) (any, error) {
		path := p.Str("attribute", "")
		return keep(c, in, p, want, func(v any) (any, error) { return c.Attr(v, path) })
	}
}

// someItems returns the items of a list. null, 0 and false have none.
func someItems(in any) ([]any, error) {
	switch in {
	case nil, 0, false:
		return nil, nil
	}
	return expr.Items(in)
}

// keep lists the items for which the test of look's result equals want.
func keep(c *expr.Call, in any, p *expr.Bound, want bool, look func(any) (any, error)) (any, error) {
	list, err := someItems(in)
	if err != nil {
		return nil, err
	}
	holds, err := condition(c, p)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, v := range list {
		seen, err := look(v)
		if err != nil {
			return nil, err
		}
		ok, err := holds(seen)
		if err != nil {
			return nil, err
		}
		if ok == want {
			out = append(out, v)
		}
	}
	return out, nil
}

// filterGroupBy lists pairs of a key and the items that have it, sorted by key.
func filterGroupBy(c *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	path, caseSensitive := p.Str("attribute", ""), p.Flag("case_sensitive", false)
	keys, err := groupKeys(c, list, path, p)
	if err != nil {
		return nil, err
	}
	pairs := make([]keyed, len(list))
	for i := range list {
		pairs[i] = keyed{i, fold(keys[i], caseSensitive)}
	}
	if err := sortKeyed(pairs, false); err != nil {
		return nil, err
	}
	out := []any{}
	for i := 0; i < len(pairs); {
		first, group := i, []any{}
		for ; i < len(pairs) && value.Equal(pairs[i].key, pairs[first].key); i++ {
			group = append(group, list[pairs[i].item.(int)])
		}
		if i == first {
			return nil, fmt.Errorf("nan cannot be grouped by")
		}
		out = append(out, []any{keys[pairs[first].item.(int)], group})
	}
	return out, nil
}

func groupKeys(c *expr.Call, list []any, path string, p *expr.Bound) ([]any, error) {
	keys, err := attributes(c, list, path)
	if err != nil {
		return nil, err
	}
	for i, k := range keys {
		if value.IsUndefined(k) && p.Has("default") {
			keys[i] = p.Value("default", nil)
		}
		if keys[i], err = expr.Defined(keys[i]); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

func filterAttr(c *expr.Call, in any, p *expr.Bound) (any, error) {
	name := p.Str("name", "")
	if p.Err != nil {
		return nil, p.Err
	}
	return c.Attr(in, name)
}

// filterExtract returns container[in], followed by [key] for each of morekeys. Without morekeys the result can be
// all variables of a host. It is then not forced, since a filter such as map(attribute='x') needs only one of them.
func filterExtract(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	container := p.Raw("container", nil)
	if value.IsUndefined(container) {
		return container, nil
	}
	v, err := expr.Member(container, in)
	if err != nil {
		return nil, err
	}
	keys := p.List("morekeys")
	if len(keys) == 0 {
		return v, nil
	}
	for _, key := range keys {
		if value.IsUndefined(v) {
			return v, nil
		}
		if v, err = expr.Member(v, key); err != nil {
			return nil, err
		}
	}
	return value.Force(v)
}

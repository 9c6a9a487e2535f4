package general

import (
	"fmt"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/pyregex"
	"kubekey/pkg/value"
)

// keyFilters returns the filters of community.general that select and rename keys in all dictionaries of a list.
func keyFilters(re *filters.Patterns) []expr.Filter {
	choose := func(keep bool) func(*expr.Call, any, *expr.Bound) (any, error) {
		return func(_ *expr.Call, in any, p *expr.Bound) (any, error) {
			fits, err := keyMatcher(re, p)
			if err != nil {
				return nil, err
			}
			return eachDict(in, func(d *value.Dict) (*value.Dict, error) {
				out := value.NewDict()
				for k, v := range d.All() {
					fit, err := anyFits(fits, k)
					if err != nil {
						return nil, err
					}
					if fit == keep {
						out.Set(k, v)
					}
				}
				return out, nil
			})
		}
	}
	return []expr.Filter{
		{Names: "keep_keys", Of: "community.general", Params: "target! matching_parameter", Do: choose(true)},
		{Names: "remove_keys", Of: "community.general", Params: "target! matching_parameter", Do: choose(false)},
		{Names: "replace_keys", Of: "community.general", Params: "target! matching_parameter",
			Do: func(_ *expr.Call, in any, p *expr.Bound) (any, error) {
				return replaceKeys(re, in, p)
			}},
	}
}

// eachDict replaces each dictionary in a list by a new one.
func eachDict(in any, change func(*value.Dict) (*value.Dict, error)) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	out := make([]any, 0, len(list))
	for i, v := range list {
		d, err := expr.AsDict(v)
		if err != nil {
			return nil, fmt.Errorf("item %d of the list: %w", i, err)
		}
		if d, err = change(d); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// keyTest reports whether a key is selected.
type keyTest func(key string) (bool, error)

func anyFits(tests []keyTest, key any) (bool, error) {
	for _, fits := range tests {
		if ok, err := fits(value.Str(key)); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// keyMatcher reads target, which is one text or several, and the method of comparison.
func keyMatcher(re *filters.Patterns, p *expr.Bound) ([]keyTest, error) {
	target := p.Value("target", nil)
	how := p.Str("matching_parameter", "equal")
	if p.Err != nil {
		return nil, p.Err
	}
	texts := []any{target}
	if _, text := target.(string); !text {
		var err error
		if texts, err = expr.Items(target); err != nil {
			return nil, fmt.Errorf("target: %w", err)
		}
	}
	if how == "regex" && len(texts) != 1 {
		return nil, fmt.Errorf("with matching_parameter regex, target is one pattern, not %d", len(texts))
	}
	var tests []keyTest
	for _, t := range texts {
		test, err := keyTestOf(re, how, t)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
	}
	return tests, nil
}

func keyTestOf(re *filters.Patterns, how string, target any) (keyTest, error) {
	text, ok := target.(string)
	if !ok {
		return nil, fmt.Errorf("target %s is no text", value.Repr(target))
	}
	switch how {
	case "equal":
		return func(key string) (bool, error) { return key == text, nil }, nil
	case "starts_with":
		return func(key string) (bool, error) { return strings.HasPrefix(key, text), nil }, nil
	case "ends_with":
		return func(key string) (bool, error) { return strings.HasSuffix(key, text), nil }, nil
	case "regex":
		m, err := re.Get(text, pyregex.AtStart)
		if err != nil {
			return nil, err
		}
		return m.Matches, nil
	}
	return nil, fmt.Errorf("matching_parameter is equal, starts_with, ends_with or regex, not %s", value.Repr(how))
}

// replaceKeys renames keys. target is a list of old and new names.
func replaceKeys(re *filters.Patterns, in any, p *expr.Bound) (any, error) {
	how := p.Str("matching_parameter", "equal")
	targets, err := expr.Items(p.Value("target", nil))
	if p.Err != nil {
		return nil, p.Err
	}
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	tests, names := []keyTest{}, []any{}
	for i, t := range targets {
		d, err := expr.AsDict(t)
		if err != nil {
			return nil, fmt.Errorf("item %d of target: %w", i, err)
		}
		before, has := d.Get("before")
		after, hasAfter := d.Get("after")
		if !has || !hasAfter {
			return nil, fmt.Errorf("item %d of target needs before and after", i)
		}
		test, err := keyTestOf(re, how, before)
		if err != nil {
			return nil, err
		}
		tests, names = append(tests, test), append(names, after)
	}
	return eachDict(in, func(d *value.Dict) (*value.Dict, error) {
		out := value.NewDict()
		for k, v := range d.All() {
			name := k
			for i, fits := range tests {
				ok, err := fits(value.Str(k))
				if err != nil {
					return nil, err
				}
				if ok {
					name = names[i]
					break
				}
			}
			if err := filters.SetKey(out, name, v); err != nil {
				return nil, err
			}
		}
		return out, nil
	})
}

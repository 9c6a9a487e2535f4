package ansibleutils

import (
	"fmt"
	"kubekey/pkg/expr"
	"kubekey/pkg/value"
	"strings"
)

// filterIndexOf returns the indexes of the list elements that pass a test.
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

// entryTest returns the test that the arguments specify: "in", "!=", "not match" and so on.
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

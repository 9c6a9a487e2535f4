// Package tests implements the tests that every playbook has, which are used after `is`.
package tests

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/value"
)

// Rows returns all tests.
func Rows() []expr.Test {
	return slices.Concat(typeTests(), valueTests(), orderTests(), setTests(), resultTests(), textTests(), fileTests())
}

// on makes a test from a predicate. The test is false for undefined values.
func on(names string, is func(v any) bool) expr.Test {
	return expr.Test{Names: names, UndefinedToo: true, Do: func(_ *expr.Call, in any, _ *expr.Bound) (bool, error) {
		return is(in), nil
	}}
}

func isA[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func typeTests() []expr.Test {
	return []expr.Test{
		on("defined", func(v any) bool { return !value.IsUndefined(v) }),
		on("undefined", value.IsUndefined),
		on("none", func(v any) bool { return v == nil }),
		on("string", isA[string]),
		on("mapping", isA[*value.Dict]),
		on("boolean", isA[bool]),
		on("integer", isA[int]),
		on("float", isA[float64]),
		on("number", func(v any) bool { return isA[int](v) || isA[float64](v) || isA[bool](v) }),
		on("sequence", func(v any) bool { return isA[string](v) || isA[[]any](v) || isA[*value.Dict](v) }),
		on("callable", isA[expr.Callable]),
		on("true", func(v any) bool { return v == true }),
		on("false", func(v any) bool { return v == false }),
		on("escaped", func(any) bool { return false }),
		{Names: "iterable", Do: func(_ *expr.Call, in any, _ *expr.Bound) (bool, error) {
			_, err := expr.Iterate(in)
			return err == nil, nil
		}},
		{Names: "sameas", Params: "other!", UndefinedToo: true, Do: func(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
			return same(in, p.Raw("other", nil)), nil
		}},
		{Names: "filter", Do: func(c *expr.Call, in any, _ *expr.Bound) (bool, error) {
			return slices.Contains(c.Env.FilterNames(), c.Env.ShortName(expr.PyStr(in))), nil
		}},
		{Names: "test", Do: func(c *expr.Call, in any, _ *expr.Bound) (bool, error) {
			return slices.Contains(c.Env.TestNames(), c.Env.ShortName(expr.PyStr(in))), nil
		}},
	}
}

// same is Python's `is`: equal scalars of one type, or the identical container.
func same(a, b any) bool {
	switch x := a.(type) {
	case *value.Undefined:
		return false
	case []any:
		y, ok := b.([]any)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	case *value.Dict:
		y, ok := b.(*value.Dict)
		return ok && x == y
	}
	return value.TypeName(a) == value.TypeName(b) && value.Equal(a, b)
}

func whole(names, params string, is func(n int, p *expr.Bound) (bool, error)) expr.Test {
	return expr.Test{Names: names, Params: params, Do: func(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
		n, ok := expr.AsInt(in)
		if f, isFloat := in.(float64); isFloat {
			if n, ok = int(f), math.Abs(f) < 1<<53; f != math.Trunc(f) {
				return false, nil // 1.5 is neither odd nor even
			}
		}
		if !ok {
			return false, fmt.Errorf("an integer is needed, not '%s'", value.TypeName(in))
		}
		return is(n, p)
	}}
}

func valueTests() []expr.Test {
	return []expr.Test{
		whole("odd", "", func(n int, _ *expr.Bound) (bool, error) { return n%2 != 0, nil }),
		whole("even", "", func(n int, _ *expr.Bound) (bool, error) { return n%2 == 0, nil }),
		whole("divisibleby", "num!", func(n int, p *expr.Bound) (bool, error) {
			by := p.Int("num", 0)
			if by == 0 {
				return false, expr.ErrDivision
			}
			return n%by == 0, nil
		}),
		{Names: "upper", Do: func(_ *expr.Call, in any, _ *expr.Bound) (bool, error) { return filters.IsUpper(expr.PyStr(in)), nil }},
		{Names: "lower", Do: func(_ *expr.Call, in any, _ *expr.Bound) (bool, error) { return filters.IsLower(expr.PyStr(in)), nil }},
		{Names: "nan isnan", Do: func(_ *expr.Call, in any, _ *expr.Bound) (bool, error) {
			f, ok := in.(float64)
			return ok && math.IsNaN(f), nil
		}},
		{Names: "truthy", Params: "convert_bool", Do: truthy},
		{Names: "falsy", Params: "convert_bool", Do: func(c *expr.Call, in any, p *expr.Bound) (bool, error) {
			ok, err := truthy(c, in, p)
			return !ok, err
		}},
	}
}

func truthy(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
	if p.Flag("convert_bool", false) {
		switch strings.ToLower(expr.PyStr(in)) {
		case "y", "yes", "on", "1", "true", "t", "1.0":
			return true, nil
		case "n", "no", "off", "0", "false", "f", "0.0":
			return false, nil
		}
	}
	return value.Truth(in), nil
}

func orderTests() []expr.Test {
	rows := []struct{ names, comparison string }{
		{"eq equalto ==", "=="}, {"ne !=", "!="}, {"gt greaterthan >", ">"},
		{"ge >=", ">="}, {"lt lessthan <", "<"}, {"le <=", "<="},
	}
	var out []expr.Test
	for _, r := range rows {
		out = append(out, expr.Test{Names: r.names, Params: "other!",
			Do: func(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
				other, err := expr.Defined(p.Raw("other", nil))
				if err != nil {
					return false, err
				}
				return expr.Relation(r.comparison, in, other)
			}})
	}
	return out
}

func setTests() []expr.Test {
	return []expr.Test{
		{Names: "in", Params: "seq!", Do: func(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
			return expr.Contains(p.Value("seq", nil), in)
		}},
		{Names: "contains", Params: "value!", Do: func(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
			return expr.Contains(in, p.Value("value", nil))
		}},
		{Names: "subset issubset", Params: "b!", Do: func(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
			return subset(in, p.Value("b", nil))
		}},
		{Names: "superset issuperset", Params: "b!", Do: func(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
			return subset(p.Value("b", nil), in)
		}},
		{Names: "any", Do: func(_ *expr.Call, in any, _ *expr.Bound) (bool, error) {
			found, err := search(in, true)
			return found, err
		}},
		{Names: "all", Do: func(_ *expr.Call, in any, _ *expr.Bound) (bool, error) {
			found, err := search(in, false)
			return !found, err
		}},
	}
}

func subset(a, b any) (bool, error) {
	part, err := expr.Iterate(a)
	if err != nil {
		return false, err
	}
	whole, err := expr.Iterate(b)
	if err != nil {
		return false, err
	}
	for _, e := range part {
		if ok, err := expr.Contains(whole, e); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// search reports whether any element has the truth value want.
func search(v any, want bool) (bool, error) {
	list, err := expr.Iterate(v)
	if err != nil {
		return false, err
	}
	for _, e := range list {
		if e, err = expr.Defined(e); err != nil {
			return false, err
		}
		if value.Truth(e) == want {
			return true, nil
		}
	}
	return false, nil
}

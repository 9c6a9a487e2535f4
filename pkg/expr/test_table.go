package expr

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kubekey/pkg/value"
)

// testRows are all tests.
func testRows() []testSpec {
	return slices.Concat(typeTests(), valueTests(), orderTests(), setTests(), resultTests(), textTests(), addressTests(), fileTests())
}

// on makes a test of a predicate; it is false for undefined.
func on(names string, is func(v any) bool) testSpec {
	return testSpec{names: names, undefinedToo: true, do: func(_ *Call, in any, _ *bound) (bool, error) {
		return is(in), nil
	}}
}

func isA[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func typeTests() []testSpec {
	return []testSpec{
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
		on("callable", isA[Callable]),
		on("true", func(v any) bool { return v == true }),
		on("false", func(v any) bool { return v == false }),
		on("escaped", func(any) bool { return false }),
		{names: "iterable", do: func(_ *Call, in any, _ *bound) (bool, error) {
			_, err := iterate(in)
			return err == nil, nil
		}},
		{names: "sameas", params: "other!", undefinedToo: true, do: func(_ *Call, in any, p *bound) (bool, error) {
			return same(in, p.raw("other", nil)), nil
		}},
		{names: "filter", do: func(c *Call, in any, _ *bound) (bool, error) {
			return slices.Contains(c.Env.FilterNames(), c.Env.ShortName(pyStr(in))), nil
		}},
		{names: "test", do: func(c *Call, in any, _ *bound) (bool, error) {
			return slices.Contains(c.Env.TestNames(), c.Env.ShortName(pyStr(in))), nil
		}},
	}
}

// same is Python's `is`: equal scalars of one type, or the very same container.
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

func whole(names, params string, is func(n int, p *bound) (bool, error)) testSpec {
	return testSpec{names: names, params: params, do: func(_ *Call, in any, p *bound) (bool, error) {
		n, ok := asInt(in)
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

func valueTests() []testSpec {
	return []testSpec{
		whole("odd", "", func(n int, _ *bound) (bool, error) { return n%2 != 0, nil }),
		whole("even", "", func(n int, _ *bound) (bool, error) { return n%2 == 0, nil }),
		whole("divisibleby", "num!", func(n int, p *bound) (bool, error) {
			by := p.int("num", 0)
			if by == 0 {
				return false, errDivision
			}
			return n%by == 0, nil
		}),
		{names: "upper", do: func(_ *Call, in any, _ *bound) (bool, error) { return isUpper(pyStr(in)), nil }},
		{names: "lower", do: func(_ *Call, in any, _ *bound) (bool, error) { return isLower(pyStr(in)), nil }},
		{names: "nan isnan", do: func(_ *Call, in any, _ *bound) (bool, error) {
			f, ok := in.(float64)
			return ok && math.IsNaN(f), nil
		}},
		{names: "truthy", params: "convert_bool", do: truthy},
		{names: "falsy", params: "convert_bool", do: func(c *Call, in any, p *bound) (bool, error) {
			ok, err := truthy(c, in, p)
			return !ok, err
		}},
	}
}

func truthy(_ *Call, in any, p *bound) (bool, error) {
	if p.flag("convert_bool", false) {
		switch strings.ToLower(pyStr(in)) {
		case "y", "yes", "on", "1", "true", "t", "1.0":
			return true, nil
		case "n", "no", "off", "0", "false", "f", "0.0":
			return false, nil
		}
	}
	return value.Truth(in), nil
}

func orderTests() []testSpec {
	rows := []struct {
		names string
		op    operator
	}{
		{"eq equalto ==", opEq}, {"ne !=", opNe}, {"gt greaterthan >", opGt},
		{"ge >=", opGe}, {"lt lessthan <", opLt}, {"le <=", opLe},
	}
	var out []testSpec
	for _, r := range rows {
		out = append(out, testSpec{names: r.names, params: "other!", do: func(_ *Call, in any, p *bound) (bool, error) {
			other, err := defined(p.raw("other", nil))
			if err != nil {
				return false, err
			}
			return relation(r.op, in, other)
		}})
	}
	return out
}

func setTests() []testSpec {
	return []testSpec{
		{names: "in", params: "seq!", do: func(_ *Call, in any, p *bound) (bool, error) {
			return contains(p.value("seq", nil), in)
		}},
		{names: "contains", params: "value!", do: func(_ *Call, in any, p *bound) (bool, error) {
			return contains(in, p.value("value", nil))
		}},
		{names: "subset issubset", params: "b!", do: func(_ *Call, in any, p *bound) (bool, error) {
			return subset(in, p.value("b", nil))
		}},
		{names: "superset issuperset", params: "b!", do: func(_ *Call, in any, p *bound) (bool, error) {
			return subset(p.value("b", nil), in)
		}},
		{names: "any", do: func(_ *Call, in any, _ *bound) (bool, error) {
			found, err := search(in, true)
			return found, err
		}},
		{names: "all", do: func(_ *Call, in any, _ *bound) (bool, error) {
			found, err := search(in, false)
			return !found, err
		}},
	}
}

func subset(a, b any) (bool, error) {
	part, err := iterate(a)
	if err != nil {
		return false, err
	}
	whole, err := iterate(b)
	if err != nil {
		return false, err
	}
	for _, e := range part {
		if ok, err := contains(whole, e); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// search reports whether an element has the truth that is wanted.
func search(v any, want bool) (bool, error) {
	list, err := iterate(v)
	if err != nil {
		return false, err
	}
	for _, e := range list {
		if e, err = defined(e); err != nil {
			return false, err
		}
		if value.Truth(e) == want {
			return true, nil
		}
	}
	return false, nil
}

package expr

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"kubekey/pkg/value"
)

// MaxSize limits strings (bytes) and lists (elements) that operators create.
const MaxSize = 16 << 20

var (
	ErrTooBig   = fmt.Errorf("the result is larger than %d bytes or elements", MaxSize)
	errOverflow = errors.New("the result does not fit 64 bits")
	ErrDivision = errors.New("division by zero")
)

func unsupported(op operator, a, b any) error {
	name := op.String()
	if op == opPow {
		name = "** or pow()"
	}
	return fmt.Errorf("unsupported operand type(s) for %s: '%s' and '%s'", name, value.TypeName(a), value.TypeName(b))
}

// AsInt converts ints, and bools as Python does.
func AsInt(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// arith applies an arithmetic operator to forced, defined values.
func arith(op operator, a, b any) (any, error) {
	x, okX := AsInt(a)
	y, okY := AsInt(b)
	if okX && okY {
		return arithInt(op, x, y)
	}
	if s, ok := a.(string); ok && op == opMod {
		return FormatPercent(s, b)
	}
	fx, okX := FloatOf(a)
	fy, okY := FloatOf(b)
	if okX && okY {
		return arithFloat(op, fx, fy)
	}
	switch op {
	case opAdd:
		return add(a, b)
	case opSub:
		return subtract(a, b)
	case opMul:
		return repeat(a, b)
	}
	return nil, unsupported(op, a, b)
}

func arithInt(op operator, x, y int) (any, error) {
	switch op {
	case opAdd:
		if sum := x + y; (sum > x) == (y > 0) {
			return sum, nil
		}
		return nil, errOverflow
	case opSub:
		if diff := x - y; (diff < x) == (y > 0) {
			return diff, nil
		}
		return nil, errOverflow
	case opMul:
		return product(x, y)
	case opPow:
		return powerInt(x, y)
	}
	if y == 0 {
		return nil, ErrDivision
	}
	switch {
	case op == opDiv:
		return float64(x) / float64(y), nil
	case x == math.MinInt && y == -1:
		if op == opMod {
			return 0, nil
		}
		return nil, errOverflow
	}
	quotient, rest := x/y, x%y
	if rest != 0 && (rest < 0) != (y < 0) {
		quotient, rest = quotient-1, rest+y
	}
	if op == opMod {
		return rest, nil
	}
	return quotient, nil
}

func product(x, y int) (any, error) {
	high, low := bits.Mul64(magnitude(x), magnitude(y))
	negative := (x < 0) != (y < 0)
	switch {
	case high != 0 || low > 1<<63 || low == 1<<63 && !negative:
		return nil, errOverflow
	case negative:
		return int(-low), nil
	}
	return int(low), nil
}

func magnitude(x int) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func powerInt(x, y int) (any, error) {
	if y < 0 {
		return arithFloat(opPow, float64(x), float64(y))
	}
	switch x {
	case 0, 1:
		if y == 0 {
			return 1, nil
		}
		return x, nil
	case -1:
		return 1 - 2*(y&1), nil
	}
	if y > 63 {
		return nil, errOverflow
	}
	var result any = 1
	for range y {
		var err error
		if result, err = product(result.(int), x); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func arithFloat(op operator, x, y float64) (any, error) {
	switch op {
	case opAdd:
		return x + y, nil
	case opSub:
		return x - y, nil
	case opMul:
		return x * y, nil
	case opPow:
		return powerFloat(x, y)
	}
	if y == 0 {
		return nil, ErrDivision
	}
	switch op {
	case opDiv:
		return x / y, nil
	case opMod:
		return modFloat(x, y), nil
	}
	return math.Floor((x-modFloat(x, y))/y + 0.5), nil
}

// modFloat returns a result with the sign of y, as in Python.
func modFloat(x, y float64) float64 {
	m := math.Mod(x, y)
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	}
	return m
}

func powerFloat(x, y float64) (any, error) {
	if x == 0 && y < 0 {
		return nil, errors.New("0 cannot be raised to a negative power")
	}
	p := math.Pow(x, y)
	if math.IsNaN(p) && !math.IsNaN(x) && !math.IsNaN(y) {
		return nil, errors.New("a root of a negative number is no number")
	}
	if math.IsInf(p, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, errOverflow
	}
	return p, nil
}

func add(a, b any) (any, error) {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		switch {
		case !ok:
			return nil, fmt.Errorf("can only concatenate str (not \"%s\") to str; ~ joins anything as text", value.TypeName(b))
		case len(x)+len(y) > MaxSize:
			return nil, ErrTooBig
		}
		return x + y, nil
	case []any:
		y, ok := b.([]any)
		switch {
		case !ok:
			return nil, fmt.Errorf("can only concatenate list (not \"%s\") to list", value.TypeName(b))
		case len(x)+len(y) > MaxSize:
			return nil, ErrTooBig
		}
		return append(x[:len(x):len(x)], y...), nil
	case time.Time:
		if y, ok := b.(timedelta); ok {
			return x.Add(time.Duration(y)), nil
		}
	case timedelta:
		switch y := b.(type) {
		case time.Time:
			return y.Add(time.Duration(x)), nil
		case timedelta:
			return x + y, nil
		}
	}
	return nil, unsupported(opAdd, a, b)
}

func subtract(a, b any) (any, error) {
	switch x := a.(type) {
	case time.Time:
		switch y := b.(type) {
		case time.Time:
			return timedelta(x.Sub(y)), nil
		case timedelta:
			return x.Add(-time.Duration(y)), nil
		}
	case timedelta:
		if y, ok := b.(timedelta); ok {
			return x - y, nil
		}
	}
	return nil, unsupported(opSub, a, b)
}

// repeat is 'ab' * 3 and [0] * 3, with the operands in either order.
func repeat(a, b any) (any, error) {
	n, ok := AsInt(b)
	if !ok {
		if n, ok = AsInt(a); !ok {
			return nil, unsupported(opMul, a, b)
		}
		a, b = b, a
	}
	n = max(n, 0)
	switch x := a.(type) {
	case string:
		if n > 0 && len(x) > MaxSize/n {
			return nil, ErrTooBig
		}
		return strings.Repeat(x, n), nil
	case []any:
		if n > 0 && len(x) > MaxSize/n {
			return nil, ErrTooBig
		}
		out := make([]any, 0, len(x)*n)
		for range n {
			if len(x) == 0 {
				break
			}
			out = append(out, x...)
		}
		return out, nil
	}
	return nil, unsupported(opMul, a, b)
}

func sign(v any, plus bool) (any, error) {
	if i, ok := AsInt(v); ok {
		switch {
		case plus:
			return i, nil
		case i == math.MinInt:
			return nil, errOverflow
		}
		return -i, nil
	}
	switch x := v.(type) {
	case float64:
		if plus {
			return x, nil
		}
		return -x, nil
	case timedelta:
		if plus {
			return x, nil
		}
		return -x, nil
	}
	op := "-"
	if plus {
		op = "+"
	}
	return nil, fmt.Errorf("bad operand type for unary %s: '%s'", op, value.TypeName(v))
}

// relation applies == != < <= > >= to forced, defined values.
func relation(op operator, a, b any) (bool, error) {
	switch op {
	case opEq:
		return value.Equal(a, b), nil
	case opNe:
		return !value.Equal(a, b), nil
	}
	order, err := Order(a, b)
	if err != nil {
		return false, fmt.Errorf("'%s' not supported between instances of '%s' and '%s'", op, value.TypeName(a),
			value.TypeName(b))
	}
	switch op {
	case opLt:
		return order < 0, nil
	case opLe:
		return order <= 0, nil
	case opGt:
		return order > 0, nil
	}
	return order >= 0, nil
}

// Relation applies a comparison, written as "==" or "<=", to forced, defined values.
func Relation(comparison string, a, b any) (bool, error) {
	for _, op := range []operator{opEq, opNe, opLt, opLe, opGt, opGe} {
		if op.String() == comparison {
			return relation(op, a, b)
		}
	}
	return false, fmt.Errorf("no comparison is written %s", comparison)
}

// Order returns a negative number when a comes before b, a positive one when it comes after.
func Order(a, b any) (int, error) {
	x, okX := a.(timedelta)
	y, okY := b.(timedelta)
	if okX && okY {
		return int(max(-1, min(1, x-y))), nil
	}
	if a, ok := a.(int); ok {
		if b, ok := b.(int); ok {
			switch {
			case a < b:
				return -1, nil
			case a > b:
				return 1, nil
			}
			return 0, nil
		}
	}
	return value.Compare(a, b)
}

// Contains is Python's `needle in container`.
func Contains(container, needle any) (bool, error) {
	switch c := container.(type) {
	case string:
		s, ok := needle.(string)
		if !ok {
			return false, fmt.Errorf("'in <string>' requires string as left operand, not %s", value.TypeName(needle))
		}
		return strings.Contains(c, s), nil
	case []any:
		for _, e := range c {
			e, err := value.Force(e)
			if err != nil {
				return false, err
			}
			if value.Equal(e, needle) {
				return true, nil
			}
		}
		return false, nil
	case *value.Dict:
		if !IsKey(needle) {
			return false, fmt.Errorf("unhashable type: '%s'", value.TypeName(needle))
		}
		return c.Has(needle), nil
	case *value.Undefined:
		if c.Lenient {
			return false, nil
		}
		return false, c
	case Attrs:
		name, ok := needle.(string)
		if !ok {
			return false, nil
		}
		_, ok = c.Attr(name)
		return ok, nil
	}
	return false, fmt.Errorf("argument of type '%s' is not iterable", value.TypeName(container))
}

// PyStr is Python's str(): None is "None", unlike in output.
func PyStr(v any) string {
	if v == nil {
		return "None"
	}
	return value.Str(v)
}

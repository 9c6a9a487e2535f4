// Package value is the dynamic data of playbooks.
//
// A value is one of: nil, bool, int, float64, string, []any, *Dict,
// *Undefined, time.Time, Lazy, or a callable of package expr; a value that was
// read and not used yet may also be Sealed. Ints are Go
// ints; lists and tuples are both []any. Code outside value, expr, template
// and vars should turn values into Go types as soon as it can (see schema).
package value

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"time"
)

// Undefined is the value of an undefined name. It is a value so that `default` and `is defined` can inspect it; any
// other use is an error, which Error describes.
type Undefined struct {
	Name string // the name that was looked up: "x", "groups.etcd"
	Hint string // "did you mean ..."; may be empty
	Err  error  // why, when the name exists but its own template is undefined

	// Missing is the type of the container that has no member Name ("dict"); "" for a variable.
	Missing string
	// Lenient marks the value of an inline if without else whose condition is
	// false: it prints as nothing and is false, and is no error.
	Lenient bool
}

func (u *Undefined) Error() string {
	msg := fmt.Sprintf("'%s' is undefined", u.Name)
	if u.Missing != "" {
		msg = fmt.Sprintf("'%s object' has no attribute '%s'", u.Missing, u.Name)
		if _, err := strconv.Atoi(u.Name); err == nil {
			msg = fmt.Sprintf("%s object has no element %s", u.Missing, u.Name)
		}
	}
	if u.Err != nil {
		msg += ": " + u.Err.Error()
	}
	if u.Hint != "" {
		msg += " (" + u.Hint + ")"
	}
	return msg
}

// Unwrap returns why the name is undefined.
func (u *Undefined) Unwrap() error { return u.Err }

// IsUndefined reports whether v is an *Undefined.
func IsUndefined(v any) bool {
	_, ok := v.(*Undefined)
	return ok
}

// Lazy is a container whose members are evaluated on access: a variable that contains templates, hostvars. Evaluators
// call At for `a.b` and `a['b']`, and Force for every other use.
type Lazy interface {
	At(key any) (v any, ok bool, err error)
	Force() (any, error)
}

// Force returns v itself, or the value of a Lazy.
func Force(v any) (any, error) {
	for {
		lazy, ok := v.(Lazy)
		if !ok {
			return v, nil
		}
		var err error
		if v, err = lazy.Force(); err != nil {
			return nil, err
		}
	}
}

// Truth is Python's truth of a value; undefined is false.
func Truth(v any) bool {
	switch v := v.(type) {
	case nil, *Undefined:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case *Dict:
		return v.Len() > 0
	}
	return true
}

// TypeName is Python's name of the value's type, as `type_debug` shows it.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case []any:
		return "list"
	case *Dict:
		return "dict"
	case *Undefined:
		return "Undefined"
	case time.Time:
		return "datetime"
	}
	return "object"
}

// number returns v as a float64 when it is a number or a bool.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// Equal is Python's ==: numbers and bools by number, containers by content.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		y, ok := b.(string)
		return ok && x == y
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !Equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case *Dict:
		y, ok := b.(*Dict)
		return ok && x.equal(y)
	case time.Time:
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	case int:
		if y, ok := b.(int); ok {
			return x == y
		}
	}
	x, okX := number(a)
	y, okY := number(b)
	if okX && okY {
		return x == y
	}
	return okX == okY && comparable_(a) && comparable_(b) && a == b
}

// comparable_ keeps == from panicking on values that Go cannot compare.
func comparable_(v any) bool {
	switch v.(type) {
	case []any, *Dict:
		return false
	}
	defer func() { _ = recover() }()
	return v == v //nolint:staticcheck // panics when v cannot be compared
}

// Compare orders two values: numbers with numbers, strings with strings,
// lists with lists. Any other pair is an error that reads as Python's.
func Compare(a, b any) (int, error) {
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			switch {
			case x < y:
				return -1, nil
			case x > y:
				return 1, nil
			}
			return 0, nil
		}
	}
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			switch {
			case x < y:
				return -1, nil
			case x > y:
				return 1, nil
			}
			return 0, nil
		}
	case []any:
		if y, ok := b.([]any); ok {
			return compareLists(x, y)
		}
	case time.Time:
		if y, ok := b.(time.Time); ok {
			return x.Compare(y), nil
		}
	}
	return 0, fmt.Errorf("'<' not supported between instances of '%s' and '%s'", TypeName(a), TypeName(b))
}

func compareLists(x, y []any) (int, error) {
	for i := 0; i < len(x) && i < len(y); i++ {
		if Equal(x[i], y[i]) {
			continue
		}
		return Compare(x[i], y[i])
	}
	return len(x) - len(y), nil
}

// Clone copies containers deeply; other values do not change and are shared.
func Clone(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = Clone(e)
		}
		return out
	case *Dict:
		return v.Clone()
	}
	return v
}

// Of turns common Go data (from encoders, structs of results) into values:
// maps become dicts with sorted keys, slices lists, all integers int.
func Of(v any) any {
	switch v := v.(type) {
	case nil, bool, int, float64, string, []any, *Dict, *Undefined, time.Time, Lazy, Sealed:
		return v
	case int64:
		return int(v)
	case int32:
		return int(v)
	case uint32:
		return int(v)
	case uint64:
		if v > math.MaxInt {
			return float64(v)
		}
		return int(v)
	case []string:
		out := make([]any, len(v))
		for i, s := range v {
			out[i] = s
		}
		return out
	case []int:
		out := make([]any, len(v))
		for i, n := range v {
			out[i] = n
		}
		return out
	case []*Dict:
		out := make([]any, len(v))
		for i, d := range v {
			out[i] = d
		}
		return out
	case map[string]string:
		return ofMap(v)
	case map[string]any:
		return ofMap(v)
	case error:
		return v.Error()
	case fmt.Stringer:
		return v.String()
	}
	return v
}

func ofMap[T any](m map[string]T) *Dict {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	d := NewDict()
	for _, k := range keys {
		d.Set(k, Of(m[k]))
	}
	return d
}

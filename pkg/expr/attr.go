package expr

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"kubekey/pkg/value"
)

// at returns obj[key] or obj.key. A missing member is a *value.Undefined, and so is a member of an undefined value.
func at(obj, key any) (any, error) {
	switch o := obj.(type) {
	case *value.Dict:
		if v, ok := o.Get(key); ok {
			return v, nil
		}
		if !IsKey(key) {
			return nil, fmt.Errorf("unhashable type: '%s'", value.TypeName(key))
		}
	case value.Lazy:
		v, ok, err := o.At(key)
		if ok || err != nil {
			return v, err
		}
		return missing("dict", key), nil
	case *value.Undefined:
		return o, nil
	case []any:
		return element(o, key)
	case string:
		return character(o, key)
	case Attrs:
		if name, ok := key.(string); ok {
			if v, ok := o.Attr(name); ok {
				return v, nil
			}
		}
	case time.Time:
		if v, ok := timeAttr(o, key); ok {
			return v, nil
		}
	}
	return missing(typeName(obj), key), nil
}

func typeName(v any) string {
	if v == nil {
		return "None"
	}
	if t, ok := v.(interface{ TypeName() string }); ok {
		return t.TypeName()
	}
	return value.TypeName(v)
}

func missing(in string, key any) *value.Undefined {
	return &value.Undefined{Name: PyStr(key), Missing: in}
}

func element(list []any, key any) (any, error) {
	i, ok := AsInt(key)
	if !ok && len(list) == 2 {
		i, ok = groupMember(key)
	}
	if !ok {
		return missing("list", key), nil
	}
	if i < 0 {
		i += len(list)
	}
	if i < 0 || i >= len(list) {
		return missing("list", key), nil
	}
	return list[i], nil
}

// groupMember returns the index of a named member of the pairs that groupby yields. Tuples are lists here, so any
// pair has these names.
func groupMember(key any) (int, bool) {
	switch key {
	case "grouper":
		return 0, true
	case "list":
		return 1, true
	}
	return 0, false
}

func character(s string, key any) (any, error) {
	i, ok := AsInt(key)
	n := len(s)
	if ok && (i < 0 || n > 64) {
		n = utf8.RuneCountInString(s)
	}
	if i < 0 {
		i += n
	}
	if !ok || i < 0 || i >= n {
		return missing("str", key), nil
	}
	for _, r := range s {
		if i == 0 {
			return string(r), nil
		}
		i--
	}
	return missing("str", key), nil
}

// slice is Python's obj[low:up:step] for strings and lists; bounds are nil, ints or bools.
func slice(obj, low, up, step any) (any, error) {
	if s, ok := obj.(string); ok {
		runes := []rune(s)
		picked, err := Indices(len(runes), low, up, step)
		if err != nil {
			return nil, err
		}
		out := make([]rune, len(picked))
		for i, j := range picked {
			out[i] = runes[j]
		}
		return string(out), nil
	}
	list, ok := obj.([]any)
	if !ok {
		return nil, fmt.Errorf("'%s' object cannot be sliced", value.TypeName(obj))
	}
	picked, err := Indices(len(list), low, up, step)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(picked))
	for i, j := range picked {
		out[i] = list[j]
	}
	return out, nil
}

// Indices returns the indexes that a slice of n elements selects, in order.
func Indices(n int, low, up, step any) ([]int, error) {
	by := 1
	if step != nil {
		var ok bool
		if by, ok = AsInt(step); !ok {
			return nil, errSlice
		}
		if by == 0 {
			return nil, fmt.Errorf("slice step cannot be zero")
		}
	}
	first, last := 0, n // by > 0
	floor, ceil := 0, n
	if by < 0 {
		first, last = n-1, -1
		floor, ceil = -1, n-1
	}
	var err error
	if first, err = SliceBound(low, first, n, floor, ceil); err != nil {
		return nil, err
	}
	if last, err = SliceBound(up, last, n, floor, ceil); err != nil {
		return nil, err
	}
	var out []int
	for i := first; by > 0 && i < last || by < 0 && i > last; {
		out = append(out, i)
		next := i + by
		if (by > 0) != (next > i) {
			break // overflow
		}
		i = next
	}
	return out, nil
}

var errSlice = fmt.Errorf("slice indices must be integers or none")

// SliceBound returns one bound of a slice of n elements, limited to floor and ceil; def when the bound is nil.
func SliceBound(v any, def, n, floor, ceil int) (int, error) {
	if v == nil {
		return def, nil
	}
	i, ok := AsInt(v)
	if !ok {
		return 0, errSlice
	}
	if i < 0 {
		i += n
	}
	return max(floor, min(ceil, i)), nil
}

// Attr follows a dotted path. Missing members are a *value.Undefined. Parts that consist of digits are indexes.
func Attr(v any, path string) (any, error) {
	for part := range strings.SplitSeq(path, ".") {
		var key any = part
		if i, err := strconv.Atoi(part); err == nil {
			key = i
		}
		next, err := at(v, key)
		if err != nil {
			return undefinedOr(part, err)
		}
		if u, ok := next.(*value.Undefined); ok && key != any(part) && !value.IsUndefined(v) {
			if next, err = at(v, part); err != nil || value.IsUndefined(next) {
				return u, nil
			}
		}
		v = next
	}
	v, err := value.Force(v)
	if err != nil {
		return undefinedOr(path, err)
	}
	return v, nil
}

// undefinedOr returns the undefined value behind an error, or else the error.
func undefinedOr(name string, err error) (any, error) {
	if asUndefined(err) == nil {
		return nil, err
	}
	return &value.Undefined{Name: name, Err: err}, nil
}

package expr

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Bounds of what one filter may make, so that a template cannot eat the memory.
const (
	maxText  = 64 << 20
	maxItems = 1_000_000
)

var (
	errTextTooBig = fmt.Errorf("the result would be larger than %d MiB", maxText>>20)
	errListTooBig = fmt.Errorf("the result would have more than %d items", maxItems)
)

// signature is the parameters of a filter or lookup. It is written
// "pattern! replacement ignorecase * **": ! marks a required one, * takes
// further positional arguments, ** takes any other named one.
type signature struct {
	name     string
	params   []string
	required int
	rest     bool
	keywords bool
}

func parseSignature(name, text string) *signature {
	s := &signature{name: name}
	for _, word := range strings.Fields(text) {
		switch {
		case word == "*":
			s.rest = true
		case word == "**":
			s.keywords = true
		case strings.HasSuffix(word, "!"):
			s.params = append(s.params, strings.TrimSuffix(word, "!"))
			s.required = len(s.params)
		default:
			s.params = append(s.params, word)
		}
	}
	return s
}

// notGiven stands for a parameter that was not given.
type notGiven struct{}

// bound is arguments by parameter. Its getters keep the first error in err, so
// that a filter reads all its parameters and looks at err once.
type bound struct {
	sig    *signature
	values []any
	rest   []any
	named  *value.Dict // only what no parameter took
	err    error
}

func (s *signature) bind(a Args) (*bound, error) {
	b := &bound{sig: s, values: make([]any, len(s.params))}
	for i := range b.values {
		b.values[i] = notGiven{}
	}
	n := copy(b.values, a.Positional)
	if n < len(a.Positional) {
		if !s.rest {
			return nil, fmt.Errorf("%s takes at most %d arguments, not %d", s.name, len(s.params), len(a.Positional))
		}
		b.rest = a.Positional[n:]
	}
	for k, v := range a.Named.All() {
		if err := b.bindNamed(value.Str(k), v); err != nil {
			return nil, err
		}
	}
	for i := range s.required {
		if b.values[i] == (notGiven{}) {
			return nil, fmt.Errorf("%s needs the argument %s", s.name, s.params[i])
		}
	}
	return b, nil
}

func (b *bound) bindNamed(name string, v any) error {
	for i, p := range b.sig.params {
		if p != name {
			continue
		}
		if _, free := b.values[i].(notGiven); !free {
			return fmt.Errorf("%s got the argument %s twice", b.sig.name, name)
		}
		b.values[i] = v
		return nil
	}
	if b.sig.keywords {
		if b.named == nil {
			b.named = value.NewDict()
		}
		b.named.Set(name, v)
		return nil
	}
	return b.unknown(name)
}

func (b *bound) unknown(name string) error {
	help := source.DidYouMean(name, b.sig.params)
	switch {
	case help != "":
	case len(b.sig.params) == 0:
		help = "it takes no named arguments"
	default:
		help = "it takes " + strings.Join(b.sig.params, ", ")
	}
	return fmt.Errorf("%s has no argument %q (%s)", b.sig.name, name, help)
}

// callee is the name that was called.
func (b *bound) callee() string { return b.sig.name }

// names are those of the parameters.
func (b *bound) names() []string { return b.sig.params }

func (b *bound) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// raw is the argument as it was given, maybe undefined; def when it was not.
func (b *bound) raw(name string, def any) any {
	for i, p := range b.sig.params {
		if p == name {
			if _, no := b.values[i].(notGiven); no {
				return def
			}
			return b.values[i]
		}
	}
	return def
}

func (b *bound) has(name string) bool {
	return b.raw(name, notGiven{}) != any(notGiven{})
}

// value is the argument, def when it was not given; an undefined one is an error.
func (b *bound) value(name string, def any) any {
	v, err := defined(b.raw(name, def))
	if err != nil {
		b.fail(err)
		return def
	}
	return v
}

// str is a text argument; nil counts as not given.
func (b *bound) str(name, def string) string {
	v := b.value(name, nil)
	if v == nil {
		return def
	}
	return value.Str(v)
}

// int is a whole number argument; nil counts as not given.
func (b *bound) int(name string, def int) int {
	v := b.value(name, nil)
	if v == nil {
		return def
	}
	i, ok := wholeNumber(v)
	if !ok {
		b.fail(fmt.Errorf("argument %s must be a whole number, not %s", name, value.Repr(v)))
		return def
	}
	return i
}

// flag is a boolean argument; texts are read as YAML 1.1 booleans.
func (b *bound) flag(name string, def bool) bool {
	v := b.value(name, nil)
	if v == nil {
		return def
	}
	if s, ok := v.(string); ok {
		switch strings.ToLower(s) {
		case "false", "no", "off", "0", "":
			return false
		}
		return true
	}
	return value.Truth(v)
}

// list is an argument with items; a single text stands for itself.
func (b *bound) list(name string) []any {
	v := b.value(name, nil)
	if v == nil {
		return nil
	}
	if s, ok := v.(string); ok {
		return []any{s}
	}
	items, err := items(v)
	if err != nil {
		b.fail(err)
	}
	return items
}

// defined forces a value and refuses an undefined one.
func defined(v any) (any, error) {
	v, err := value.Force(v)
	if err != nil {
		return nil, err
	}
	return lenient(v)
}

// lenient lets an inline if without else stand for an empty text, and refuses
// any other undefined value.
func lenient(v any) (any, error) {
	u, ok := v.(*value.Undefined)
	switch {
	case !ok:
		return v, nil
	case u.Lenient:
		return "", nil
	}
	return nil, u
}

// plainText is the text of a value as Python's str(): None is "None".
func plainText(v any) (string, error) {
	v, err := defined(v)
	if err != nil {
		return "", err
	}
	if v == nil {
		return "None", nil
	}
	return value.Str(v), nil
}

// items are what a Python loop over v yields: the items of a list, the keys of
// a dict, the characters of a text.
func items(v any) ([]any, error) {
	v, err := defined(v)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case []any:
		return v, nil
	case *value.Dict:
		return v.Keys(), nil
	case string:
		out := make([]any, 0, len(v))
		for _, r := range v {
			out = append(out, string(r))
		}
		return out, nil
	}
	return nil, fmt.Errorf("'%s' object is not iterable", value.TypeName(v))
}

// listOnly is like items but refuses text, which is nearly always a mistake.
func listOnly(v any) ([]any, error) {
	v, err := defined(v)
	if err != nil {
		return nil, err
	}
	switch v.(type) {
	case []any, *value.Dict:
		return items(v)
	}
	return nil, fmt.Errorf("needs a list, not %s", aType(v))
}

func aType(v any) string { return "a value of type " + value.TypeName(v) }

func asDict(v any) (*value.Dict, error) {
	v, err := defined(v)
	if err != nil {
		return nil, err
	}
	d, ok := v.(*value.Dict)
	if !ok {
		return nil, fmt.Errorf("needs a dict, not %s", aType(v))
	}
	return d, nil
}

// wholeNumber reads ints, whole floats, bools and texts of digits.
func wholeNumber(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int(v), true
		}
	case string:
		i, err := strconv.Atoi(strings.TrimSpace(v))
		return i, err == nil
	}
	return 0, false
}

func floatOf(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func needNumber(v any) (float64, error) {
	f, ok := floatOf(v)
	if !ok {
		return 0, fmt.Errorf("needs a number, not %s", aType(v))
	}
	return f, nil
}

// member is v[key]: a *value.Undefined when there is none.
func member(v, key any) (any, error) {
	if lazy, ok := v.(value.Lazy); ok {
		m, ok, err := lazy.At(key)
		if err != nil || ok {
			return m, err
		}
		return noMember(v, key), nil
	}
	v, err := defined(v)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *value.Dict:
		if m, ok := v.Get(key); ok {
			return m, nil
		}
	case []any:
		return element(v, key)
	case string:
		runes := []rune(v)
		if i, ok := position(key, len(runes)); ok {
			return string(runes[i]), nil
		}
	}
	return noMember(v, key), nil
}

func noMember(v, key any) *value.Undefined {
	return &value.Undefined{Name: value.Str(key), Missing: value.TypeName(v)}
}

func position(key any, length int) (int, bool) {
	i, ok := wholeNumber(key)
	if i < 0 {
		i += length
	}
	return i, ok && i >= 0 && i < length
}

// named says whose error it is; an undefined name stays what it is, since
// `default` and lazy variables look for it.
func named(name string, err error) error {
	var u *value.Undefined
	if err == nil || errors.As(err, &u) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

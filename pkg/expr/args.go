package expr

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Limits for the results of a single filter, so that a template cannot exhaust the memory.
const (
	MaxText  = 64 << 20
	MaxItems = 1_000_000
	// MaxDepth is the maximum nesting depth of a value.
	MaxDepth = 100
)

var (
	ErrTextTooBig = fmt.Errorf("the result would be larger than %d MiB", MaxText>>20)
	ErrListTooBig = fmt.Errorf("the result would have more than %d items", MaxItems)
)

// signature describes the parameters of a filter or lookup. It is written "pattern! replacement ignorecase * **": !
// marks a required parameter, * accepts further positional arguments, ** accepts any other named argument.
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

// notGiven marks a parameter that was not given.
type notGiven struct{}

// Bound has the arguments by parameter. Its getters keep the first error in Err, so that a filter can read all its
// parameters and check Err once.
type Bound struct {
	sig    *signature
	values []any
	Rest   []any
	Named  *value.Dict // only arguments without a parameter
	Err    error
}

func (s *signature) bind(a Args) (*Bound, error) {
	b := &Bound{sig: s, values: make([]any, len(s.params))}
	for i := range b.values {
		b.values[i] = notGiven{}
	}
	n := copy(b.values, a.Positional)
	if n < len(a.Positional) {
		if !s.rest {
			return nil, fmt.Errorf("%s takes at most %d arguments, not %d", s.name, len(s.params), len(a.Positional))
		}
		b.Rest = a.Positional[n:]
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

func (b *Bound) bindNamed(name string, v any) error {
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
		if b.Named == nil {
			b.Named = value.NewDict()
		}
		b.Named.Set(name, v)
		return nil
	}
	return b.Unknown(name)
}

// Unknown returns the error for a named argument that does not exist.
func (b *Bound) Unknown(name string) error {
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

// Callee returns the name that was called.
func (b *Bound) Callee() string { return b.sig.name }

// Names returns the names of the parameters.
func (b *Bound) Names() []string { return b.sig.params }

// Fail records an error. Only the first one is kept.
func (b *Bound) Fail(err error) {
	if b.Err == nil {
		b.Err = err
	}
}

// Raw returns the argument as it was given, possibly undefined; def when it was not given.
func (b *Bound) Raw(name string, def any) any {
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

// Has reports whether the argument was given.
func (b *Bound) Has(name string) bool {
	return b.Raw(name, notGiven{}) != any(notGiven{})
}

// Value returns the argument, def when it was not given. An undefined argument is an error.
func (b *Bound) Value(name string, def any) any {
	v, err := Defined(b.Raw(name, def))
	if err != nil {
		b.Fail(err)
		return def
	}
	return v
}

// Str returns a text argument. nil counts as not given.
func (b *Bound) Str(name, def string) string {
	v := b.Value(name, nil)
	if v == nil {
		return def
	}
	return value.Str(v)
}

// Int returns a whole number argument. nil counts as not given.
func (b *Bound) Int(name string, def int) int {
	v := b.Value(name, nil)
	if v == nil {
		return def
	}
	i, ok := WholeNumber(v)
	if !ok {
		b.Fail(fmt.Errorf("argument %s must be a whole number, not %s", name, value.Repr(v)))
		return def
	}
	return i
}

// Flag returns a boolean argument. Texts are read as YAML 1.1 booleans.
func (b *Bound) Flag(name string, def bool) bool {
	v := b.Value(name, nil)
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

// List returns an argument with items. A single text becomes a list of one item.
func (b *Bound) List(name string) []any {
	v := b.Value(name, nil)
	if v == nil {
		return nil
	}
	if s, ok := v.(string); ok {
		return []any{s}
	}
	items, err := Items(v)
	if err != nil {
		b.Fail(err)
	}
	return items
}

// Defined forces a value and rejects undefined values.
func Defined(v any) (any, error) {
	v, err := value.Force(v)
	if err != nil {
		return nil, err
	}
	return lenient(v)
}

// lenient replaces the undefined result of an inline if without else by an empty text, and rejects any other
// undefined value.
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

// Text returns the text of a value as Python's str(): None is "None".
func Text(v any) (string, error) {
	v, err := Defined(v)
	if err != nil {
		return "", err
	}
	if v == nil {
		return "None", nil
	}
	return value.Str(v), nil
}

// Items returns the items that a Python loop over v yields: the items of a list, the keys of a dict, the characters
// of a text.
func Items(v any) ([]any, error) {
	v, err := Defined(v)
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

// ListItems is like Items but rejects text, which is nearly always a mistake.
func ListItems(v any) ([]any, error) {
	v, err := Defined(v)
	if err != nil {
		return nil, err
	}
	switch v.(type) {
	case []any, *value.Dict:
		return Items(v)
	}
	return nil, fmt.Errorf("needs a list, not %s", DescribeType(v))
}

// DescribeType returns "a value of type str", for messages.
func DescribeType(v any) string { return "a value of type " + value.TypeName(v) }

// AsDict forces a value that must be a dict.
func AsDict(v any) (*value.Dict, error) {
	v, err := Defined(v)
	if err != nil {
		return nil, err
	}
	d, ok := v.(*value.Dict)
	if !ok {
		return nil, fmt.Errorf("needs a dict, not %s", DescribeType(v))
	}
	return d, nil
}

// WholeNumber converts ints, whole floats, bools and texts of digits.
func WholeNumber(v any) (int, bool) {
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

// FloatOf converts numbers, and bools as Python does.
func FloatOf(v any) (float64, bool) {
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

// NeedNumber is FloatOf with an error.
func NeedNumber(v any) (float64, error) {
	f, ok := FloatOf(v)
	if !ok {
		return 0, fmt.Errorf("needs a number, not %s", DescribeType(v))
	}
	return f, nil
}

// Member returns v[key], or a *value.Undefined when it does not exist.
func Member(v, key any) (any, error) {
	if lazy, ok := v.(value.Lazy); ok {
		m, ok, err := lazy.At(key)
		if err != nil || ok {
			return m, err
		}
		return noMember(v, key), nil
	}
	v, err := Defined(v)
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
	i, ok := WholeNumber(key)
	if i < 0 {
		i += length
	}
	return i, ok && i >= 0 && i < length
}

// named prefixes an error with the callee's name. An error about an undefined name is not changed, because
// `default` and lazy variables check for it.
func named(name string, err error) error {
	var u *value.Undefined
	if err == nil || errors.As(err, &u) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Shorten shortens a text for an error message.
func Shorten(s string) string {
	if utf8.RuneCountInString(s) <= 60 {
		return s
	}
	return string([]rune(s)[:60]) + "…"
}

package value

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestDict(t *testing.T) {
	d := NewDict("b", 1, "a", 2)
	for i := range 20 {
		d.Set(fmt.Sprint("k", i), i)
	}
	d.Set("b", "new")
	if v, ok := d.Get("b"); !ok || v != "new" || d.Len() != 22 || d.Keys()[0] != "b" {
		t.Errorf("b is %v, first key %v of %d", v, d.Keys()[0], d.Len())
	}
	if !d.Delete("a") || d.Delete("a") || d.Has("a") || d.Len() != 21 {
		t.Error("delete does not remove a once")
	}
	if v, _ := d.Get("k19"); v != 19 {
		t.Errorf("k19 is %v behind a deleted key", v)
	}
	for range 18 {
		d.Delete(d.Keys()[0])
	}
	if got := Repr(d); got != "{'k17': 17, 'k18': 18, 'k19': 19}" {
		t.Error(got)
	}
	if d.String("k17") != "" || NewDict("x", "y").String("x") != "y" {
		t.Error("String is for strings")
	}
}

func TestDictKeys(t *testing.T) {
	d := NewDict(1, "one")
	d.Set(1.0, "float")
	d.Set("1", "text")
	d.Set(1.5, "half")
	d.Set(nil, "none")
	d.Set([]any{1}, "list")
	if got := Repr(d); got != "{1: 'float', '1': 'text', 1.5: 'half', None: 'none', '[1]': 'list'}" {
		t.Error(got)
	}
}

func TestNilDict(t *testing.T) {
	var d *Dict
	if d.Len() != 0 || d.Has("x") || d.Keys() != nil || d.Clone().Len() != 0 {
		t.Error("a nil dict is not empty")
	}
	for range d.All() {
		t.Error("a nil dict has keys")
	}
}

func TestCopies(t *testing.T) {
	inner := []any{1}
	d := NewDict("l", inner, "d", NewDict("x", 1))
	shallow, deep := d.Copy(), d.Clone()
	inner[0] = 2
	if Repr(shallow) != "{'l': [2], 'd': {'x': 1}}" || Repr(deep) != "{'l': [1], 'd': {'x': 1}}" {
		t.Error(Repr(shallow), Repr(deep))
	}
	d.Merge(NewDict("l", 0, "n", 1))
	if Repr(d) != "{'l': 0, 'd': {'x': 1}, 'n': 1}" {
		t.Error(Repr(d))
	}
}

func TestTruth(t *testing.T) {
	for _, v := range []any{nil, false, 0, 0.0, "", []any{}, NewDict(), &Undefined{Name: "x"}} {
		if Truth(v) {
			t.Errorf("%s is true", Repr(v))
		}
	}
	for _, v := range []any{true, 1, -0.5, "false", []any{nil}, NewDict("a", 1), time.Now()} {
		if !Truth(v) {
			t.Errorf("%s is false", Repr(v))
		}
	}
}

func TestEqual(t *testing.T) {
	now := time.Now()
	equal := [][2]any{
		{1, 1.0}, {true, 1}, {0, false}, {nil, nil}, {"a", "a"}, {[]any{1, "x"}, []any{1.0, "x"}},
		{NewDict("a", 1, "b", 2), NewDict("b", 2, "a", 1)}, {now, now.UTC()},
	}
	for _, p := range equal {
		if !Equal(p[0], p[1]) {
			t.Errorf("%s != %s", Repr(p[0]), Repr(p[1]))
		}
	}
	different := [][2]any{
		{1, "1"}, {nil, false}, {nil, 0}, {"", nil}, {[]any{1}, []any{1, 2}}, {[]any{}, NewDict()}, {"True", true},
		{NewDict("a", 1), NewDict("a", 2)}, {NewDict("a", 1), NewDict("b", 1)}, {1, NewDict()}, {now, "now"},
		{func() {}, func() {}},
	}
	for _, p := range different {
		if Equal(p[0], p[1]) {
			t.Errorf("%s == %s", Repr(p[0]), Repr(p[1]))
		}
	}
}

func TestCompare(t *testing.T) {
	now := time.Now()
	ascending := [][2]any{
		{1, 2}, {1, 1.5}, {false, true}, {"a", "b"}, {"B", "a"}, {[]any{1, 2}, []any{1, 3}}, {[]any{1}, []any{1, 0}},
		{now, now.Add(1)},
	}
	for _, p := range ascending {
		less, err := Compare(p[0], p[1])
		more, err2 := Compare(p[1], p[0])
		same, err3 := Compare(p[0], p[0])
		if less >= 0 || more <= 0 || same != 0 || errors.Join(err, err2, err3) != nil {
			t.Errorf("%s, %s: %d, %d, %d, %v", Repr(p[0]), Repr(p[1]), less, more, same, errors.Join(err, err2, err3))
		}
	}
	for _, p := range [][2]any{{1, "a"}, {nil, 1}, {NewDict(), NewDict()}, {[]any{1}, []any{"a"}}, {"a", nil}} {
		if _, err := Compare(p[0], p[1]); err == nil ||
			!strings.Contains(err.Error(), "'<' not supported between instances of") {
			t.Errorf("%s < %s: %v", Repr(p[0]), Repr(p[1]), err)
		}
	}
}

func TestUndefined(t *testing.T) {
	for want, u := range map[string]*Undefined{
		"'x' is undefined":                       {Name: "x"},
		"'x' is undefined (did you mean \"y\"?)": {Name: "x", Hint: `did you mean "y"?`},
		"'dict object' has no attribute 'x'":     {Name: "x", Missing: "dict"},
		"list object has no element 3":           {Name: "3", Missing: "list"},
		"'x' is undefined: 'y' is undefined":     {Name: "x", Err: &Undefined{Name: "y"}},
	} {
		if u.Error() != want {
			t.Errorf("%s, want %s", u, want)
		}
	}
	inner := &Undefined{Name: "y"}
	if !errors.Is(&Undefined{Name: "x", Err: inner}, error(inner)) || !IsUndefined(inner) || IsUndefined(nil) {
		t.Error("an undefined value does not tell why")
	}
}

func TestText(t *testing.T) {
	deep := any(1)
	for range 200 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		v         any
		str, repr string
	}{
		{nil, "", "None"},
		{true, "True", "True"},
		{12, "12", "12"},
		{1.0, "1.0", "1.0"},
		{1e20, "1e+20", "1e+20"},
		{1e-7, "1e-07", "1e-07"},
		{0.1, "0.1", "0.1"},
		{math.Inf(-1), "-inf", "-inf"},
		{math.NaN(), "nan", "nan"},
		{"it's", "it's", `"it's"`},
		{`"it's"`, `"it's"`, `'"it\'s"'`},
		{"a\tb\n\r\\\x01\x7f", "a\tb\n\r\\\x01\x7f", `'a\tb\n\r\\\x01\x7f'`},
		{"ż\u00a0\u200b\U000e0001", "ż\u00a0\u200b\U000e0001", `'ż\xa0\u200b\U000e0001'`},
		{[]any{"a", 1, nil}, "['a', 1, None]", "['a', 1, None]"},
		{NewDict("a", []any{}, 1, NewDict()), "{'a': [], 1: {}}", "{'a': [], 1: {}}"},
	} {
		if Str(c.v) != c.str || Repr(c.v) != c.repr {
			t.Errorf("%#v: %s, %s, want %s, %s", c.v, Str(c.v), Repr(c.v), c.str, c.repr)
		}
	}
	if got := Repr(deep); len(got) > 1000 || got == "" {
		t.Errorf("what is too deep prints as %d bytes", len(got))
	}
}

func TestJSON(t *testing.T) {
	v := NewDict("b", []any{1, 2.5, nil, true}, "a", NewDict(), 1, "ż\"\\\n\u2028", "c", []any{})
	for want, o := range map[string]JSONOptions{
		`{"b": [1, 2.5, null, true], "a": {}, "1": "ż\"\\\n` + "\u2028" + `", "c": []}`: {},
		`{"1":"\u017c\"\\\n\u2028","a":{},"b":[1,2.5,null,true],"c":[]}`: {SortKeys: true, ASCII: true,
			Compact: true},
	} {
		if got, err := JSON(v, o); err != nil || got != want {
			t.Errorf("%+v: %s, %v, want %s", o, got, err, want)
		}
	}
	got, err := JSON(NewDict("a", []any{1, NewDict("x", nil)}), JSONOptions{Indent: 2})
	if want := "{\n  \"a\": [\n    1,\n    {\n      \"x\": null\n    }\n  ]\n}"; err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range []any{&Undefined{Name: "x"}, func() {}} {
		if text, err := JSON([]any{bad}, JSONOptions{}); err == nil {
			t.Errorf("written as JSON: %s", text)
		}
	}
	deep := any(1)
	for range 200 {
		deep = []any{deep}
	}
	if _, err := JSON(deep, JSONOptions{}); !errors.Is(err, ErrTooDeep) {
		t.Error(err)
	}
	for want, f := range map[string]float64{"Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "NaN": math.NaN(),
		"1.0": 1} {
		if got, err := JSON(f, JSONOptions{}); got != want || err != nil {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}

func TestFromJSON(t *testing.T) {
	v, err := FromJSON([]byte(` {"b": [1, 2.0, 1e2, "x", null, true], "a": {"z": -1}, "n": 12345678901234567890} `))
	if want := "{'b': [1, 2.0, 100.0, 'x', None, True], 'a': {'z': -1}, 'n': 1.2345678901234567e+19}"; err != nil ||
		Repr(v) != want {
		t.Errorf("%s, %v, want %s", Repr(v), err, want)
	}
	for _, bad := range []string{"", "{", "[1,", `{"a"}`, "1 2", "{1: 2}", "nul", strings.Repeat("[", 5000), `{"a":`} {
		if v, err := FromJSON([]byte(bad)); err == nil {
			t.Errorf("%.20s is read as %s", bad, Repr(v))
		}
	}
	if _, err := FromJSON([]byte(strings.Repeat("[", 200) + strings.Repeat("]", 200))); !errors.Is(err, ErrTooDeep) {
		t.Error(err)
	}
}

// late is a value that is worked out when it is asked for.
type late struct {
	v   any
	err error
}

func (l late) At(any) (any, bool, error) { return nil, false, l.err }
func (l late) Force() (any, error)       { return l.v, l.err }

func TestForce(t *testing.T) {
	if v, err := Force(late{v: late{v: 5}}); v != 5 || err != nil {
		t.Error(v, err)
	}
	boom := errors.New("boom")
	if _, err := Force(late{v: late{err: boom}}); !errors.Is(err, boom) {
		t.Error(err)
	}
	if got, err := JSON([]any{late{v: 1}}, JSONOptions{}); got != "[1]" || err != nil {
		t.Error(got, err)
	}
}

func TestOf(t *testing.T) {
	for want, v := range map[string]any{
		"5":                      int64(5),
		"6":                      int32(6),
		"7":                      uint32(7),
		"8":                      uint64(8),
		"1.8446744073709552e+19": uint64(math.MaxUint64),
		"['a', 'b']":             []string{"a", "b"},
		"[1, 2]":                 []int{1, 2},
		"[{'x': 1}]":             []*Dict{NewDict("x", 1)},
		"{'a': 'x', 'b': 'y'}":   map[string]string{"b": "y", "a": "x"},
		"{'a': 1, 'b': ['x']}":   map[string]any{"b": []string{"x"}, "a": int64(1)},
		"'boom'":                 errors.New("boom"),
		"'1s'":                   time.Second,
		"None":                   nil,
	} {
		if got := Repr(Of(v)); got != want {
			t.Errorf("%#v is %s, want %s", v, got, want)
		}
	}
}

func TestTypeName(t *testing.T) {
	for want, v := range map[string]any{
		"NoneType": nil, "bool": true, "int": 1, "float": 1.0, "str": "", "list": []any{}, "dict": NewDict(),
		"Undefined": &Undefined{}, "datetime": time.Now(), "object": func() {},
	} {
		if got := TypeName(v); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

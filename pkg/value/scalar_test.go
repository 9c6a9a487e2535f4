package value

import (
	"errors"
	"math"
	"testing"

	"gopkg.in/yaml.v3"
)

func parse(t *testing.T, text string) (any, error) {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return FromYAML(&n)
}

// TestScalars compares with what PyYAML reads, but for the last lines.
func TestScalars(t *testing.T) {
	for text, want := range map[string]any{
		"08": "08", "09": "09", "0o17": "0o17", "1e5": "1e5", "1.5e3": "1.5e3", "1.5e+3": 1500.0, "1E5": "1E5",
		"1.5E+3": 1500.0,
		".5":     0.5, "5.": 5.0, "1_000": 1000, "0644": 420, "0x1F": 31, "0b11": 3, "~": nil, "null": nil, "NULL": nil, "": nil,
		"yes": true, "No": false, "y": "y", "n": "n", "on": true, "OFF": false, "True": true, "tRue": "tRue",
		".inf": math.Inf(1), "-.Inf": math.Inf(-1), "+1": 1, "-0": 0, "00": 0, "1.": 1.0, "1e+5": "1e+5", "1.0e5": "1.0e5",
		"0x": "0x", "0_1": 1, "1__0": 10, "_1": "_1", "+.5": "+.5", "-.5": "-.5", "1.5_0": 1.5, "0b": "0b", "+0644": 420,
		"-0x1F": -31, "1.2.3": "1.2.3", "0.0": 0.0, "0777_0": 4088, "0": 0, "1.10": 1.1, "v1.10": "v1.10",
		// Quotes and tags.
		"'5'": "5", `"yes"`: "yes", "!!str 5": "5", "!!int '5'": 5, "!!float 5": 5.0, "!!bool 'no'": false, "!!null x": nil,
		"!!binary aGk=": "hi", "!unsafe '{{ x }}'": "{{ x }}", "|\n  5": "5",
		// Not as PyYAML: times, dates and large integers stay text.
		"12:30:45": "12:30:45", "1:30": "1:30", "2001-01-01": "2001-01-01", "99999999999999999999": "99999999999999999999",
	} {
		got, err := parse(t, "a: "+text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		v, _ := got.(*Dict).Get("a")
		if TypeName(v) != TypeName(want) || !Equal(v, want) {
			t.Errorf("%s is %s %s, want %s %s", text, TypeName(v), Repr(v), TypeName(want), Repr(want))
		}
	}
	got, err := parse(t, ".NaN")
	if f, ok := got.(float64); err != nil || !ok || !math.IsNaN(f) {
		t.Errorf(".NaN is %v, %v", got, err)
	}
}

func TestFromYAML(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: [x, {c: null}]":               "{'a': 1, 'b': ['x', {'c': None}]}",
		"a: &x {k: 1}\nb: *x":                   "{'a': {'k': 1}, 'b': {'k': 1}}",
		"a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}": "{'a': {'k': 1, 'l': 2}, 'b': {'l': 3, 'k': 1}}",
		"x: {<<: [{a: 1}, {a: 2, b: 2}]}":       "{'x': {'a': 1, 'b': 2}}",
		"1: a\nyes: b\n1.5: c\n~: d":            "{1: 'a', True: 'b', 1.5: 'c', None: 'd'}",
		"":                                      "None",
		"[]":                                    "[]",
		"[08, 1e5, 0o17, 12:30:45, 1.30, 'it''s', \"\"]": `['08', '1e5', '0o17', '12:30:45', 1.3, "it's", '']`,
	} {
		got, err := parse(t, text)
		if err != nil || Repr(got) != want {
			t.Errorf("%q: %s, %v, want %s", text, Repr(got), err, want)
		}
	}
}

func TestFromYAMLErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\na: 2":                       `line 2, column 1: key "a" is already set in this mapping`,
		"[a]: b":                           "line 1, column 1: a list or mapping cannot be a key; a value that starts with {{ needs quotes",
		"a: {{ b }}":                       "line 1, column 5: a list or mapping cannot be a key; a value that starts with {{ needs quotes",
		"<<: 5":                            "line 1, column 5: << needs a mapping or a list of mappings",
		"a: !!int x":                       `line 1, column 4: "x" is not a valid int`,
		"a: !!float x":                     `line 1, column 4: "x" is not a valid float`,
		"a: !!bool maybe":                  `line 1, column 4: "maybe" is not a valid bool`,
		"a: !!binary '%'":                  `line 1, column 4: "%" is not a valid binary`,
		"a: &x [*x]":                       "nested too deep (more than 100 levels)",
		"a: &a [1,1]\nb: [*a, &b [*a,*b]]": "nested too deep (more than 100 levels)",
	} {
		_, err := parse(t, text)
		var ye *YAMLError
		if !errors.As(err, &ye) || (ye.Error() != want && ye.Msg != want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'i'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p +
			",*" + p + ",*" + p + ",*" + p + "]\n"
	}
	if _, err := parse(t, bomb); err == nil {
		t.Error("aliases that expand to a billion values are read")
	}
}

func FuzzFromYAML(f *testing.F) {
	for _, s := range []string{"a: 1", "[yes, 08, 1e5]", "a: &x {<<: *x}", "!!int 5", "{{ x }}", "? [a]\n: b", "a: |\n  x",
		"- - - 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var n yaml.Node
		if yaml.Unmarshal([]byte(text), &n) != nil {
			return
		}
		v, err := FromYAML(&n)
		if err != nil {
			return
		}
		if _, err := JSON(v, JSONOptions{SortKeys: true}); err != nil && !errors.Is(err, ErrTooDeep) {
			t.Errorf("%q cannot be written as JSON: %v", text, err)
		}
		if !Equal(v, Clone(v)) && !hasNaN(v) {
			t.Errorf("%q: its copy differs", text)
		}
	})
}

func hasNaN(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.IsNaN(v)
	case []any:
		for _, e := range v {
			if hasNaN(e) {
				return true
			}
		}
	case *Dict:
		for _, e := range v.All() {
			if hasNaN(e) {
				return true
			}
		}
	}
	return false
}

package argspec_test

import (
	"strings"
	"testing"

	"kubekey/pkg/argspec"
	"kubekey/pkg/value"
)

// TestTypes checks each type with valid and invalid values.
func TestTypes(t *testing.T) {
	dict := value.NewDict("a", 1)
	for kind, c := range map[string]struct{ good, bad []any }{
		"str":   {[]any{"a", 1, true, []any{1}, dict}, nil},
		"path":  {[]any{"~/a"}, nil},
		"raw":   {[]any{"a", 1, dict}, nil},
		"int":   {[]any{1, "2", " 3 ", true}, []any{"x", 1.5, "1.5", []any{}, dict}},
		"float": {[]any{1, 1.5, "2.5"}, []any{"x", []any{}}},
		"bool":  {[]any{true, "yes", "off", 1, 0.0}, []any{"perhaps", 2, []any{}}},
		"list":  {[]any{[]any{1}, "a,b", 5}, []any{dict}},
		"dict":  {[]any{dict, `{"a": 1}`, "a=1, b=2"}, []any{"a", "{", []any{1}, 5}},
		"json":  {[]any{"{}", dict, []any{}}, []any{5}},
		"bytes": {[]any{5, "10", "1.5K", "2MB", "3 megabytes", "7b"}, []any{"x", "2Mb", "2X", []any{}}},
		"bits":  {[]any{"2Mb", "10Mbits", "1K"}, []any{"2MB"}},
		"sting": {nil, []any{"a"}},
	} {
		entry := value.NewDict("options", value.NewDict("x", value.NewDict("type", kind)))
		for _, v := range c.good {
			if got := argspec.Validate(entry, value.NewDict("x", v)); len(got) > 0 {
				t.Errorf("%s refuses %s: %v", kind, value.Repr(v), got)
			}
		}
		for _, v := range c.bad {
			if got := argspec.Validate(entry, value.NewDict("x", v)); len(got) != 1 {
				t.Errorf("%s and %s: %v", kind, value.Repr(v), got)
			}
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	option := value.NewDict("choices", []any{"a"}, "no_log", true)
	got := argspec.Validate(value.NewDict("options", value.NewDict("x", option)), value.NewDict("x", "hidden"))
	if len(got) != 1 || strings.Contains(got[0], "hidden") {
		t.Errorf("%v", got)
	}
}

func TestArgumentsAreNotChanged(t *testing.T) {
	options := value.NewDict("x", value.NewDict("type", "int", "aliases", []any{"y"}), "z", value.NewDict("default", 1))
	args := value.NewDict("y", "5")
	if got := argspec.Validate(value.NewDict("options", options), args); len(got) > 0 || args.Len() != 1 {
		t.Errorf("%v, %s", got, value.Repr(args))
	}
}

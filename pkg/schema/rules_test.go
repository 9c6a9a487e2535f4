package schema_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

type inner struct {
	A string `kk:"a"`
	B string `kk:"b"`
}

func (*inner) Rules() schema.Rules { return schema.Rules{schema.AtMostOne("a", "b")} }

type ruled struct {
	State string   `kk:"state" default:"present" choices:"present,absent"`
	Src   string   `kk:"src,alias=from"`
	Size  *int     `kk:"size"`
	Names []string `kk:"names"`
	Items []inner  `kk:"items"`

	Key redact.Secret `kk:"key"`
}

func (*ruled) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("src").If("state", "present"),
		schema.Refuses("size").Unless("state", "present"),
		schema.Between("size", 1, 9),
		schema.Entries("names", 1, 2),
		schema.Looks("lower case", func(s string) bool { return s == strings.ToLower(s) }, "names").With("src", "size"),
		schema.Looks("a word", func(s string) bool { return s != "" && !strings.Contains(s, " ") }, "key"),
	}
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		args *value.Dict
		path string
		want string
	}{
		{dict("from", "x"), "", ""},
		{dict("from", ""), "", "state is present but all of the following are missing: src"},
		{dict("state", "absent"), "", ""},
		{dict("state", "absent", "size", 3), "size", "size is only for a task where state is present"},
		{dict("src", "x", "size", "0"), "size", "value of size must be 1 to 9, got 0"},
		{dict("src", "x", "names", []any{}), "names", "value of names must be a list of 1 to 2, got 0"},
		{dict("src", "x", "names", "a,B"), "names", `value of names must be lower case when src or size is given, got "B"`},
		{dict("src", "x", "items", []any{dict("a", 1), dict("a", 1, "b", 2)}), "items.b",
			"parameters are mutually exclusive: a|b found in items"},
		{dict("src", "x", "key", ""), "", ""},
		{dict("src", "x", "key", "a b"), "key", "value of key must be a word, got ********"},
		// and nothing about the rules that it may break
		{dict("src", []any{}), "src", "value of src must be a string, got a list"},
	} {
		err := schema.Decode(&ruled{}, c.args, &redact.Set{})
		var problems schema.Errors
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", value.Repr(c.args), err)
		case c.want != "" && (!errors.As(err, &problems) || len(problems) != 1 || problems[0].Msg != c.want ||
			problems[0].Path != c.path):
			t.Errorf("%s: %v, not %q of %q", value.Repr(c.args), err, c.want, c.path)
		}
	}
}

func TestRulesInTheManual(t *testing.T) {
	got, err := schema.DescribeRules(&ruled{})
	want := []string{
		"`src` must be given when `state` is present",
		"`size` cannot be used when `state` is not present",
		"`size` must be 1 to 9",
		"`names` must be a list of 1 to 2",
		"`names` must be lower case when `src` or `size` is given",
		"`key` must be a word",
		"At most one of `items.a`, `items.b`",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: %q", err, got)
	}
}

type typo struct {
	A string `kk:"a"`
}

func (*typo) Rules() schema.Rules { return schema.Rules{schema.Needs("b")} }

// forgetful has rules of its own, but lacks those of its embedded struct.
type forgetful struct{ inner }

func (*forgetful) Rules() schema.Rules { return nil }

func TestRulesThatCannotHold(t *testing.T) {
	for _, v := range []any{&typo{}, &forgetful{}} {
		if _, err := schema.PlanFor(v); err == nil {
			t.Errorf("%T has a plan", v)
		}
	}
}

func TestAddress(t *testing.T) {
	cases := []struct{ text, web, any string }{
		{"https://host/path", "", ""},
		{"HTTP://host", "", ""},
		{"http://[::1]:8080/", "", ""},
		{"http://u:p@host:65535/?q#f", "", ""},
		{"s3://bucket/x", "scheme is none of http, https", ""},
		{"file:///x", "scheme is none of", ""},
		{"file:/x", "scheme is none of", ""},
		{"host/path", "begin with a scheme", "begin with a scheme"},
		{"host:80", "begin with a scheme", "begin with a scheme"},
		{"https:host", "begin with a scheme", "begin with a scheme"},
		{"://host", "begin with a scheme", "begin with a scheme"},
		{"http://", "no host", "no host"},
		{"http://:80", "no host", "no host"},
		{"http://u@/", "no host", "no host"},
		{"http://h:", "", ""},
		{"http://h:0", "none from 1 to 65535", "none from 1 to 65535"},
		{"http://h:99999999999999999999", "none from 1 to 65535", "none from 1 to 65535"},
		{"http://h:a", "port is no number", "port is no number"},
		{"http://h h", "cannot be parsed", "cannot be parsed"},
		{"http://h\n", "cannot be parsed", "cannot be parsed"},
		{"http://u:hunter2 @h", "cannot be parsed", "cannot be parsed"},
	}
	for _, c := range cases {
		for rule, want := range map[string]string{"web": c.web, "any": c.any} {
			r := schema.Address("url")
			if rule == "web" {
				r = schema.Address("url", "http", "https")
			}
			err := r.Fits(c.text)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: got %v, want %q", rule, c.text, err, want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
		}
	}
}

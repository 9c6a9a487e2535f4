package template

import (
	"context"
	"errors"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func TestValue(t *testing.T) {
	scope := names(t, tagVars)
	scope["evil"] = "[1, 2]"
	scope["open"] = "["
	scope["omit"] = "__omit__"
	scope["yes"] = "True"
	for _, c := range []struct{ name, src, want string }{
		{"literal", "plain } text", "'plain } text'"},
		{"literal list", "[1, 2]", "'[1, 2]'"},
		{"pure int", "{{ n }}", "5"},
		{"pure list", "{{ nums }}", "[3, 1, 2]"},
		{"pure without blanks", "{{n}}", "5"},
		{"pure with signs", "{{- n -}}", "5"},
		{"pure none", "{{ none }}", "None"},
		{"pure text of a list", "{{ evil }}", "'[1, 2]'"},
		{"pure conditional without else", "{{ 1 if n > 9 }}", "None"},
		{"pure omit", "{{ u | default(omit) }}", "'__omit__'"},
		{"blank before", " {{ n }}", "' 5'"},
		{"blank behind", "{{ n }} ", "'5 '"},
		{"newline behind", "{{ n }}\n", "'5\\n'"},
		{"two", "{{ n }}{{ n }}", "'55'"},
		{"comment", "{# c #}a", "'a'"},
		{"only a comment", "{# c #}", "''"},
		{"text", "a {{ n }}", "'a 5'"},
		{"none in text", "a{{ no }}", "'a'"},

		{"own list", "[{{ n }}, 'b']", "[5, 'b']"},
		{"own dict", "{'a': {{ n }}, \"b\": {{ nums }}}", "{'a': 5, 'b': [3, 1, 2]}"},
		{"own JSON", `{"a": true, "b": null, "c": {{ n }}}`, "{'a': True, 'b': None, 'c': 5}"},
		{"own list by a loop", "{% for i in nums %}{% if loop.first %}[{% endif %}{{ i }}{% if loop.last %}]{% else %},{% endif %}{% endfor %}", "[3, 1, 2]"},
		{"own list with a newline", "[{{ n }}]\n", "[5]"},
		{"own list with a blank before", " [{{ n }}]", "' [5]'"},
		{"value behind tags", "{% set l = nums + [4] %}{{ l }}", "[3, 1, 2, 4]"},
		{"value in a branch", "{% if t %}{{ d }}{% else %}{}{% endif %}", "{'k': 'v', 'z': 1}"},
		{"own empty list in a branch", "{% if t %}[]{% else %}{{ d }}{% endif %}", "[]"},
		{"list and newline", "{{ nums }}\n", "[3, 1, 2]"},
		{"list and blank before", " {{ nums }}", "' [3, 1, 2]'"},
		{"own boolean by tags", "{% if t %}True{% else %}False{% endif %}", "True"},
		{"own boolean in lower case", "{% if t %}true{% endif %}", "'true'"},
		{"boolean behind tags", "{% set b = n == 5 %}{{ b }}", "True"},
		{"text that is no list", "[{{ x }}]", "'[hello]'"},
		{"text of two lists", "[1] and [{{ n }}]", "'[1] and [5]'"},
		{"string that looks like code", "[{{ \"lookup('env', 'HOME')\" }}]", "\"[lookup('env', 'HOME')]\""},
		{"tuple", "({{ n }}, 1)", "'(5, 1)'"},

		{"bracket from data", "{{ open }}{{ n }}]", "'[5]'"},
		{"list from data", "{{ evil }}{# #}", "'[1, 2]'"},
		{"list from data behind tags", "{% if t %}{{ evil }}{% endif %}", "'[1, 2]'"},
		{"list from data, in a set block", "{% set a %}[1]{% endset %}{{ a }}", "'[1]'"},
		{"boolean from data", "{% if t %}{{ yes }}{% endif %}", "'True'"},

		{"raw backslashes in output", `{{ 'a\tb\1' }}`, `'a\\tb\\1'`},
		{"raw backslashes in mixed output", `<{{ 'a\tb' }}>`, `'<a\\tb>'`},
		{"escapes in tags", `{% set a = 'b\n' %}<{{ a }}>`, `'<b\n>'`},
		{"regex", `{{ 'a:b' | regex_replace('^(.*):.*$', '\1') }}`, "'a'"},
		{"header", "#jinja2: variable_start_string: '[%', variable_end_string: '%]'\n[% n %]{{", "'5{{'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := renderValue(t, newEngine(), c.src, scope)
			if err != nil {
				t.Fatal(err)
			}
			if repr(got) != c.want {
				t.Errorf("%s\ngot  %s\nwant %s", c.src, repr(got), c.want)
			}
		})
	}
}

func TestTextOnly(t *testing.T) {
	e := newEngine(TextOnly())
	got, err := renderValue(t, e, "[{{ n }}]", expr.Names{"n": 1})
	if err != nil || got != "[1]" {
		t.Errorf("%s, %v", repr(got), err)
	}
	if e.Env() == nil {
		t.Error("the engine has no environment")
	}
}

func TestText(t *testing.T) {
	scope := names(t, tagVars)
	for src, want := range map[string]string{
		"plain": "plain", "{{ nums }}": "[3, 1, 2]", "{{ none }}": "", "{{ t }}": "True", "[{{ n }}]": "[5]",
	} {
		tpl, err := newEngine().String(src, source.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tpl.Text(context.Background(), scope); err != nil || got != want {
			t.Errorf("%s: %q, %v", src, got, err)
		}
		if tpl.IsLiteral() != (src == "plain") {
			t.Errorf("%s: IsLiteral is %v", src, tpl.IsLiteral())
		}
	}
}

func TestUndefinedInStrings(t *testing.T) {
	for _, src := range []string{"{{ nope }}", "a {{ nope }}", "{% if nope %}{% endif %}", "{{ n.nope }}"} {
		_, err := renderValue(t, newEngine(), src, expr.Names{"n": value.NewDict()})
		var u *value.Undefined
		if !errors.As(err, &u) {
			t.Errorf("%s: %v holds no *value.Undefined", src, err)
		}
		if d := diagnosticOf(err); d == nil || d.Pos.Line != 1 || d.Pos.File.Name != "site.yml" {
			t.Errorf("%s: diagnostic %v", src, d)
		}
	}
}

func TestStringErrorsNeedNoPosition(t *testing.T) {
	tpl, err := newEngine().String("a\n{{ nope }}", source.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = tpl.Value(context.Background(), expr.Names{})
	wantError(t, err, "'nope' is undefined")
	_, err = newEngine().String("{{ (x }}", source.Pos{})
	wantError(t, err, "unexpected '}'")
}

func TestSeveralProblems(t *testing.T) {
	_, err := renderText(t, "{{ a | nofilter }}\n{% do b | nofilter2 %}\n{% for x y %}{% endfor %}", expr.Names{})
	wantError(t, err, "main.j2:1:", "main.j2:2:", "main.j2:3:", "nofilter2", "`in` is missing")
}

func TestSameStringAtTwoPlaces(t *testing.T) {
	e := newEngine()
	file := source.NewFile("site.yml", []byte("a: '{{ nope }}'\nb: '{{ nope }}'\n"))
	for _, line := range []int{1, 2} {
		tpl, err := e.String("{{ nope }}", source.Pos{File: file, Line: line, Col: 5})
		if err != nil {
			t.Fatal(err)
		}
		_, err = tpl.Value(context.Background(), expr.Names{})
		if d := diagnosticOf(err); d == nil || d.Pos.Line != line {
			t.Errorf("line %d: %v", line, err)
		}
	}
}

func TestStringCache(t *testing.T) {
	e := newEngine()
	pos := at("{{ n }}")
	a, _ := e.String("{{ n }}", pos)
	b, _ := e.String("{{ n }}", pos)
	if a != b {
		t.Error("a string was compiled twice")
	}
	c := newCache[int, int](10)
	for i := range 1000 {
		c.put(i, i)
		if v, ok := c.get(0); !ok || v != 0 {
			t.Fatalf("entry 0 is gone after %d others, though it is in use", i)
		}
	}
	if n := len(c.young) + len(c.old); n > 20 {
		t.Errorf("%d entries are kept", n)
	}
	if _, ok := c.get(500); ok {
		t.Error("an entry that nobody asked for is still there")
	}
}

package template

import (
	"strings"
	"testing"
)

const tagVars = `{
	"x": "hello", "n": 5, "t": true, "no": null, "nums": [3, 1, 2], "list": ["a", "b", "c"],
	"d": {"k": "v", "z": 1}, "pairs": [["a", 1], ["b", 2]], "nested": [["a", ["b", "c"]]],
	"tree": [{"name": "r", "kids": [{"name": "s", "kids": [{"name": "u", "kids": []}]}]}, {"name": "q", "kids": []}],
	"html": "<a href=\"x\">&'</a>", "many": "a\nb"
}`

func TestTags(t *testing.T) {
	scope := names(t, tagVars)
	for _, c := range []struct{ name, src, want string }{
		{"elif", "{% if n < 3 %}a{% elif n < 9 %}b{% else %}c{% endif %}", "b"},
		{"else", "{% if n < 3 %}a{% elif n > 9 %}b{% else %}c{% endif %}", "c"},
		{"no branch", "{% if n < 3 %}a{% endif %}.", "."},
		{"undefined is false when defined is asked", "{% if u is defined and u.v %}a{% endif %}.", "."},
		{"none prints nothing", "[{{ no }}]", "[]"},
		{"inline if without else", "[{{ 'a' if n > 9 }}]", "[]"},
		{"html is not escaped", "{{ html }}", `<a href="x">&'</a>`},

		{"unpack", "{% for a, b in pairs %}{{ a }}{{ b }}{% endfor %}", "a1b2"},
		{"unpack in brackets", "{% for (a, b) in pairs %}{{ a }}{{ b }}{% endfor %}", "a1b2"},
		{"unpack nested", "{% for a, (b, c) in nested %}{{ a }}{{ b }}{{ c }}{% endfor %}", "abc"},
		{"for over a dict", "{% for k in d %}{{ k }}{% endfor %}", "kz"},
		{"for over a string", "{% for c in 'äb' %}{{ c }}.{% endfor %}", "ä.b."},
		{"for over a tuple", "{% for c in 1, 2 %}{{ c }}{% endfor %}", "12"},
		{"for with inline if", "{% for i in nums if i > 1 %}{{ loop.index }}{{ loop.length }}{{ i }} {% endfor %}",
			"123 222 "},
		{"for if else", "{% for i in nums if i > 9 %}{{ i }}{% else %}none{% endfor %}", "none"},
		{"set in the else of a for", "{% for i in [] %}{% else %}{% set a = 1 %}{{ a }}{% endfor %}{{ a is defined }}",
			"1False"},
		{"for over a conditional", "{% for i in (nums if t else []) %}{{ i }}{% endfor %}", "312"},
		{"for over a variable called recursive", "{% for i in recursive|default([7]) %}{{ i }}{% endfor %}", "7"},
		{"loop numbers", "{% for i in nums %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }} {% endfor %}", "1032 2121 3210 "},
		{"loop ends", "{% for i in nums %}{{ loop.first }}{{ loop.last }} {% endfor %}", "TrueFalse FalseFalse FalseTrue "},
		{"loop neighbours", "{% for i in nums %}{{ loop.previtem|default('-') }}{{ loop.nextitem|default('-') }} {% endfor %}", "-1 32 1- "},
		{"loop cycle", "{% for i in nums %}{{ loop.cycle('odd', 'even') }} {% endfor %}", "odd even odd "},
		{"loop changed", "{% for i in [1,1,2,2,1] %}{% if loop.changed(i) %}{{ i }}{% endif %}{% endfor %}", "121"},
		{"loop of the outer loop", "{% for i in nums %}{% set o = loop %}{% for j in list %}{{ o.index }}{% endfor %}{% endfor %}", "111222333"},
		{"recursive loop", "{% for e in tree recursive %}{{ e.name }}{{ loop.depth }}{{ loop.depth0 }}({{ loop(e.kids) }}){% endfor %}", "r10(s21(u32()))q10()"},
		{"break", "{% for i in nums %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}.", "3."},
		{"continue", "{% for i in nums %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}.", "32."},
		{"break the inner loop only", "{% for i in nums %}{% for j in list %}{% break %}{% endfor %}{{ i }}{% endfor %}",
			"312"},
		{"break out of with", "{% for i in nums %}{% with a = i %}{{ a }}{% break %}{% endwith %}{% endfor %}{{ a is defined }}", "3False"},
		{"loop variable ends", "{% for i in nums %}{% endfor %}{{ i is defined }}", "False"},
		{"set does not leave a loop", "{% set a = 1 %}{% for i in nums %}{% set a = i %}{% endfor %}{{ a }}", "1"},
		{"set starts again in each turn", "{% set a = 1 %}{% for i in nums %}{% set a = a + 1 %}{{ a }}{% endfor %}", "222"},
		{"append in a loop stays", "{% set l = [] %}{% for i in nums %}{% do l.append(i) %}{% endfor %}{{ l }}", "[3, 1, 2]"},
		{"append with set", "{% set l = [] %}{% for i in nums %}{% set _ = l.append(i) %}{% endfor %}{{ l }}", "[3, 1, 2]"},

		{"set in an if", "{% if t %}{% set a = 1 %}{% endif %}{{ a }}", "1"},
		{"set several", "{% set a, b = 'x', 'y' %}{{ b }}{{ a }}", "yx"},
		{"set a tuple", "{% set a = 1, 2 %}{{ a[1] }}", "2"},
		{"set an undefined", "{% set a = u %}{{ a | default('d') }}", "d"},
		{"set with comparisons", "{% set a = n == 5 %}{{ a }}{% set a = n >= 6 %}{{ a }}", "TrueFalse"},
		{"set with a keyword argument", "{% set a = dict(b=1) %}{{ a.b }}", "1"},
		{"set block", "{% set a %}x{{ n }}{% endset %}{{ a }}", "x5"},
		{"set block with filters", "{% set a | upper | replace('X', 'z') %}x{{ n }}{% endset %}{{ a }}", "z5"},
		{"set block keeps its sets", "{% set a %}{% set b = 1 %}{% endset %}{{ b is defined }}", "False"},
		{"namespace", "{% set ns = namespace(a=1) %}{% for i in nums %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}", "7"},
		{"namespace block", "{% set ns = namespace() %}{% set ns.a %}y{% endset %}{{ ns.a }}", "y"},

		{"macro", "{% macro m(a, b=a) %}{{ a }}{{ b }};{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=3, a=4) }}", "11;12;43;"},
		{"macro varargs", "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}",
			"1[2, 3]{'k': 4}"},
		{"macro without an argument", "{% macro m(a) %}{{ a | default('d') }}{% endmacro %}{{ m() }}", "d"},
		{"macro attributes", "{% macro m(a, b) %}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_varargs }}{{ m.catch_kwargs }}{{ m.caller }}", "m['a', 'b']FalseFalseFalse"},
		{"macro sees the top level", "{% macro m() %}{{ a }}{% endmacro %}{% set a = 2 %}{{ m() }}", "2"},
		{"macro does not see its caller", "{% macro m() %}{{ i is defined }}{% endmacro %}{% for i in [1] %}{{ m() }}{% endfor %}", "False"},
		{"macro calls itself", "{% macro m(k) %}{{ k }}{% if k %}{{ m(k - 1) }}{% endif %}{% endmacro %}{{ m(3) }}", "3210"},
		{"macro in an expression", "{% macro m() %}ab{% endmacro %}{{ m() | upper ~ 'c' }}", "ABc"},
		{"call", "{% macro m(a) %}<{{ caller() }}{{ a }}>{% endmacro %}{% call m(1) %}in{{ n }}{% endcall %}", "<in51>"},
		{"call with arguments", "{% macro m() %}{% for i in nums %}{{ caller(i, loop.index) }}{% endfor %}{% endmacro %}{% call(v, k='z') m() %}{{ k }}={{ v }};{% endcall %}", "1=3;2=1;3=2;"},
		{"call inside call", "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}a{% call m() %}b{% endcall %}{% endcall %}", "<a<b>>"},
		{"call with a call as argument", "{% macro a() %}A{% endmacro %}{% macro m(v) %}{{ v }}{{ caller() }}{% endmacro %}{% call m(a()) %}b{% endcall %}", "Ab"},
		{"caller is optional", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}",
			"FalseTrue"},

		{"filter block", "{% filter upper | replace('H', 'J') %}{{ x }}{% endfilter %}", "JELLO"},
		{"filter block with arguments", "{% filter indent(width=n) %}{{ many }}{% endfilter %}", "a\n     b"},
		{"with", "{% with a = 1, b = x %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}", "1helloFalse"},
		{"with sees outer names", "{% with n = n + 1, m = n %}{{ n }}{{ m }}{% endwith %}{{ n }}", "655"},
		{"with nothing", "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a is defined }}", "1False"},
		{"do", "{% do 1 %}{% set e = {} %}{% do e.update({'a': 1}) %}{{ e }}", "{'a': 1}"},
		{"block", "a{% block b %}c{{ x }}{% endblock b %}", "achello"},
		{"self", "{% block b %}c{% endblock %}{{ self.b() }}", "cc"},
		{"block does not see a loop", "{% for i in [1] %}{% block b %}{{ i is defined }}{% endblock %}{% endfor %}", "False"},
		{"scoped block", "{% for i in [1] %}{% block b scoped %}{{ i }}{% endblock %}{% endfor %}", "1"},
		{"raw", "{% raw %}{{ x }}{% endraw %}", "{{ x }}"},
		{"pongo2's own markup is text", "{% raw %}{% verbatim %}{# x #}{{ x|safe }}{% endraw %}{% if t %}{ {%- endif %}",
			"{% verbatim %}{# x #}{{ x|safe }}{"},
		{"brace before a tag", "{ {%- if t %}1{% endif %}}", "{1}"},
		{"windows line ends", "a\r\n{% if t %}\r\nb\r\n{% endif %}\r\n", "a\nb\n"},
		{"eaten newlines come back", "{% if t %}\na\n{% endif %}\n\n", "a\n\n"},
		{"newline of a value is enough", "{{ 'a\n' }}\n", "a\n"},
		{"escapes of a file", `{{ 'a\tb' }}`, "a\tb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := renderText(t, c.src, scope)
			if err != nil {
				t.Fatalf("%s\n%v", c.src, err)
			}
			if got != c.want {
				t.Errorf("%s\ngot  %q\nwant %q", c.src, got, c.want)
			}
		})
	}
}

// TestTagErrors lists the positions and the messages of errors in main.j2.
func TestTagErrors(t *testing.T) {
	scope := names(t, tagVars)
	for _, c := range []struct{ src, at, want string }{
		{"a\n  {{ undefd }}", "2:6", "'undefd' is undefined"},
		{"{{ x }}\n{{ d.k.q }}", "2:4", "has no attribute 'q'"},
		{"{{ n / 0 }}", "1:", "division"},
		{"{{ x | nofilter }}", "1:", "nofilter"},
		{"a\n{% set a | nofilter %}{% endset %}", "2:", "nofilter"},
		{"a\n{% filter nofilter %}{% endfilter %}", "2:11", "nofilter"},
		{"{% if u %}{% endif %}", "1:7", "'u' is undefined"},
		{"{% if t %}{% elif u.v == 1 %}{% endif %}{% for i in u %}{% endfor %}", "1:", "'u' is undefined"},
		{"{% for i in n %}{% endfor %}", "1:1", "not iterable"},
		{"{% for a, b in nums %}{% endfor %}", "1:1", ""},
		{"{% for a, b in [[1]] %}{% endfor %}", "1:1", "not enough values to unpack (expected 2, got 1)"},
		{"{% for a, b in [[1, 2, 3]] %}{% endfor %}", "1:1", "too many values to unpack (expected 2, got 3)"},
		{"{% for a b %}{% endfor %}", "1:8", "`in` is missing"},
		{"{% for in x %}{% endfor %}", "1:1", "a name to assign to is missing"},
		{"{% for i in %}{% endfor %}", "1:1", "an expression is missing"},
		{"{% for 1 in x %}{% endfor %}", "1:8", `"1" is not a name to assign to`},
		{"{% set true = 1 %}", "1:8", `"true" cannot be assigned to`},
		{"{% set a = %}", "1:1", "an expression is missing"},
		{"{% set d.k = 1 %}", "1:1", "'d' is no namespace"},
		{"{% set zz.k = 1 %}", "1:1", "'zz' is undefined"},
		{"{% if %}{% endif %}", "1:1", "an expression is missing"},
		{"{% do %}", "1:1", "an expression is missing"},
		{"{% macro m %}{% endmacro %}", "1:10", "a macro needs a name and parameters"},
		{"{% macro m(1) %}{% endmacro %}", "1:12", `"1" is not a parameter name`},
		{"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "1:", "takes at most 1 arguments, not 2"},
		{"{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "1:", "takes no argument 'b'"},
		{"{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}", "1:", "two values for argument 'a'"},
		{"{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}", "1:", "takes no argument 'caller'"},
		{"{% call x %}{% endcall %}", "1:9", "needs a call"},
		{"{% macro m() %}{% endmacro %}\n{% macro o() %}\n{{ u }}{% endmacro %}{{ o() }}", "3:4", "'u' is undefined"},
		{"{% filter %}{% endfilter %}", "1:1", "the name of a filter is missing"},
		{"{% with a %}{% endwith %}", "1:9", "`=` is missing"},
		{"{% import 'x' %}", "1:11", "`as` is missing"},
		{"{% from 'x' %}", "1:9", "`import` is missing"},
		{"{% from 'x' import %}", "1:", "a name to import is missing"},
		{"{% block %}{% endblock %}", "1:1", "the name of a block is missing"},
		{"{% block a %}{% endblock %}{% block a %}{% endblock %}", "1:28", `block "a" is defined twice`},
		{"{% block a %}{{ super() }}{% endblock %}", "1:", "no parent block"},
		{"{% block a required %}{% endblock %}", "1:1", `block "a" is required`},
		{"{% for i in nums %}{% break x %}{% endfor %}", "1:29", `unexpected "x" in {% break %}`},
		{"{% for i in nums %}{{ loop(nums) }}{% endfor %}", "1:", "not recursive"},
		{"{% for i in nums %}{{ loop.nope }}{% endfor %}", "1:", "nope"},
		{"{% for i in nums %}{{ loop.cycle() }}{% endfor %}", "1:", "needs items"},
		{"{% include 'none.j2' %}", "1:1", `template "none.j2" not found`},
		{"{% include '/etc/passwd' %}", "1:1", "must be relative"},
		{"{% include 'a/../../b' %}", "1:1", "without '..'"},
		{"{% include n %}", "1:1", "must be a string"},
		{"{% include u %}", "1:12", "'u' is undefined"},
		{"{% ssi '/etc/passwd' %}", "1:1", "there is no tag"},
		{"{{ x", "1:1", "not closed"},
	} {
		_, err := renderText(t, c.src, scope)
		if err == nil {
			t.Errorf("%s\nno error, want %q", c.src, c.want)
			continue
		}
		d := diagnosticOf(err)
		if d == nil {
			t.Errorf("%s\n%v holds no diagnostic", c.src, err)
			continue
		}
		if !strings.HasSuffix(d.Pos.File.Name, "main.j2") || !strings.Contains(d.Pos.String(), "main.j2:"+c.at) {
			t.Errorf("%s\nat %s, want %s (%v)", c.src, d.Pos, c.at, err)
		}
		if !strings.Contains(d.Summary, c.want) {
			t.Errorf("%s\n%s\nwant %q", c.src, d.Summary, c.want)
		}
	}
}

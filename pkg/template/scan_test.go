package template

import (
	"fmt"
	"strings"
	"testing"

	"kubekey/pkg/source"
)

// show writes segments as T"text" O"expression" tag"arguments".
func show(segs []segment) string {
	var parts []string
	for _, s := range segs {
		name := s.name
		switch s.kind {
		case segText:
			name = "T"
		case segOutput:
			name = "O"
		}
		parts = append(parts, fmt.Sprintf("%s%q", name, s.text))
	}
	return strings.Join(parts, " ")
}

func TestScan(t *testing.T) {
	trim := FileOptions{}.syntax()
	lstrip := FileOptions{LStripBlocks: true}.syntax()
	plain := FileOptions{NoTrimBlocks: true}.syntax()
	custom := FileOptions{BlockStart: "<%", BlockEnd: "%>", VariableStart: "[[", VarEnd: "]]", CommentStart: "<#",
		CommentEnd: "#>"}.syntax()
	windows := FileOptions{Newline: "\r\n"}.syntax()
	for _, c := range []struct {
		name string
		syn  syntax
		src  string
		want string
	}{
		{"text", trim, "a\nb", `T"a\nb"`},
		{"output", trim, "a{{ x }}b", `T"a" O"x" T"b"`},
		{"newline after output stays", trim, "{{ x }}\nb", `O"x" T"\nb"`},
		{"newline after tag goes", trim, "{% if x %}\n\nb", `if"x" T"\nb"`},
		{"newline after tag stays without trim", plain, "{% if x %}\nb", `if"x" T"\nb"`},
		{"plus keeps the newline", trim, "{% if x +%}\nb", `if"x" T"\nb"`},
		{"minus strips all blanks behind", trim, "{% if x -%} \n\t b", `if"x" T"b"`},
		{"minus strips all blanks before", trim, "a \n {%- if x %}", `T"a" if"x"`},
		{"minus on output", trim, "a {{- x -}} b", `T"a" O"x" T"b"`},
		{"plus before output", trim, "a {{+ x }}", `T"a " O"x"`},
		{"lstrip", lstrip, "a\n  {% if x %}b", `T"a\n" if"x" T"b"`},
		{"lstrip at the start", lstrip, "  {% if x %}b", `if"x" T"b"`},
		{"lstrip not after text", lstrip, "a  {% if x %}b", `T"a  " if"x" T"b"`},
		{"lstrip not for output", lstrip, "a\n  {{ x }}", `T"a\n  " O"x"`},
		{"lstrip behind a trimmed line", lstrip, "{% if x %}\n  {% if y %}b", `if"x" if"y" T"b"`},
		{"lstrip not behind a tag on the line", lstrip, "{% if x %}  {% if y %}b", `if"x" T"  " if"y" T"b"`},
		{"plus keeps indentation", lstrip, "a\n  {%+ if x %}b", `T"a\n  " if"x" T"b"`},
		{"lstrip comment", lstrip, "a\n  {# c #}\nb", `T"a\n" T"b"`},
		{"comment", trim, "a{# {{ x }} ' #}b", `T"a" T"b"`},
		{"comment takes its newline", trim, "a\n{# c #}\nb", `T"a\n" T"b"`},
		{"comment with signs", trim, "a {#- c -#} b", `T"a" T"b"`},
		{"comment plus", trim, "{# c +#}\nb", `T"\nb"`},
		{"raw", trim, "{% raw %}{{ x }}{% if %}{# #}{% endraw %}b", `T"{{ x }}{% if %}{# #}" T"b"`},
		{"raw keeps its first newline", trim, "{% raw %}\na\n{% endraw %}\nb", `T"\na\n" T"b"`},
		{"raw with signs", trim, "a {%- raw -%} {{ {%- endraw -%} b", `T"a" T"{{" T"b"`},
		{"raw with lstrip", lstrip, "{% raw %}\n  {% endraw %}b", `T"\n" T"b"`},
		{"raw is a whole word", trim, "{% rawer %}", `rawer""`},
		{"delimiters in strings", trim, `{{ '}}' ~ "%}" }}{% set a = '%}' %}`, `O"'}}' ~ \"%}\"" set"a = '%}'"`},
		{"quotes in strings", trim, `{{ 'it\'s }}' }}`, `O"'it\\'s }}'"`},
		{"brackets hide delimiters", trim, "{{ {'a': {'b': 1}} }}", `O"{'a': {'b': 1}}"`},
		{"brackets without blanks", trim, "{{{'a':{}}}}", `O"{'a':{}}"`},
		{"many lines", trim, "{{ x\n  | upper }}", `O"x\n  | upper"`},
		{"tag without blanks", trim, "{%for x in y%}", `for"x in y"`},
		{"brace before a tag", trim, "{{% if x %}", ""},
		{"brace before a tag, apart", trim, "{ {% if x %}", `T"{ " if"x"`},
		{"custom delimiters", custom, "{{ a }}[[ x[0] ]]<% if y %><# c #>b", `T"{{ a }}" O"x[0]" if"y" T"b"`},
		{"minus in an expression", trim, "{{ a -1 }}", `O"a -1"`},
		{"newline sequence", windows, "a\nb{{ x }}\n", `T"a\r\nb" O"x" T"\r\n"`},
		{"no markup", trim, "{ % } # }} %}", `T"{ % } # }} %}"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			segs, err := scan(c.src, 0, &c.syn)
			if c.want == "" {
				if err == nil {
					t.Fatalf("scanned to %s, want an error", show(segs))
				}
				return
			}
			if err != nil {
				t.Fatalf("error at %d: %s", err.off, err.msg)
			}
			if got := show(segs); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestScanErrors(t *testing.T) {
	for _, c := range []struct {
		src  string
		off  int
		want string
	}{
		{"a {{ x", 2, "this {{ is not closed"},
		{"a {% if", 2, "this {% is not closed"},
		{"a {# c", 2, "this comment is not closed"},
		{"{% raw %}{{ x }}", 0, "this raw block is not closed"},
		{"{{ 'x }}", 3, "this string is not closed"},
		{"{{ (x }}", 6, "unexpected '}'"},
		{"{{ (x ", 3, "this '(' is not closed"},
		{"{{ x) }}", 4, "unexpected ')'"},
		{"{{ [x) }}", 5, "unexpected ')'"},
		{"{{ }}", 0, "an expression is missing here"},
		{"ab{% %}", 2, "the name of a tag is missing here"},
		{"{% 1 %}", 0, "the name of a tag is missing here"},
	} {
		syn := FileOptions{}.syntax()
		_, err := scan(c.src, 0, &syn)
		if err == nil {
			t.Errorf("%q: no error, want %q", c.src, c.want)
			continue
		}
		if err.msg != c.want || err.off != c.off {
			t.Errorf("%q: %q at %d, want %q at %d", c.src, err.msg, err.off, c.want, c.off)
		}
	}
}

func TestSkeletonErrors(t *testing.T) {
	rules := newTagRules()
	for _, c := range []struct{ src, want, help string }{
		{"{% if x %}", "this {% if %} is not closed", "add {% endif %}"},
		{"{% endif %}", "unexpected {% endif %}: no block is open here", ""},
		{"{% else %}", "unexpected {% else %}: no block is open here", ""},
		{"{% if x %}{% endfor %}", "unexpected {% endfor %} in {% if %}", "the block at f:1:1 ends with {% endif %}"},
		{"{% if x %}{% else %}{% else %}{% endif %}", "unexpected {% else %} in {% if %}",
			"the block at f:1:1 ends with {% endif %}"},
		{"{% if x %}{% else %}{% elif y %}{% endif %}", "unexpected {% elif %} in {% if %}",
			"the block at f:1:1 ends with {% endif %}"},
		{"{% for x in y %}{% elif y %}{% endfor %}", "unexpected {% elif %} in {% for %}",
			"the block at f:1:1 ends with {% endfor %}"},
		{"{% fi x %}", `there is no tag "fi"`, `did you mean "if"?`},
		{"{% autoescape true %}", `there is no tag "autoescape"`, ""},
		{"{% ssi '/etc/passwd' %}", `there is no tag "ssi"`, ""},
		{"{% kk_text 0 %}", `there is no tag "kk_text"`, ""},
		{"{% endraw %}", "unexpected {% endraw %}: no block is open here", ""},
		{"{% break %}", "{% break %} stands outside a for loop", ""},
		{"{% for x in y %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}",
			"{% continue %} stands outside a for loop", ""},
		{"{% for x in y %}{% else %}{% break %}{% endfor %}", "{% break %} stands outside a for loop", ""},
		{"{% if x %}{% endif x %}", `unexpected "x" in {% endif %}`, ""},
		{"{% block a %}{% endblock b %}", `unexpected "b" in {% endblock %}`, ""},
		{"{% if x %}{% else y %}{% endif %}", `unexpected "y" in {% else %}`, ""},
		{strings.Repeat("{% if x %}", maxBlocks+1), "blocks nest deeper than 100", ""},
	} {
		u := &unit{syn: FileOptions{}.syntax()}
		o, segs, err := u.scan(c.src, source.Pos{File: source.NewFile("f", []byte(c.src)), Line: 1, Col: 1})
		if err != nil {
			t.Errorf("%q: scan: %v", c.src, err)
			continue
		}
		_, d := skeleton(segs, o, rules)
		if d == nil {
			t.Errorf("%q: no error, want %q", c.src, c.want)
			continue
		}
		if d.Summary != c.want || c.help != "" && d.Help != c.help {
			t.Errorf("%.40q: %q (%s)\nwant %q (%s)", c.src, d.Summary, d.Help, c.want, c.help)
		}
	}
}

func TestHeader(t *testing.T) {
	src := "#jinja2: trim_blocks: False, lstrip_blocks: True, variable_start_string: '[%', variable_end_string: '%]'\n  {% if x %}\n[% y %]{{ z }}\n"
	u := &unit{syn: FileOptions{}.syntax()}
	_, segs, err := u.scan(src, source.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(segs), `if"x" T"\n" O"y" T"{{ z }}"`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for text, want := range map[string]bool{`"true"`: true, `'False'`: true, `""`: false, "1": true, "0": false,
		"None": false} {
		u := &unit{syn: FileOptions{}.syntax()}
		if _, _, err := u.scan("#jinja2: lstrip_blocks: "+text+"\n", source.Pos{}); err != nil || u.syn.lstrip != want {
			t.Errorf("lstrip_blocks %s: %v, %v", text, u.syn.lstrip, err)
		}
	}
	for _, c := range []struct{ src, want string }{
		{"#jinja2: trim_block: True\n", `"trim_block" is no setting of a #jinja2: line (did you mean "trim_blocks"?)`},
		{"#jinja2: trim_blocks: maybe\n", `trim_blocks is "maybe", but must be True or False`},
		{"#jinja2: variable_start_string: [%\n", "must be a quoted string"},
		{"#jinja2: block_start_string: '{{'\n", "are not all different"},
		{"#jinja2: newline_sequence: 'x'\n", "newline sequence"},
	} {
		u := &unit{syn: FileOptions{}.syntax()}
		if _, _, err := u.scan(c.src, source.Pos{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.src, err, c.want)
		}
	}
}

func TestOriginInYAML(t *testing.T) {
	file := source.NewFile("p.yml", []byte("- a: |\n    one\n    two {{ x }}\n- b: \"q\"\n"))
	o := newOrigin("one\ntwo {{ x }}\n", source.Pos{File: file, Line: 2, Col: 5})
	if got := o.pos(8).String(); got != "p.yml:3:9" {
		t.Errorf("second line of a block scalar: %s", got)
	}
	if got := o.pos(1).String(); got != "p.yml:2:6" {
		t.Errorf("first line: %s", got)
	}
	folded := newOrigin("other\nlines", source.Pos{File: file, Line: 2, Col: 5})
	if got := folded.pos(8).String(); got != "p.yml:2:5" {
		t.Errorf("a line that the file does not have: %s", got)
	}
}

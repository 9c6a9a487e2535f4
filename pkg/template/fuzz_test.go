package template

import (
	"context"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
)

// awkward are sources that are difficult for scanners of templates.
func awkward() []string {
	return []string{
		"", "{", "{{", "}}", "{%", "{#", "{{}}", "{%%}", "{##}", "{{-", "{%-", "-}}", "{{ - }}", "{%- -%}", "{#-#}", "{#--#}",
		"{% raw", "{% raw %}", "{% raw %}{% endraw", "{%raw%}{%endraw%}", "{%- raw -%}{%- endraw -%}", "{%+ raw +%}",
		"{{ '", "{{ \"\\", "{{ '\\' }}", "{{ ( }}", "{{ ) }}", "{{ {}}}", "{{ {'a': {}}}}", "{{ [[]] }}",
		"#jinja2:", "#jinja2: trim_blocks: False\n", "#jinja2: block_start_string: '{{'\n",
		"#jinja2: newline_sequence: '\r\n'\na\n",
		"{% for a in b %}{% else %}{% endfor %}",
		"{% for a, (b, c) in [[1, [2, 3]]] if a recursive %}{{ loop(a) }}{% endfor %}",
		"{% set a, b.c = 1, 2 %}", "{% set (a) = 1 %}", "{% set a | upper %}x{% endset %}",
		"{% set ns = namespace() %}{% set ns.a = 1 %}",
		"{% macro m(a, b=1, *c) %}{% endmacro %}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"{% call(a) m() %}{% endcall %}", "{% call ( %}{% endcall %}",
		"{% block a %}{{ self.a() }}{% endblock %}", "{% include 'x' ignore missing without context %}",
		"{% from 'x' import a as b, c with context %}",
		"{% import 'x' as y %}", "{% extends 'x' %}", "{% with a = 1, b %}{% endwith %}", "{% filter upper %}{% endfilter %}",
		"{% filter | %}{% endfilter %}",
		"{% do 1 %}", "{% break %}", "{% if a %}{% elif %}{% else %}{% endif %}", "é{{ 'é' }}{%é%}", "\xff{{ \xff }}",
		"a\r\nb\r{{ 1 }}\r\n",
		"{% verbatim %}{% endverbatim %}", "{% kk_text 0 %}", "{{ kk }}", "[{{ 1 }}]", "{'a': {{ 1 }}}",
	}
}

func seed(f *testing.F) {
	for _, src := range awkward() {
		f.Add(src)
	}
	for _, c := range readCorpus(f).Cases {
		src := c.Src
		if c.Kind == "expression" {
			src = "{{ " + src + " }}"
		}
		f.Add(src)
	}
}

// FuzzScan checks that scanning never panics, and that segments are in order and inside of the source.
func FuzzScan(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, src string) {
		for _, o := range []FileOptions{{}, {LStripBlocks: true, NoTrimBlocks: true},
			{VariableStart: "[[", VarEnd: "]]", BlockStart: "<%", BlockEnd: "%>"}} {
			u := &unit{syn: o.syntax()}
			org, segs, err := u.scan(src, source.Pos{File: source.NewFile("f", []byte(src)), Line: 1, Col: 1})
			if err != nil {
				if d := diagnosticOf(err); d == nil || d.Pos.Line < 1 || d.Summary == "" {
					t.Fatalf("error without a place: %v", err)
				}
				continue
			}
			last := 0
			for _, s := range segs {
				if s.at < last || s.off+len(s.text) > len(org.src) && s.kind != segText || s.kind != segText &&
					org.src[s.off:s.off+len(s.text)] != s.text {
					t.Fatalf("segment %q at %d (text at %d) behind %d", s.text, s.at, s.off, last)
				}
				last = s.at
			}
			skeleton(segs, org, newTagRules())
		}
	})
}

// FuzzRender checks that compiling and rendering finish without a panic, an internal error or a hang, and that
// errors have a position.
func FuzzRender(f *testing.F) {
	seed(f)
	engine := newEngine()
	engine.maxOutput = 1 << 20
	vars := names(f, string(readCorpus(f).Vars))
	f.Fuzz(func(t *testing.T, src string) {
		if strings.Contains(src, "lookup") || strings.Contains(src, "query") || strings.Contains(src, "q(") {
			t.Skip("lookups reach outside: they run commands and write files")
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		scope := expr.Names{}
		for k, v := range vars {
			scope[k] = v
		}
		for _, lit := range []expr.Literals{expr.Raw, expr.Escaped} {
			tpl, err := engine.compileString(src, at(src), FileOptions{}.syntax(), lit)
			if err == nil {
				_, err = tpl.Value(ctx, scope)
			}
			if err == nil {
				continue
			}
			if strings.Contains(err.Error(), "internal error") {
				t.Fatal(err)
			}
			if d := diagnosticOf(err); d == nil || d.Pos.Line < 1 {
				t.Fatalf("error without a place: %v", err)
			}
		}
	})
}

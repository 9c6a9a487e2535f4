package template

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/source"
)

func TestFiles(t *testing.T) {
	scope := names(t, tagVars)
	type files = map[string]string
	for _, c := range []struct {
		name  string
		files files
		want  string
	}{
		{"include sees locals", files{"main.j2": "{% for i in nums %}{% include 'a.j2' %}{% endfor %}",
			"a.j2": "{{ i }}{{ loop.index }},"}, "31,12,23,"},
		{"include loses one newline", files{"main.j2": "{% include 'a.j2' %}|", "a.j2": "a\n\n"}, "a\n|"},
		{"include without context", files{"main.j2": "{% set v = 1 %}{% include 'a.j2' without context %}",
			"a.j2": "{{ v is defined }}{{ x is defined }}"}, "FalseFalse"},
		{"include with context", files{"main.j2": "{% set v = 1 %}{% include 'a.j2' with context %}", "a.j2": "{{ v }}"},
			"1"},
		{"include keeps its sets", files{"main.j2": "{% include 'a.j2' %}{{ v is defined }}", "a.j2": "{% set v = 1 %}"},
			"False"},
		{"include ignore missing", files{"main.j2": "a{% include 'none.j2' ignore missing %}{% include 'none.j2' ignore missing without context %}b"}, "ab"},
		{"include a list", files{"main.j2": "{% include ['none.j2', 'a.j2'] %}", "a.j2": "A"}, "A"},
		{"include by expression", files{"main.j2": "{% include 'a' ~ '.j2' %}", "a.j2": "A"}, "A"},
		{"include from a folder", files{"main.j2": "{% include 'sub/a.j2' %}", "sub/a.j2": "{% include 'b.j2' %}",
			"sub/b.j2": "B"}, "B"},
		{"import", files{"main.j2": "{% import 'm.j2' as m %}{{ m.f(1) }}{{ m.v }}",
			"m.j2": "{% macro f(a) %}<{{ a }}{{ v }}>{% endmacro %}{% set v = 2 %}noise"}, "<12>2"},
		{"import hides private names", files{"main.j2": "{% import 'm.j2' as m %}{{ m._f is defined }}",
			"m.j2": "{% macro _f() %}{% endmacro %}"}, "False"},
		{"import sees no variables", files{"main.j2": "{% import 'm.j2' as m %}{{ m.f() }}",
			"m.j2": "{% macro f() %}{{ x is defined }}{% endmacro %}"}, "False"},
		{"import with context", files{"main.j2": "{% import 'm.j2' as m with context %}{{ m.f() }}",
			"m.j2": "{% macro f() %}{{ x }}{% endmacro %}"}, "hello"},
		{"macro called like a method", files{"main.j2": "{% import 'm.j2' as m %}{{ m.items() }}",
			"m.j2": "{% macro items() %}I{% endmacro %}"}, "I"},
		{"from", files{"main.j2": "{% from 'm.j2' import f, g as h with context %}{{ f() }}{{ h() }}",
			"m.j2": "{% macro f() %}F{% endmacro %}{% macro g() %}{{ x }}{% endmacro %}"}, "Fhello"},
		{"from a missing name", files{"main.j2": "{% from 'm.j2' import g %}{{ g is defined }}", "m.j2": ""}, "False"},
		{"extends", files{
			"main.j2": "{% extends 'base.j2' %}lost{{ lost }}{% block a %}A{{ super() }}{% endblock %}",
			"base.j2": "<{% block a %}a{% endblock %}{% block b %}b{% endblock %}>\n",
		}, "<Aab>"},
		{"extends by three", files{
			"main.j2": "{% extends 'mid.j2' %}{% block a %}3{{ super() }}{% endblock %}",
			"mid.j2":  "{% extends 'base.j2' %}{% block a %}2{{ super() }}{% endblock %}",
			"base.j2": "[{% block a %}1{% endblock %}]",
		}, "[321]"},
		{"extends by expression", files{"main.j2": "{% extends x ~ '.j2' %}{% block a %}A{% endblock %}",
			"hello.j2": "({% block a %}{% endblock %})"}, "(A)"},
		{"sets and macros of a child", files{
			"main.j2": "{% extends 'base.j2' %}{% set v = 1 %}{% macro m() %}M{% endmacro %}{% block a %}{{ v }}{{ m() }}{% endblock %}",
			"base.j2": "{{ v }}{% block a %}{% endblock %}",
		}, "11M"},
		{"text before extends stays", files{"main.j2": "a{% extends 'base.j2' %}b", "base.j2": "c"}, "ac"},
		{"required block", files{"main.j2": "{% extends 'base.j2' %}{% block a %}A{% endblock %}",
			"base.j2": "{% block a required %}{% endblock %}"}, "A"},
		{"block inside a block", files{"main.j2": "{% extends 'base.j2' %}{% block b %}B{% endblock %}",
			"base.j2": "{% block a %}a{% block b %}{% endblock %}{% endblock %}"}, "aB"},
		{"header", files{"main.j2": "#jinja2: lstrip_blocks: True\na\n  {% if t %}\nb\n  {% endif %}\n"}, "a\nb\n"},
		{"header with delimiters", files{"main.j2": "#jinja2: variable_start_string: '<<', variable_end_string: '>>'\n<< x >>{{ x }}"}, "hello{{ x }}"},
		{"header alone", files{"main.j2": "#jinja2: trim_blocks: False"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := renderFiles(t, newEngine(), c.files, FileOptions{}, scope)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestFileOptions(t *testing.T) {
	scope := names(t, tagVars)
	for _, c := range []struct {
		name, src, want string
		o               FileOptions
	}{
		{"no trim", "{% if t %}\na\n{% endif %}\n", "\na\n", FileOptions{NoTrimBlocks: true}},
		{"lstrip", "  {% if t %}\na\n  {% endif %}\n", "a\n", FileOptions{LStripBlocks: true}},
		{"newline", "a\nb\n{% if t %}\nc\n{% endif %}\n", "a\r\nb\r\nc\r\n", FileOptions{Newline: "\r\n"}},
		{"delimiters", "<% if t %>[[ x ]]<% endif %><# c #>{{ x }}", "hello{{ x }}", FileOptions{
			BlockStart: "<%", BlockEnd: "%>", VariableStart: "[[", VarEnd: "]]", CommentStart: "<#", CommentEnd: "#>",
		}},
	} {
		got, err := renderFiles(t, newEngine(), map[string]string{"main.j2": c.src}, c.o, scope)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	_, err := newEngine().File("x", FileOptions{BlockStart: "{{"})
	wantError(t, err, "not all different")
}

func TestSearchPath(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"role/templates/a.j2": "role", "play/templates/a.j2": "play", "play/b.j2": "plain",
		"main/main.j2": "{% include 'a.j2' %}{% include 'b.j2' %}",
	})
	scope := expr.Names{"ansible_search_path": []any{dir + "/role", dir + "/play"}}
	e := newEngine()
	tpl, err := e.File(filepath.Join(dir, "main/main.j2"), FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tpl.Text(context.Background(), scope); err != nil || got != "roleplain" {
		t.Errorf("%q, %v", got, err)
	}
	writeFiles(t, dir, map[string]string{"main/a.j2": "own"})
	if got, err := tpl.Text(context.Background(), scope); err != nil || got != "ownplain" {
		t.Errorf("the file's own folder comes first: %q, %v", got, err)
	}
	if got, err := renderValue(t, e, "<{% include 'b.j2' %}>", scope); err != nil || got != "<plain>" {
		t.Errorf("in a string: %q, %v", got, err)
	}
}

func TestBuiltinFiles(t *testing.T) {
	tree := source.Tree{Embedded: fstest.MapFS{
		"roles/r/templates/a.j2": {Data: []byte("{% include 'b.j2' %}")},
		"roles/r/templates/b.j2": {Data: []byte("carried {{ u }}")},
	}}
	e := New(expr.New(expr.Options{Files: tree}, library.Standard()), tree)
	got, err := e.RenderFile(context.Background(), expr.TemplateFile{Path: "builtin:/roles/r/templates/a.j2"},
		expr.Names{"u": 1})
	if err != nil || got != "carried 1" {
		t.Fatalf("%q, %v", got, err)
	}
	_, err = e.RenderFile(context.Background(), expr.TemplateFile{Path: "builtin:/roles/r/templates/a.j2"}, expr.Names{})
	wantError(t, err, "builtin:/roles/r/templates/b.j2:1:12: 'u' is undefined")
}

func TestFileCache(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "main.j2")
	e := newEngine()
	render := func(text string, mtime time.Time) string {
		t.Helper()
		writeFiles(t, dir, map[string]string{"main.j2": text})
		if err := os.Chtimes(path, mtime, mtime); err != nil {
			t.Fatal(err)
		}
		got, err := e.RenderFile(context.Background(), expr.TemplateFile{Path: path}, expr.Names{"a": 1})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	then := time.Now().Add(-time.Hour)
	if got := render("x{{ a }}", then); got != "x1" {
		t.Error(got)
	}
	if got := render("y{{ a }}", then); got != "x1" {
		t.Errorf("%q: an unchanged file was compiled again", got)
	}
	if got := render("z{{ a }}", then.Add(time.Second)); got != "z1" {
		t.Errorf("%q: a changed file was not compiled again", got)
	}
	if got := render("longer{{ a }}", then.Add(time.Second)); got != "longer1" {
		t.Errorf("%q: a file of another size was not compiled again", got)
	}
	_, err := e.File(filepath.Join(dir, "none.j2"), FileOptions{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	_, err = e.File(dir, FileOptions{})
	wantError(t, err, "is a folder")
}

func TestTrace(t *testing.T) {
	_, err := renderFiles(t, newEngine(), map[string]string{
		"main.j2": "a\n{% include 'a.j2' %}",
		"a.j2":    "{% import 'm.j2' as m %}\n\n{{ m.f() }}",
		"m.j2":    "{% macro f() %}\n {{ nope }}{% endmacro %}",
	}, FileOptions{}, expr.Names{})
	d := diagnosticOf(err)
	if d == nil {
		t.Fatalf("%v holds no diagnostic", err)
	}
	if !strings.HasSuffix(d.Pos.String(), "m.j2:2:5") {
		t.Errorf("at %s", d.Pos)
	}
	if len(d.Trace) != 2 || d.Trace[0].What != "macro f" || !strings.HasPrefix(d.Trace[1].What, "include ") {
		t.Fatalf("trace %v", d.Trace)
	}
	if got := d.Trace[1].At.String(); !strings.HasSuffix(got, "main.j2:2:1") {
		t.Errorf("include at %s", got)
	}
}

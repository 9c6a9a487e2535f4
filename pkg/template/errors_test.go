package template

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func TestProblemsOfAnIncludedFile(t *testing.T) {
	for verb, src := range map[string]string{"include": "{% include 'a.j2' %}", "import": "{% import 'a.j2' as a %}",
		"extends": "{% extends 'a.j2' %}"} {
		_, err := renderFiles(t, newEngine(), map[string]string{"main.j2": "x\n" + src, "a.j2": "1\n2\n {{ b | nofilter }}"},
			FileOptions{}, expr.Names{})
		d := diagnosticOf(err)
		if d == nil || !strings.HasSuffix(d.Pos.File.Name, "a.j2") || d.Pos.Line != 3 {
			t.Fatalf("%s: %v", verb, err)
		}
		if len(d.Trace) != 1 || d.Trace[0].What != verb+" a.j2" || !strings.HasSuffix(d.Trace[0].At.String(), "main.j2:2:1") {
			t.Errorf("%s: trace %v", verb, d.Trace)
		}
	}
}

// lazyScope renders its variables with the engine, as the variable store does.
type lazyScope struct {
	engine *Engine
	vars   map[string]string
}

func (s lazyScope) Lookup(name string) (any, bool, error) {
	src, ok := s.vars[name]
	if !ok {
		return nil, false, nil
	}
	file := source.NewFile("vars.yml", []byte(name+": "+src))
	tpl, err := s.engine.String(src, source.Pos{File: file, Line: 1, Col: len(name) + 3})
	if err != nil {
		return nil, false, err
	}
	v, err := tpl.Value(context.Background(), s)
	var u *value.Undefined
	if errors.As(err, &u) {
		return &value.Undefined{Name: name, Err: err}, true, nil
	}
	return v, err == nil, err
}

func TestErrorsOfVariablesTellBothPlaces(t *testing.T) {
	e := newEngine()
	scope := lazyScope{e, map[string]string{"a": "{{ b }}-", "p": "{{ b }}", "z": "{{ 1 // 0 }}"}}
	for _, src := range []string{"{{ a }}", "x{{ a }}", "{{ p }}", "{% if p %}{% endif %}"} {
		_, err := renderValue(t, e, src, scope)
		wantError(t, err, "site.yml:1:", "vars.yml:1:", "'b' is undefined")
		if d := diagnosticOf(err); d == nil || d.Pos.File.Name != "site.yml" {
			t.Errorf("%s: the nearest place is %v", src, d)
		}
	}
	_, err := renderValue(t, e, "x{{ z }}", scope)
	wantError(t, err, "site.yml:1:", "division")
	if got, err := renderValue(t, e, "x{{ a | default('d') }}", scope); err != nil || got != "xd" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestLongTraceIsCut(t *testing.T) {
	_, err := renderText(t, "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", expr.Names{})
	d := diagnosticOf(err)
	if d == nil || len(d.Trace) != 2*maxTrace+1 {
		t.Fatalf("%v: trace %v", err, d)
	}
	if got := d.Trace[maxTrace].What; got != "54 more" {
		t.Errorf("the gap reads %q", got)
	}
}

func TestLookupOfItself(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "main.j2")
	writeFiles(t, dir, map[string]string{"main.j2": "{{ again() }}"})
	e := newEngine()
	scope := expr.Names{}
	scope["again"] = expr.Func(func(c *expr.Call, _ expr.Args) (any, error) {
		text, err := e.RenderFile(c.Context, expr.TemplateFile{Path: path}, scope)
		return text, err
	})
	_, err := e.RenderFile(context.Background(), expr.TemplateFile{Path: path}, scope)
	wantError(t, err, "nest deeper than 64: … → lookup ", "main.j2 → lookup ")
	if _, err := e.RenderFile(context.Background(), expr.TemplateFile{Path: path + "x"}, scope); err == nil {
		t.Error("a missing file was rendered")
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	scope := expr.Names{"boom": expr.Func(func(*expr.Call, expr.Args) (any, error) { panic("boom") })}
	for _, src := range []string{"{{ boom() }}", "x{{ boom() }}"} {
		_, err := renderValue(t, newEngine(), src, scope)
		wantError(t, err, "boom")
	}
}

// readOnly is a scope that accepts no new values.
type readOnly struct{ expr.Scope }

func TestBind(t *testing.T) {
	src := "{% do l.append(2) %}{{ l }}"
	vars := expr.Names{"l": []any{1}}
	if got, err := renderText(t, src, readOnly{vars}); err != nil || got != "[1, 2]" {
		t.Errorf("%q, %v", got, err)
	}
	if got := repr(vars["l"]); got != "[1]" {
		t.Errorf("the caller's list is now %s", got)
	}
	if got, err := renderText(t, src, vars); err != nil || got != "[1, 2]" {
		t.Errorf("%q, %v", got, err)
	}
	if got := repr(vars["l"]); got != "[1, 2]" {
		t.Errorf("a scope that takes values has %s", got)
	}
	loop := "{% set k = [] %}{% for i in [1, 2] %}{% if true %}{% do k.append(i) %}{% endif %}{% endfor %}{{ k }}{% do l.append(3) %}{% do l.append(4) %}{{ l }}"
	if got, err := renderText(t, loop, readOnly{expr.Names{"l": []any{}}}); err != nil || got != "[1, 2][3, 4]" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestPrintedObjects(t *testing.T) {
	got, err := renderFiles(t, newEngine(), map[string]string{
		"main.j2": "{% macro m() %}{% endmacro %}{{ m }}{% for i in [1] %}{{ loop }}{% endfor %}{% import 'a.j2' as a %}{{ a }}{% block b %}{% endblock %}{{ self }}",
		"a.j2":    "",
	}, FileOptions{}, expr.Names{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got, "<Macro 'm'><LoopContext 1/1><TemplateModule '") ||
		!strings.HasSuffix(got, "a.j2'><TemplateReference>") {
		t.Error(got)
	}
}

func TestNoContextSaysWhatToDo(t *testing.T) {
	_, err := renderFiles(t, newEngine(), map[string]string{
		"main.j2": "{% import 'a.j2' as a %}{{ a.m() }}", "a.j2": "{% macro m() %}{{ x }}{% endmacro %}",
	}, FileOptions{}, expr.Names{"x": 1})
	wantError(t, err, "'x' is undefined", "with context")
	_, err = renderFiles(t, newEngine(), map[string]string{
		"main.j2": "{% from 'a.j2' import mm %}{{ mm() }}", "a.j2": "{% macro m() %}{% endmacro %}",
	}, FileOptions{}, expr.Names{})
	wantError(t, err, "'mm' is undefined", "does not define it", `did you mean "m"?`)
}

func TestExtendsTwice(t *testing.T) {
	_, err := renderFiles(t, newEngine(), map[string]string{"main.j2": "{% extends 'a.j2' %}{% extends 'a.j2' %}",
		"a.j2": ""}, FileOptions{}, expr.Names{})
	wantError(t, err, "extends", "already", "main.j2:1:21")
	_, err = renderText(t, "{% extends u %}", expr.Names{})
	wantError(t, err, "'u' is undefined")
}

func TestSearchPathErrors(t *testing.T) {
	boom := errors.New("boom")
	_, err := renderValue(t, newEngine(), "{% include 'nope.j2' %}", failing{searchPath, boom})
	if !errors.Is(err, boom) {
		t.Errorf("%v", err)
	}
	_, err = renderValue(t, newEngine(), "{% set n.a = 1 %}", failing{"n", boom})
	if !errors.Is(err, boom) {
		t.Errorf("%v", err)
	}
}

// failing is a scope with a variable that cannot be read.
type failing struct {
	name string
	err  error
}

func (f failing) Lookup(name string) (any, bool, error) {
	if name == f.name {
		return nil, false, f.err
	}
	return nil, false, nil
}

func TestFilterChainsThatFail(t *testing.T) {
	for _, src := range []string{"{% filter indent(u) %}a{% endfilter %}", "{% set a | indent(u) %}a{% endset %}"} {
		_, err := renderText(t, src, expr.Names{})
		wantError(t, err, "main.j2:1:", "'u' is undefined")
	}
	for _, src := range []string{"{% filter upper %}{{ u }}{% endfilter %}", "{% set a %}{{ u }}{% endset %}",
		"{% with a = 1 // 0 %}{% endwith %}", "{% do u.v() %}",
		"{% macro m(a=1 // 0) %}{% endmacro %}{{ m() }}",
		"{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{{ u }}{% endcall %}"} {
		if _, err := renderText(t, src, expr.Names{}); err == nil {
			t.Errorf("%s: no error", src)
		}
	}
}

// listed and known are two scopes with the method Names, which lists their variables.
type listed struct{ expr.Scope }

func (l listed) Names() []string { return []string{"hostname"} }

type known struct{ expr.Scope }

func (known) Names() []string { return []string{"hostname"} }

func TestNearNames(t *testing.T) {
	base := expr.Names{"hostname": "h"}
	for _, scope := range []expr.Scope{base, listed{base}, known{base}} {
		_, err := renderText(t, "{% if true %}{{ hostnam }}{% endif %}", scope)
		wantError(t, err, `did you mean "hostname"?`)
		_, err = renderText(t, "{% for address in [1] %}{{ adress }}{% endfor %}", scope)
		wantError(t, err, `did you mean "address"?`)
	}
	_, err := renderText(t, "{{ hostnam }}", readOnly{base})
	wantError(t, err, "'hostnam' is undefined")
	got, err := renderText(t, "{% filter upper %}{% set hostkey = 1 %}{{ query('varnames', '^host.*|^__kk') | join(' ') }}{% endfilter %}", base)
	if err != nil || got != "HOSTKEY HOSTNAME" {
		t.Errorf("%q, %v", got, err)
	}
}

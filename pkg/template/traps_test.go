package template

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/flosch/pongo2/v6"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Each of these tests covers one pitfall of pongo2 v6.

func TestRenderingTwiceIsTheSame(t *testing.T) {
	e := newEngine()
	src := "a\n{% if t %}\n\nb\n{% endif %}\n\n c"
	tpl, err := e.String(src, at(src))
	if err != nil {
		t.Fatal(err)
	}
	first, _ := tpl.Text(context.Background(), expr.Names{"t": true})
	second, _ := tpl.Text(context.Background(), expr.Names{"t": true})
	if want := "a\n\nb\n\n c"; first != want || second != want {
		t.Errorf("%q, then %q, want %q", first, second, want)
	}
}

func TestSixteenGoroutines(t *testing.T) {
	engines := []*Engine{newEngine(), newEngine()}
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"main.j2": "{% extends 'base.j2' %}{% block a %}{{ n }}{{ super() }}{% endblock %}",
		"base.j2": "{% block a %}{% for i in l %}{{ i }}{% endfor %}{% endblock %}{% include 'inc.j2' %}",
		"inc.j2":  "{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(n) }}",
	})
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			e := engines[g%2]
			scope := expr.Names{"n": g, "l": []any{1, 2}}
			for i := range 30 {
				got, err := e.RenderFile(context.Background(), expr.TemplateFile{Path: filepath.Join(dir, "main.j2")}, scope)
				if want := fmt.Sprintf("%d12<%d>", g, g); err != nil || got != want {
					t.Errorf("%q, %v, want %q", got, err, want)
				}
				src := fmt.Sprintf("%d{%% if n %%}{{ n }}{%% endif %%}{{ l | length }}", i)
				tpl, err := e.String(src, source.Pos{})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := tpl.Value(context.Background(), scope); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
}

func TestTagsAreRegisteredOnceAndStockTagsBanned(t *testing.T) {
	newEngine()
	if err := pongo.register(); err != nil {
		t.Fatal(err)
	}
	set, err := newSet()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stockTags() {
		if _, err := set.FromString("{% " + name + " %}"); err == nil || !strings.Contains(err.Error(), "not allowed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNamesThatPongoRefuses(t *testing.T) {
	scope := expr.Names{"a-b": 1, "x": 2}
	for i := range 2000 {
		scope[fmt.Sprintf("var-%d", i)] = i
	}
	if got, err := renderText(t, "{% if x %}{{ x }}{% endif %}", scope); err != nil || got != "2" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestNothingIsEscaped(t *testing.T) {
	got, err := renderText(t, "{% if t %}{{ h }}{% endif %}", expr.Names{"h": `<&"'>`, "t": true})
	if err != nil || got != `<&"'>` {
		t.Errorf("%q, %v", got, err)
	}
}

func TestErrorsInsteadOfPanics(t *testing.T) {
	scope := expr.Names{"l": []any{1}, "d": value.NewDict("a", 1), "n": 1}
	for src, want := range map[string]string{
		"{% if 1/0 %}{% endif %}":                                                 "division",
		"{% if l[u] %}{% endif %}":                                                "undefined",
		"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}":                         "nest deeper than 64: … → macro m → macro m",
		"{% include 'main.j2' %}":                                                 "nest deeper than 64: … → include ",
		"{% extends 'main.j2' %}":                                                 "nest deeper than 64: … → extends ",
		"{% import 'main.j2' as m %}":                                             "nest deeper than 64: … → import ",
		"{% block a %}{{ self.a() }}{% endblock %}":                               "nest deeper than 64: … → block a",
		"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}":                 "nest deeper than 64: … → recursive loop",
		strings.Repeat("{% if n %}", 101) + strings.Repeat("{% endif %}", 101):    "deeper than 100",
		"{{ " + strings.Repeat("(", 100000) + strings.Repeat(")", 100000) + " }}": "deep",
		"{% cycle %}":   "no tag",
		"{{ d.a.b.c }}": "no attribute",
	} {
		_, err := renderText(t, src, scope)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %.300v, want %q", src, err, want)
		}
	}
	if got, err := renderText(t, "{% if l == l %}same{% endif %}", scope); err != nil || got != "same" {
		t.Errorf("%q, %v", got, err)
	}
	deep := strings.Repeat("{% if n %}", 100) + "x" + strings.Repeat("{% endif %}", 100)
	if got, err := renderText(t, deep, scope); err != nil || got != "x" {
		t.Errorf("100 blocks: %q, %v", got, err)
	}
}

func TestPongoNeverReadsFiles(t *testing.T) {
	if _, err := (noLoader{}).Get("/etc/passwd"); err == nil {
		t.Error("the loader reads files")
	}
	if got := (noLoader{}).Abs("a", "b"); got != "b" {
		t.Error(got)
	}
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"secret": "S", "t/main.j2": "{% include '../secret' %}",
		"t/abs.j2": "{% include '" + dir + "/secret' %}"})
	for _, name := range []string{"main.j2", "abs.j2"} {
		got, err := newEngine().RenderFile(context.Background(), expr.TemplateFile{Path: filepath.Join(dir, "t", name)},
			expr.Names{})
		if err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// danger has a method that templates must not be able to call.
type danger struct{ called *bool }

// Destroy must not run.
func (d danger) Destroy() string { *d.called = true; return "gone" }

func TestMethodsOfGoValuesAreOutOfReach(t *testing.T) {
	called := false
	for _, src := range []string{"{{ d.Destroy() }}", "{{ d.Destroy }}", "{{ kk }}", "{{ kk.scope }}",
		"{{ pongo2.version }}"} {
		if got, err := renderText(t, src, expr.Names{"d": danger{&called}}); err == nil {
			t.Errorf("%s: %q", src, got)
		}
	}
	if called {
		t.Error("a method of a Go value was called")
	}
}

func TestBraceBeforeATag(t *testing.T) {
	got, err := renderText(t, "{ {%- if t %}{ {%- set a = 1 %}{{ '{' }}{% endif %}{# #}{", expr.Names{"t": true})
	if err != nil || got != "{{{{" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestErrorsKeepTheirType(t *testing.T) {
	boom := errors.New("boom")
	_, err := renderText(t, "{% if t %}\n  {{ f() }}{% endif %}",
		expr.Names{"t": true, "f": expr.Func(func(*expr.Call, expr.Args) (any, error) {
			return nil, boom
		})})
	if !errors.Is(err, boom) {
		t.Errorf("%v lost its cause", err)
	}
	wantError(t, err, "main.j2:2:")
}

func TestForeignFramesAreErrors(t *testing.T) {
	set, err := newSet()
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine()
	c := &compiler{env: e.env, unit: &unit{}, segs: []segment{{kind: segText, text: "a"}}}
	tpl, err := pongo.parse(c, set, "{% kk_root %}{% kk_text 0 %}{% kk_endroot %}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tpl.Execute(pongo2.Context{}); err == nil {
		t.Error("a document ran without a frame")
	}
	bare, err := pongo.parse(c, set, "{% kk_text 0 %}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bare.Execute(nil); err == nil {
		t.Error("a tag wrote to a foreign writer")
	}
	for _, src := range []string{
		"{% kk_text %}", "{% kk_text 7 %}", "{% kk_if %}", "{% kk_if 0 %}", "{% kk_for %}", "{% kk_for 0 %}",
		"{% kk_for 0 %}{% kk_else %}",
		"{% kk_with %}", "{% kk_with 0 %}", "{% kk_root %}", "{% kk_text 99999999999999999999 %}",
	} {
		if _, err := pongo.parse(c, set, src); err == nil {
			t.Errorf("%s was parsed", src)
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	stop := expr.Func(func(*expr.Call, expr.Args) (any, error) { cancel(); return "x", nil })
	src := "{% for i in range(100000) %}{{ stop() }}{% endfor %}"
	tpl, err := newEngine().String(src, at(src))
	if err != nil {
		t.Fatal(err)
	}
	_, err = tpl.Value(ctx, expr.Names{"stop": stop})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not the cancelling", err)
	}
	if d := diagnosticOf(err); d == nil || d.Pos.Col != 1 {
		t.Errorf("diagnostic %v", d)
	}
	src = "{% for i in l if stop() %}{% endfor %}"
	if tpl, err = newEngine().String(src, at(src)); err != nil {
		t.Fatal(err)
	}
	_, err = tpl.Value(ctx, expr.Names{"stop": stop, "l": []any{1, 2}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not the cancelling", err)
	}
}

func TestOutputIsBounded(t *testing.T) {
	e := newEngine()
	e.maxOutput = 1000
	src := "{% for i in range(100) %}{% for j in range(100) %}{{ x }}{% endfor %}{% endfor %}"
	_, err := renderFiles(t, e, map[string]string{"main.j2": src}, FileOptions{}, expr.Names{"x": "0123456789"})
	wantError(t, err, "longer than 1000 bytes", "main.j2:1:")
	for _, src := range []string{"{% set a %}{% for i in range(999) %}ab{% endfor %}{% endset %}",
		"{% macro m() %}{% for i in range(999) %}ab{% endfor %}{% endmacro %}{{ m() }}"} {
		_, err := renderFiles(t, e, map[string]string{"main.j2": src}, FileOptions{}, expr.Names{})
		wantError(t, err, "longer than 1000 bytes")
	}
}

// TestDeepestStack nests every construct at once, as deep as the limits allow.
func TestDeepestStack(t *testing.T) {
	e := newEngine()
	dir := t.TempDir()
	call := strings.Repeat("(", 150) + "m()" + strings.Repeat(")", 150)
	src := "{% macro m() %}" + strings.Repeat("{% if t %}", 90) + "{{ " + call + " }}" +
		strings.Repeat("{% endif %}", 90) + "{% endmacro %}{{ m() }}"
	writeFiles(t, dir, map[string]string{"main.j2": src})
	_, err := e.RenderFile(context.Background(), expr.TemplateFile{Path: filepath.Join(dir, "main.j2")},
		expr.Names{"t": true})
	wantError(t, err, "nest deeper than 64: … → macro m → macro m → macro m → macro m")
}

package vars

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

func newTemplates() *template.Engine {
	return template.New(expr.New(expr.Options{}, library.Standard()), source.Tree{})
}

func nowhere(string) source.Pos { return source.Pos{Line: 7} }

func layer(e *template.Engine, name string, pairs ...any) *Layer {
	return Templates(name, value.NewDict(pairs...), e, nowhere, nil)
}

// eval evaluates an expression in a view.
func eval(t *testing.T, e *template.Engine, v *View, text string) (any, error) {
	t.Helper()
	x, err := e.Env().Compile(text, source.Pos{}, expr.Escaped)
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Eval(context.Background(), v)
	if err == nil {
		got, err = value.Force(got)
	}
	return got, err
}

func check(t *testing.T, e *template.Engine, v *View, cases map[string]any) {
	t.Helper()
	for text, want := range cases {
		got, err := eval(t, e, v, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if !value.Equal(got, want) {
			t.Errorf("%s is %s, want %s", text, value.Repr(got), value.Repr(want))
		}
	}
}

type fixed map[string]any

func (m fixed) Magic(name string, v *View) (any, bool, error) {
	if name == "broken" {
		return nil, false, errors.New("magic broke")
	}
	if name == "inventory_hostname" {
		return v.Host(), true, nil
	}
	val, ok := m[name]
	return val, ok, nil
}

func (m fixed) MagicNames() []string { return []string{"inventory_hostname"} }

// everywhere returns a view in which x is set at the n lowest levels.
func everywhere(e *template.Engine, n int) *View {
	at := func(level int, name string) []*Layer {
		if level >= n {
			return nil
		}
		return []*Layer{layer(e, "lower "+name, "x", "lower"), layer(e, name, "x", name)}
	}
	s := &Scope{Engine: e, Extra: at(11, "extra")}
	public := &Public{}
	public.Add(at(0, "public defaults"), at(6, "public vars"))
	static := Static{
		Low: at(1, "defaults"), Play: at(4, "play"), Mid: at(7, "task"), High: at(10, "params"), Public: public,
	}
	h := &Host{}
	if n > 3 {
		h.AddFacts(value.NewDict("y", "facts"))
		h.AddCacheable(value.NewDict("x", "facts"))
	}
	h.SetFiles("play", at(5, "files"))
	if n > 8 {
		h.Include(value.NewDict("x", "include_vars"))
	}
	if n > 9 {
		h.Set(value.NewDict("x", "set_fact"))
	}
	v := s.New(context.Background(), "h1", h, at(2, "inventory"), static, "play")
	return v
}

func TestLevels(t *testing.T) {
	e := newTemplates()
	names := []string{"public defaults", "defaults", "inventory", "facts", "play", "files", "public vars", "task",
		"include_vars", "set_fact", "params", "extra"}
	for i, name := range names {
		v := everywhere(e, i+1)
		check(t, e, v, map[string]any{"x": name})
		origins := v.Explain("x")
		if !origins[0].Wins || origins[0].Raw != name ||
			slices.ContainsFunc(origins[1:], func(o Origin) bool { return o.Wins }) {
			t.Errorf("%s: %+v", name, origins)
		}
	}
	v := everywhere(e, len(names))
	if got := len(v.Explain("x")); got != 2*9+3 {
		t.Errorf("%d origins of x", got)
	}
	check(t, e, v.With("x", "local"), map[string]any{"x": "local"})
	check(t, e, v, map[string]any{"x": "extra"})
}

func TestTemplatesInVariables(t *testing.T) {
	e := newTemplates()
	s := &Scope{Engine: e, Magic: fixed{"fromMagic": 1}}
	v := s.New(context.Background(), "h1", nil, []*Layer{layer(e, "l",
		"n", 5, "same", "{{ n }}", "text", "n={{ n }}", "list", []any{"{{ n }}", 2},
		"d", value.NewDict("a", "{{ n }}", "deep", value.NewDict("b", "{{ text }}"), "bad", "{{ nope }}", "plain", 1),
		"hangs", "{{ missing.a }}", "me", "{{ inventory_hostname }}", "self", "{{ self }}",
		"a", "{{ b }}", "b", "{{ c.x }}", "c", value.NewDict("x", "{{ a }}"), "zero", "{{ 1 / 0 }}", "broken_syntax",
		"{{ ( }}",
	)}, Static{}, nil)
	check(t, e, v, map[string]any{
		"same": 5, "text": "n=5", "list": []any{5, 2}, "list[0]": 5, "d.a": 5, "d.deep.b": "n=5", "d.plain": 1, "me": "h1",
		"hangs is defined": false, "hangs | default(3)": 3, "d.bad is undefined": true, "d.nope is undefined": true,
		"fromMagic": 1, "list[7] | default('-')": "-",
	})
	check(t, e, v, map[string]any{"list": []any{5, 2}, "same": 5}) // from the cache
	for text, want := range map[string]string{
		"a": "recursive loop detected in template string: a -> b -> c.x -> a", "self": "self -> self",
		"zero": "zero", "broken_syntax": "expected", "broken": "magic broke", "d": "'nope' is undefined",
		"nope": "'nope' is undefined",
	} {
		if got, err := eval(t, e, v, text); err == nil && !value.IsUndefined(got) || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s is %v, %v; want %q", text, got, err, want)
		}
	}
	if _, err := eval(t, e, v, "broken_syntax"); err == nil {
		t.Error("a template that does not compile has a value")
	}
}

func TestLongChainEnds(t *testing.T) {
	e := newTemplates()
	d := value.NewDict("x0", 1)
	for i := 1; i < 400; i++ {
		d.Set("x"+value.Str(i), "{{ x"+value.Str(i-1)+" }}")
	}
	v := (&Scope{Engine: e}).New(context.Background(), "h", nil, []*Layer{layer(e, "l")},
		Static{Play: []*Layer{Templates("l", d, e, nowhere, nil)}}, nil)
	check(t, e, v, map[string]any{"x100": 1})
	v = (&Scope{Engine: e}).New(context.Background(), "h", nil, nil,
		Static{Play: []*Layer{Templates("l", d, e, nowhere, nil)}}, nil)
	var cycle *CycleError
	if _, err := eval(t, e, v, "x399"); !errors.As(err, &cycle) {
		t.Errorf("400 variables that hang on each other: %v", err)
	}
}

func TestUnsafeIsData(t *testing.T) {
	e := newTemplates()
	values := value.NewDict("raw", "{{ n }}", "n", 1, "cooked", "{{ n }}")
	l := Templates("l", values, e, nowhere, func(path []string) bool { return path[0] == "raw" })
	h := &Host{}
	h.Set(value.NewDict("fact", "{{ n }}"))
	h.Include(value.NewDict("included", "{{ n }}", "plain", 2, "bad", "{{ ( }}"))
	v := (&Scope{Engine: e}).New(context.Background(), "h", h, []*Layer{l, Values("v", value.NewDict("lit", "{{ n }}"))},
		Static{}, nil)
	open := "{{ n }}"
	check(t, e, v, map[string]any{"raw": open, "cooked": 1, "fact": open, "lit": open, "included": 1, "plain": 2})
	if _, err := eval(t, e, v, "bad"); err == nil {
		t.Error("include_vars with a broken template has a value")
	}
}

func TestHostLearns(t *testing.T) {
	h := &Host{}
	h.AddFacts(value.NewDict("ansible_system", "Linux", "arch", "x"))
	h.AddFacts(value.NewDict("arch", "y"))
	if got := h.Facts(); got.String("system") != "Linux" || got.String("arch") != "y" || got.Len() != 2 {
		t.Errorf("facts are %s", value.Repr(got))
	}
	v := (&Scope{}).New(context.Background(), "h", h, nil, Static{}, nil)
	for _, name := range []string{"ansible_system", "arch"} {
		if _, ok, err := v.Lookup(name); !ok || err != nil {
			t.Errorf("%s is not known", name)
		}
	}
	if v.Facts() == nil || v.Host() != "h" {
		t.Error("the view lost its host")
	}
	h.SetOne("r", 1)
	h.ClearFacts()
	if _, ok, _ := v.Lookup("arch"); ok {
		t.Error("facts stay after clear_facts")
	}
	if val, ok, _ := v.Lookup("r"); !ok || val != 1 {
		t.Error("a registered variable is gone")
	}
	var none *Host
	if none.Facts() != nil || none.names(levelSet) != nil {
		t.Error("no host has facts")
	}
}

func TestNamesAndLayers(t *testing.T) {
	e := newTemplates()
	data, err := e.Data("{{ 1 }}", source.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	c := Compiled("c", []string{"one"}, map[string]*template.Data{"one": data}, map[string]source.Pos{"one": {Line: 3}})
	if c.At("one").Line != 3 || c.Len() != 1 || !slices.Equal(c.Names(), []string{"one"}) {
		t.Errorf("%+v", c)
	}
	if raw, ok := c.Raw("one"); !ok || raw != "{{ 1 }}" {
		t.Errorf("raw is %v", raw)
	}
	if _, ok := c.Raw("two"); ok {
		t.Error("a name that is not there has a value")
	}
	l := layer(e, "l", "a", 1, 5, "no name")
	if l.Len() != 2 || !slices.Equal(l.Names(), []string{"a"}) || l.At("a").Line != 7 {
		t.Errorf("%+v", l)
	}
	h := &Host{}
	h.Set(value.NewDict("fact", 1, "a", 2))
	v := (&Scope{Engine: e, Magic: fixed{}}).New(context.Background(), "h", h, []*Layer{l, c}, Static{}, nil).With("item",
		1)
	if diff := cmp.Diff([]string{"item", "inventory_hostname", "a", "fact", "one"}, v.Names()); diff != "" {
		t.Error(diff)
	}
	if got := v.Explain("inventory_hostname"); len(got) != 1 || got[0].Layer != "magic variable" || !got[0].Wins {
		t.Errorf("%+v", got)
	}
	if got := v.Explain("a"); len(got) != 2 || got[0].Layer != "set_fact or register" || got[1].Layer != "l" ||
		got[1].At.Line != 7 {
		t.Errorf("%+v", got)
	}
	if learnedName(levelIncluded) != "include_vars" || learnedName(levelFacts) != "facts" {
		t.Error("levels are named wrongly")
	}
}

func TestViewsAreApart(t *testing.T) {
	e := newTemplates()
	v := (&Scope{Engine: e}).New(context.Background(), "h", nil, []*Layer{layer(e, "l", "x", 1, "y", "{{ x }}")}, Static{},
		nil)
	check(t, e, v, map[string]any{"y": 1})
	with := v.With("x", 2)
	check(t, e, with, map[string]any{"y": 2})
	with.Bind("x", 3)
	check(t, e, with, map[string]any{"y": 3})
	check(t, e, v, map[string]any{"y": 1})
	static := Static{}.With([]*Layer{layer(e, "a")}, nil, nil)
	more := static.With([]*Layer{layer(e, "b")}, nil, nil)
	if len(static.Low) != 1 || len(more.Low) != 2 {
		t.Error("a longer stack changed the shorter")
	}
	if v.Context() == nil {
		t.Error("no context")
	}
}

func TestCycleThroughAnotherHost(t *testing.T) {
	e := newTemplates()
	s := &Scope{Engine: e}
	inv := []*Layer{layer(e, "l", "a", "{{ far.b }}", "b", "{{ far.a }}")}
	s.Magic = across{s, inv}
	v := s.New(context.Background(), "h1", nil, inv, Static{}, nil)
	var cycle *CycleError
	if _, err := eval(t, e, v, "a"); !errors.As(err, &cycle) {
		t.Errorf("a cycle over two hosts: %v", err)
	}
}

// across creates the variable far: the variables of the other one of two hosts.
type across struct {
	s   *Scope
	inv []*Layer
}

func (m across) MagicNames() []string { return nil }

func (m across) Magic(name string, v *View) (any, bool, error) {
	if name != "far" {
		return nil, false, nil
	}
	other := map[string]string{"h1": "h2", "h2": "h1"}[v.Host()]
	return far{m.s.New(v.Context(), other, nil, m.inv, Static{}, nil).Beneath(v)}, true, nil
}

type far struct{ v *View }

func (f far) At(key any) (any, bool, error) { return f.v.Lookup(key.(string)) }
func (f far) Force() (any, error)           { return nil, errors.New("too much") }

func TestWatched(t *testing.T) {
	e := newTemplates()
	h := &Host{}
	s := &Scope{Engine: e, Watch: NewWatch("a", "b", "c", "d")}
	v := s.New(context.Background(), "h", h, []*Layer{layer(e, "l", "a", 1, "z", 1)}, Static{}, nil)
	if got := v.Watched(); got != 1 {
		t.Errorf("watched is %b", got)
	}
	h.SetOne("c", 1)
	if got := v.With("b", 1).Watched(); got&2 == 0 || got&1 == 0 {
		t.Errorf("watched is %b", got)
	}
}

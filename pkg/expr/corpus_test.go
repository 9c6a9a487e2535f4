package expr_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// corpus is a table of snippets with Jinja2's results.
func corpus(t testing.TB) *value.Dict {
	t.Helper()
	text, err := os.ReadFile("testdata/corpus.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := value.FromJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*value.Dict)
}

func scopeOf(d *value.Dict) expr.Names {
	scope := expr.Names{}
	for k, v := range d.All() {
		scope[k.(string)] = v
	}
	return scope
}

// wantOf converts {"__f": "2.5"} to a float.
func wantOf(v any) any {
	if d, ok := v.(*value.Dict); ok && d.Has("__f") {
		f, _ := strconv.ParseFloat(d.String("__f"), 64)
		return f
	}
	return v
}

func TestCorpus(t *testing.T) {
	t.Setenv("SPIKE_VAR", "envval")
	c := corpus(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f.txt"), []byte("file-content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := expr.New(expr.Options{}, everything()...)
	cases, _ := c.Get("cases")
	vars, _ := c.Get("vars")
	n := 0
	for _, e := range cases.([]any) {
		e := e.(*value.Dict)
		if e.String("kind") != "expression" {
			continue
		}
		n++
		t.Run(e.String("id"), func(t *testing.T) {
			scope := scopeOf(vars.(*value.Dict).Clone())
			scope["ansible_search_path"] = []any{dir}
			scope["playbook_dir"] = dir
			checkCase(t, env, scope, e)
		})
	}
	if n != 109 {
		t.Errorf("%d expression cases ran, want 109", n)
	}
}

func checkCase(t *testing.T, env *expr.Env, scope expr.Names, c *value.Dict) {
	t.Helper()
	src := c.String("src")
	x, err := env.Compile(src, source.Pos{}, expr.Escaped)
	if err != nil {
		t.Fatalf("compile %s: %v", src, err)
	}
	got, err := x.Eval(context.Background(), scope)
	if c.Has("error") {
		if err == nil {
			t.Fatalf("%s = %s, want a %s", src, value.Repr(got), c.String("error"))
		}
		var u *value.Undefined
		if undefined := errors.As(err, &u); undefined != (c.String("error") == "UndefinedError") {
			t.Errorf("%s: %v, want a %s", src, err, c.String("error"))
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	want, _ := c.Get("want")
	if want = wantOf(want); value.Repr(got) != value.Repr(want) {
		t.Errorf("%s = %s, want %s", src, value.Repr(got), value.Repr(want))
	}
}

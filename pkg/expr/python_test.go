package expr_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// TestPython compares each expression with the results of Python and Jinja2.
func TestPython(t *testing.T) {
	text, err := os.ReadFile("testdata/python.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := value.FromJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	table := v.(*value.Dict)
	vars, _ := table.Get("vars")
	cases, _ := table.Get("cases")
	env := expr.New(expr.Options{}, everything()...)
	for _, c := range cases.([]any) {
		c := c.(*value.Dict)
		t.Run(c.String("src"), func(t *testing.T) {
			scope := scopeOf(vars.(*value.Dict).Clone())
			d := scope["d"].(*value.Dict)
			d.Delete("7")
			d.Set(7, "seven") // JSON has no such key
			checkPython(t, env, scope, c)
		})
	}
}

func checkPython(t *testing.T, env *expr.Env, scope expr.Names, c *value.Dict) {
	t.Helper()
	src, want, wantErr := c.String("src"), c.String("want"), c.String("error")
	x, err := env.CompileTuple(src, source.Pos{}, expr.Escaped)
	if err != nil || wantErr == "syntax" {
		var d *source.Diagnostic
		if wantErr != "syntax" || !errors.As(err, &d) {
			t.Fatalf("compile: %v, want %s%s", err, want, wantErr)
		}
		return
	}
	got, err := x.Eval(context.Background(), scope)
	var undefined *value.Undefined
	switch {
	case wantErr != "" && err == nil:
		t.Errorf("got %s, want a %s", value.Repr(got), wantErr)
	case wantErr == "UndefinedError" && !errors.As(err, &undefined):
		t.Errorf("got the error %v, want an undefined one", err)
	case wantErr == "" && err != nil:
		t.Errorf("%v, want %s", err, want)
	case wantErr == "" && value.Repr(got) != want:
		t.Errorf("got %s, want %s", value.Repr(got), want)
	}
}

package expr_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// seeds adds every expression from the two tables.
func seeds(f *testing.F) {
	f.Helper()
	cases, _ := corpus(f).Get("cases")
	for _, c := range cases.([]any) {
		f.Add(c.(*value.Dict).String("src"))
	}
	for _, src := range []string{
		"((((", "'\\", "a.0.1.2", "x[::", "1e", "0x", "{'a':", "a is not", "not not not", "*a", "f(**", "\xff", "a if b else",
		"x.append(x) or x", "'%*d' % (5, 1)", "'{0[a].b!r:>{w}}'.format(1)", "-9223372036854775808 // -1", "'é'[0]",
		"[1][1:0:-1]",
	} {
		f.Add(src)
	}
}

// FuzzParse checks that compiling either fails with a diagnostic or yields an expression.
func FuzzParse(f *testing.F) {
	seeds(f)
	env := expr.New(expr.Options{}, everything()...)
	file := source.NewFile("fuzz", nil)
	f.Fuzz(func(t *testing.T, src string) {
		x, err := env.CompileTuple(src, source.Pos{File: file, Line: 1, Col: 1}, expr.Escaped)
		if err != nil {
			var d *source.Diagnostic
			if !errors.As(err, &d) || d.Pos.Line < 1 || d.Pos.Col < 1 {
				t.Fatalf("%v is no placed diagnostic", err)
			}
			return
		}
		x.Names()
		x.Const()
		if pos, end := expr.Span(x); pos < 0 || end > len(src) || end < pos {
			t.Fatalf("the root spans %d to %d of %d", pos, end, len(src))
		}
	})
}

// FuzzEval checks that evaluation neither panics nor changes data that hosts share.
func FuzzEval(f *testing.F) {
	seeds(f)
	env := expr.New(expr.Options{Now: fixedNow}, everything()...)
	vars, _ := corpus(f).Get("vars")
	shared := vars.(*value.Dict)
	before := value.Repr(shared)
	f.Fuzz(func(t *testing.T, src string) {
		x, err := env.CompileTuple(src, source.Pos{}, expr.Escaped)
		if err != nil || reachesOut(x) {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = x.Eval(ctx, scopeOf(shared))
		var e *expr.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%v has no place", err)
		}
		if err != nil && len(err.Error()) > 15 && err.Error()[:15] == "internal error " {
			t.Fatal(err)
		}
		if value.Repr(shared) != before {
			t.Fatal("shared variables were changed")
		}
	})
}

// reachesOut reports whether the expression can run a lookup, read folders or take long. The fuzzer skips these.
func reachesOut(x *expr.Expr) bool {
	for _, name := range x.Names() {
		if name == "lookup" || name == "query" || name == "q" {
			return true
		}
	}
	return strings.Contains(x.Source(), "fileglob") || strings.Contains(x.Source(), "password_hash")
}

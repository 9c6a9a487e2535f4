package expr

import (
	"context"
	"errors"
	"testing"
	"time"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// seeds adds every source of the two tables.
func seeds(f *testing.F) {
	f.Helper()
	cases, _ := corpus(f).Get("cases")
	for _, c := range cases.([]any) {
		f.Add(c.(*value.Dict).String("src"))
	}
	for _, src := range []string{
		"((((", "'\\", "a.0.1.2", "x[::", "1e", "0x", "{'a':", "a is not", "not not not", "*a", "f(**", "\xff", "a if b else",
		"x.append(x) or x", "'%*d' % (5, 1)", "'{0[a].b!r:>{w}}'.format(1)", "-9223372036854775808 // -1", "'é'[0]", "[1][1:0:-1]",
	} {
		f.Add(src)
	}
}

// FuzzLex checks that tokens cover the source in order and without overlap.
func FuzzLex(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src string) {
		for _, lit := range []Literals{Escaped, Raw} {
			tokens, err := lex(src, lit)
			if err != nil {
				if err.pos < 0 || err.pos > len(src) {
					t.Fatalf("error at %d of %d", err.pos, len(src))
				}
				continue
			}
			last := 0
			for _, tok := range tokens {
				if tok.pos < last || tok.end < tok.pos || tok.end > len(src) {
					t.Fatalf("token %q spans %d to %d after %d", tok.text, tok.pos, tok.end, last)
				}
				last = tok.end
			}
			if tokens[len(tokens)-1].kind != tokEnd {
				t.Fatal("no end")
			}
		}
	})
}

// FuzzParse checks that a compile fails with a diagnostic or yields an expression.
func FuzzParse(f *testing.F) {
	seeds(f)
	env := New(Options{}, Standard())
	file := source.NewFile("fuzz", nil)
	f.Fuzz(func(t *testing.T, src string) {
		x, err := env.CompileTuple(src, source.Pos{File: file, Line: 1, Col: 1}, Escaped)
		if err != nil {
			var d *source.Diagnostic
			if !errors.As(err, &d) || d.Pos.Line < 1 || d.Pos.Col < 1 {
				t.Fatalf("%v is no placed diagnostic", err)
			}
			return
		}
		x.Names()
		x.Const()
		if at := x.root.where(); at.pos < 0 || at.end > len(src) || at.end < at.pos {
			t.Fatalf("the root spans %d to %d of %d", at.pos, at.end, len(src))
		}
	})
}

// FuzzEval checks that evaluation neither panics nor changes what hosts share.
func FuzzEval(f *testing.F) {
	seeds(f)
	env := New(Options{Now: fixedNow}, Standard())
	vars, _ := corpus(f).Get("vars")
	shared := vars.(*value.Dict)
	before := value.Repr(shared)
	f.Fuzz(func(t *testing.T, src string) {
		x, err := env.CompileTuple(src, source.Pos{}, Escaped)
		if err != nil || reachesOut(x) {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = x.Eval(ctx, scopeOf(shared))
		var e *Error
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

// reachesOut reports whether the expression may run a lookup, which a fuzzer must not.
func reachesOut(x *Expr) bool {
	for _, name := range x.Names() {
		if name == "lookup" || name == "query" || name == "q" {
			return true
		}
	}
	out := false
	walk(x.root, func(n node) {
		if n, ok := n.(*filterNode); ok && (n.name == "fileglob" || n.name == "password_hash") {
			out = true
		}
	})
	return out
}

package expr_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func filterScope() expr.Names {
	return expr.Names{"users": []any{
		value.NewDict("name", "alice", "role", "admin", "uid", 1),
		value.NewDict("name", "Bob", "role", "dev", "uid", 2, "address", value.NewDict("city", "Oslo")),
		value.NewDict("name", "carol", "role", "admin"),
	}}
}

// caseFile runs every line of a file of cases: "expression => value" or "expression !! part of the error".
func caseFile(t *testing.T, name string, env *expr.Env, scope expr.Scope) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		at := source.Pos{File: source.NewFile(name, text), Line: n, Col: 1}
		src, want, ok := strings.Cut(line, " => ")
		if ok {
			checkValue(t, env, scope, at, src, want)
			continue
		}
		if src, want, ok = strings.Cut(line, " !! "); !ok {
			t.Errorf("%s: neither => nor !! in %q", at, line)
			continue
		}
		checkError(t, env, scope, at, src, want)
	}
}

func evaluate(env *expr.Env, scope expr.Scope, at source.Pos, src string) (any, error) {
	x, err := env.Compile(src, at, expr.Escaped)
	if err != nil {
		return nil, err
	}
	return x.Eval(context.Background(), scope)
}

func checkValue(t *testing.T, env *expr.Env, scope expr.Scope, at source.Pos, src, want string) {
	t.Helper()
	got, err := evaluate(env, scope, at, src)
	if err != nil {
		t.Errorf("%s: %s: %v, want %s", at, src, err, want)
		return
	}
	if value.Repr(got) != want {
		t.Errorf("%s: %s = %s, want %s", at, src, value.Repr(got), want)
	}
}

func checkError(t *testing.T, env *expr.Env, scope expr.Scope, at source.Pos, src, want string) {
	t.Helper()
	got, err := evaluate(env, scope, at, src)
	if err == nil {
		t.Errorf("%s: %s = %s, want the error %q", at, src, value.Repr(got), want)
		return
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %s: %v, want the error %q", at, src, err, want)
	}
}

func TestFilters(t *testing.T) {
	t.Setenv("HOME", "/home/kk")
	t.Setenv("KK_VAR", "val")
	caseFile(t, filepath.Join("testdata", "filters.txt"), expr.New(expr.Options{Now: fixedNow}, everything()...),
		filterScope())
}

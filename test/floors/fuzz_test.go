package floors

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// asking is what a package has that asks hosts something: their answers are hostile, so it has a
// fuzz target that feeds them to it.
var asking = []string{"connector.Command{", "connector.Script{", "connector.Get(", "hostscript.New("}

func TestWhoReadsAnswersOfHostsIsFuzzed(t *testing.T) {
	asks, fuzzed := map[string]bool{"pkg/connector": true}, map[string]bool{} // which asks by its own names
	for _, f := range tree(t) {
		switch {
		case strings.HasSuffix(f.name, "_test.go"):
			fuzzed[f.folder] = fuzzed[f.folder] || hasFuzzTarget(f)
		case strings.HasPrefix(f.folder, "pkg/") && !strings.HasSuffix(f.folder, "test"):
			asks[f.folder] = asks[f.folder] || asksHosts(f)
		}
	}
	for folder, yes := range asks {
		if yes && !fuzzed[folder] {
			t.Errorf("%s asks hosts and has no fuzz target: one of modules is a line, moduletest.Hostile", folder)
		}
	}
	if !asks["pkg/facts"] || !asks["pkg/module/file"] || asks["pkg/expr"] {
		t.Errorf("who asks hosts is not seen: %v", asks)
	}
}

func TestFuzzTargetsAreSeen(t *testing.T) {
	for code, want := range map[string][2]bool{
		"var _ = connector.Command{Line: x}":         {true, false},
		"var _ = connector.Script{}.Command()":       {true, false},
		"var _ = hostscript.New(code)":               {true, false},
		"func run(c connector.Command) {}":           {false, false},
		"func FuzzX(f *testing.F) {}":                {false, true},
		"func TestFuzzX(t *testing.T) {}":            {false, false},
		"type t struct{}\nfunc (t) FuzzX() { f(x) }": {false, false},
	} {
		f := parse(t, t.TempDir()+"/x.go", "package p\n"+code)
		if got := [2]bool{asksHosts(f), hasFuzzTarget(f)}; got != want {
			t.Errorf("%s: asks and is a target %v, want %v", code, got, want)
		}
	}
}

func asksHosts(f file) (found bool) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			found = found || slices.Contains(asking, selector(n.Type)+"{")
		case *ast.CallExpr:
			found = found || slices.Contains(asking, selector(n.Fun)+"(")
		}
		return !found
	})
	return found
}

// selector is package.Name, "" if an expression is something else.
func selector(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	of, ok := s.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return of.Name + "." + s.Sel.Name
}

func hasFuzzTarget(f file) bool {
	return slices.ContainsFunc(f.syntax.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Fuzz")
	})
}

package floors

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// A script's parameters and words stand in a command line: a secret goes through Env or Stdin.
func TestNoSecretIsAParameter(t *testing.T) {
	for _, f := range tree(t) {
		if strings.HasPrefix(f.folder, "pkg/") && !strings.HasSuffix(f.name, "_test.go") && handsSecretOver(f) {
			t.Errorf("%s/%s makes a secret a parameter of a script: hand it over in Env or Stdin", f.folder, f.name)
		}
	}
}

func TestSecretsThatAreParametersAreSeen(t *testing.T) {
	for code, want := range map[string]bool{
		`s.Set("password", m.Password.Reveal())`:                        true,
		`s.Set("name", m.Name).Set("auth", m.User+":"+m.Pass.Reveal())`: true,
		`s.Words = []string{m.Password.Reveal()}`:                       true,
		`s.Words = append(s.Words, m.Password.Reveal())`:                true,
		`s.Stdin = strings.NewReader(m.Password.Reveal())`:              false,
		`s.Set("name", m.Name)`:                                         false,
	} {
		f := parse(t, t.TempDir()+"/x.go", "package p\nimport \"kubekey/pkg/hostscript\"\nfunc f() {\n"+code+"\n}")
		if got := handsSecretOver(f); got != want {
			t.Errorf("%s: %v", code, got)
		}
	}
}

func handsSecretOver(f file) (found bool) {
	isScripts := func(i *ast.ImportSpec) bool { return i.Path.Value == `"kubekey/pkg/hostscript"` }
	if !slices.ContainsFunc(f.syntax.Imports, isScripts) {
		return false
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			found = found || method(n.Fun) == "Set" && slices.ContainsFunc(n.Args, reveals)
		case *ast.AssignStmt:
			found = found || method(n.Lhs[0]) == "Words" && slices.ContainsFunc(n.Rhs, reveals)
		}
		return !found
	})
	return found
}

// method is the name after the last dot.
func method(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}

func reveals(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && method(call.Fun) == "Reveal"
		return !found
	})
	return found
}

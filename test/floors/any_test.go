package floors

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// anyLimit is how often the core may use `any` in 1000 lines: a ratchet, to be
// lowered where it can be. The goal is 4.
const anyLimit = 8.02

// dynamic are the packages whose business is data without a type.
var dynamic = []string{"pkg/value", "pkg/expr", "pkg/template"}

// usage is how often a package uses `any`, as a type or as a constraint, in how many lines.
type usage struct{ uses, lines int }

func (u usage) rate() float64 { return 1000 * float64(u.uses) / float64(max(u.lines, 1)) }

// TestDataHasTypes keeps `any` out of the packages that can have types.
func TestDataHasTypes(t *testing.T) {
	all, packages := usage{}, map[string]usage{}
	for _, f := range tree(t) {
		if !isTyped(f) {
			continue
		}
		u := packages[f.folder]
		u.uses += anys(f.syntax)
		u.lines += f.lines
		packages[f.folder] = u
		all.uses += anys(f.syntax)
		all.lines += f.lines
	}
	if all.lines == 0 {
		t.Fatal("no files were counted")
	}
	t.Logf("%d uses of any in %d lines: %.2f in 1000", all.uses, all.lines, all.rate())
	worst := slices.SortedFunc(maps.Keys(packages), func(a, b string) int { return packages[b].uses - packages[a].uses })
	for _, p := range worst[:min(len(worst), 15)] {
		t.Logf("%4d  %5.1f  %s", packages[p].uses, packages[p].rate(), p)
	}
	if all.rate() > anyLimit {
		t.Errorf("%.2f uses of any in 1000 lines, more than %.2f: use a struct, a *value.Dict or a type parameter",
			all.rate(), anyLimit)
	}
}

func TestAnyIsCounted(t *testing.T) {
	for code, want := range map[string]int{
		"var x any":                          1,
		"var x interface{}":                  1,
		"func f(a any, b ...any) []any":      3,
		"func f[T any](v T) map[string]T":    1,
		"type list []map[string]interface{}": 1,
		"type t interface{ M() }":            0,
		"// any\nvar many = \"any\"":         0,
	} {
		if got := anys(parse(t, "x.go", "package p\n"+code+"\n").syntax); got != want {
			t.Errorf("%s: counted %d, want %d", code, got, want)
		}
	}
}

// isTyped reports whether the limit applies to a file. It does not apply to the filters and tests of
// collections, which work on values as those of pkg/expr do.
func isTyped(f file) bool {
	in := func(folder string) bool { return f.folder == folder || strings.HasPrefix(f.folder, folder+"/") }
	return (in("pkg") || in("cmd")) && !strings.HasSuffix(f.name, "_test.go") && !slices.ContainsFunc(dynamic, in) &&
		!(in("pkg/collections") && slices.ContainsFunc(f.syntax.Imports, func(i *ast.ImportSpec) bool {
			return i.Path.Value == `"kubekey/pkg/expr"`
		}))
}

// anys counts the types any and interface{}.
func anys(syntax *ast.File) int {
	n := 0
	ast.Inspect(syntax, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Ident:
			if node.Name == "any" {
				n++
			}
		case *ast.InterfaceType:
			if len(node.Methods.List) == 0 {
				n++
			}
		}
		return true
	})
	return n
}

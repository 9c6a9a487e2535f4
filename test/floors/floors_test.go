package floors

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the project's module path.
const module = "kubekey/"

// floors says how deep each package lies. Folders below one share its floor
// and may import it; siblings below one parent do not import each other.
var floors = map[string]int{
	"pkg/source": 0, "pkg/value": 0, "pkg/shell": 0, "pkg/redact": 0, "pkg/vault": 0, "pkg/charset": 0, "pkg/pyregex": 0,
	"pkg/configparser": 0, "pkg/difflib": 0, "pkg/ipnet": 0, "pkg/artifact": 0, "pkg/relay": 0,
	"pkg/expr": 1, "pkg/schema": 1, "pkg/event": 1, "pkg/connector": 1,
	// they use pkg/expr/filters; the library joins all
	"pkg/expr/lookups": 2, "pkg/expr/methods": 2, "pkg/expr/tests": 2, "pkg/expr/library": 3,
	"pkg/argspec": 2, "pkg/template": 2, "pkg/inventory": 2, "pkg/catalog": 2, "pkg/facts": 2, "pkg/certs": 2,
	"pkg/hostscript": 2, "pkg/settings": 2,
	"pkg/vars": 3, "pkg/playbook": 3, "pkg/module": 3, "pkg/ui": 3,
	"pkg/config": 4, "pkg/project": 4, "pkg/journal": 4,
	"pkg/engine/resume": 4, "pkg/engine/strategy": 4,
	"pkg/engine": 5, "pkg/report": 5, "pkg/lint": 5, "pkg/convert": 5, "pkg/collections": 5,
	"pkg/cli": 6,
	"builtin": 0, // files to embed: knows no package
	"cmd":     7,
	"docs":    7, // generates from everything
	"test":    7,
}

// alone names the only packages that import a library.
var alone = map[string][]string{
	"golang.org/x/crypto/ssh": {"pkg/connector/ssh", "pkg/connector/connectortest", "pkg/certs",
		"pkg/collections/crypto", "pkg/artifact/signature", "test"}, // which start servers, write keys, compare with a bare loop
	"github.com/hiddeco/sshsig":     {"pkg/artifact/signature"},
	"github.com/flosch/pongo2":      {"pkg/template"},
	"github.com/Masterminds/semver": {"pkg/catalog", "pkg/expr"}, // expr for the version test
}

// vague are names that say nothing about what a package provides.
var vague = []string{"util", "utils", "common", "helper", "helpers", "base", "const", "consts", "types", "misc"}

func TestPackagesImportLowerFloorsOnly(t *testing.T) {
	report(t, tree(t), brokenFloor)
}

func TestLibrariesStayInTheirPackage(t *testing.T) {
	report(t, tree(t), strayLibrary)
}

func TestPackagesSayWhatTheyProvide(t *testing.T) {
	report(t, tree(t), vagueName)
}

func TestNoInit(t *testing.T) {
	report(t, tree(t), hasInit)
}

// TestRulesCatchBreaches runs each rule on a file that breaks it, and on one
// that keeps it.
func TestRulesCatchBreaches(t *testing.T) {
	imports := func(path string) string { return "package p\nimport _ \"" + path + "\"\n" }
	for _, c := range []struct {
		name   string
		rule   rule
		folder string
		code   string
		broken bool
	}{
		{"upwards", brokenFloor, "pkg/value", imports("kubekey/pkg/engine"), true},
		{"sideways", brokenFloor, "pkg/expr", imports("kubekey/pkg/connector"), true},
		{"downwards", brokenFloor, "pkg/engine", imports("kubekey/pkg/value"), false},
		{"parent", brokenFloor, "pkg/connector/ssh", imports("kubekey/pkg/connector"), false},
		{"child", brokenFloor, "pkg/connector", imports("kubekey/pkg/connector/ssh"), true},
		{"sibling", brokenFloor, "pkg/module/file", imports("kubekey/pkg/module/exec"), true},
		{"a collection in the core", brokenFloor, "pkg/engine", imports("kubekey/pkg/collections/posix"), true},
		{"a collection in the command", brokenFloor, "pkg/cli", imports("kubekey/pkg/collections/posix"), false},
		{"a harness of tests", brokenFloor, "pkg/engine", imports("kubekey/pkg/module/moduletest"), true},
		{"in a harness of tests", brokenFloor, "pkg/module/moduletest", imports("kubekey/pkg/expr/library"), false},
		{"below a package that its row is for", brokenFloor, "pkg/expr/lookups", imports("kubekey/pkg/expr/filters"), false},
		{"unknown package", brokenFloor, "pkg/nowhere", "package nowhere", true},
		{"unknown import", brokenFloor, "pkg/engine", imports("kubekey/pkg/nowhere"), true},
		{"ssh outside", strayLibrary, "pkg/cli", imports("golang.org/x/crypto/ssh/agent"), true},
		{"ssh inside", strayLibrary, "pkg/connector/ssh", imports("golang.org/x/crypto/ssh"), false},
		{"template engine outside", strayLibrary, "pkg/expr", imports("github.com/flosch/pongo2/v6"), true},
		{"vague name", vagueName, "pkg/common", "package common", true},
		{"telling name", vagueName, "pkg/value", "package value", false},
		{"init", hasInit, "pkg/value", "package value\nfunc init() {}", true},
		{"method named init", hasInit, "pkg/value", "package value\ntype t struct{}\nfunc (t) init() {}", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := parse(t, filepath.Join(t.TempDir(), "x.go"), c.code)
			f.folder = c.folder
			if got := c.rule(f); (len(got) > 0) != c.broken {
				t.Errorf("breaches: %q, want some: %v", got, c.broken)
			}
		})
	}
}

// file is a parsed Go file and the folder it stands for.
type file struct {
	folder string // slash-separated, from the project's root
	name   string
	syntax *ast.File
	lines  int
}

// rule returns what a file breaks.
type rule func(file) []string

func report(t *testing.T, files []file, r rule) {
	t.Helper()
	for _, f := range files {
		for _, breach := range r(f) {
			t.Errorf("%s: %s", path.Join(f.folder, f.name), breach)
		}
	}
}

// tree parses every Go file of the project here, in the test: the go command
// would otherwise serve a stale pass from its cache.
func tree(t *testing.T) []file {
	t.Helper()
	const root = "../.."
	var files []file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != root && foreign(p, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go"):
			return nil
		}
		code, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f := parse(t, p, string(code))
		folder, err := filepath.Rel(root, filepath.Dir(p))
		f.folder = filepath.ToSlash(folder)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go files found: is the test still two folders below the root?")
	}
	return files
}

// foreign says whether a folder is outside the project's own code: hidden,
// test data, or a module of its own.
func foreign(dir, name string) bool {
	if strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func parse(t *testing.T, name, code string) file {
	t.Helper()
	syntax, err := parser.ParseFile(token.NewFileSet(), name, code, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file{name: filepath.Base(name), syntax: syntax, lines: strings.Count(code, "\n")}
}

func (f file) imports() []string {
	var paths []string
	for _, spec := range f.syntax.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// place finds the table's entry for a folder.
func place(folder string) (entry string, floor int, ok bool) {
	for entry = folder; entry != "."; entry = path.Dir(entry) {
		if floor, ok = floors[entry]; ok {
			return entry, floor, true
		}
	}
	return "", 0, false
}

// harness says whether a package is there for tests, as pkg/module/moduletest is.
func harness(folder string) bool {
	return strings.HasPrefix(folder, "pkg/") && strings.HasSuffix(folder, "test")
}

// brokenFloor lets test files and harnesses import what they like: nothing but them imports harnesses.
func brokenFloor(f file) []string {
	if strings.HasSuffix(f.name, "_test.go") || harness(f.folder) {
		return nil
	}
	entry, floor, ok := place(f.folder)
	if !ok {
		return []string{"package has no floor: add " + f.folder + " to the table in test/floors"}
	}
	var breaches []string
	for _, p := range f.imports() {
		target, own := strings.CutPrefix(p, module)
		if !own || target == f.folder {
			continue
		}
		below, its, known := place(target)
		switch {
		case harness(target) && strings.HasPrefix(f.folder, "pkg/"):
			breaches = append(breaches, fmt.Sprintf("imports %s, which is for tests", p))
		case !known:
			breaches = append(breaches, fmt.Sprintf("imports %s, which has no floor", p))
		case below == entry && !mayImportRelative(f.folder, target):
			breaches = append(breaches, fmt.Sprintf("imports %s: below one parent, packages import the parent only", p))
		case below != entry && its >= floor:
			breaches = append(breaches, fmt.Sprintf("on floor %d imports %s on floor %d: only lower floors are imported", floor,
				p, its))
		}
	}
	return breaches
}

// mayImportRelative says whether a folder may import another below the same
// entry of the table: its ancestors, and anything in the top entries, which
// are collections and not packages.
func mayImportRelative(folder, target string) bool {
	return strings.HasPrefix(folder, target+"/") || !strings.HasPrefix(folder, "pkg/")
}

func strayLibrary(f file) []string {
	var breaches []string
	for _, p := range f.imports() {
		for library, homes := range alone {
			if p != library && !strings.HasPrefix(p, library+"/") {
				continue
			}
			if !slices.ContainsFunc(homes, func(home string) bool {
				return f.folder == home || strings.HasPrefix(f.folder, home+"/")
			}) {
				breaches = append(breaches, fmt.Sprintf("imports %s: only %s may", p, strings.Join(homes, " and ")))
			}
		}
	}
	return breaches
}

func vagueName(f file) []string {
	if name := strings.TrimSuffix(f.syntax.Name.Name, "_test"); slices.Contains(vague, name) {
		return []string{fmt.Sprintf("package %s: name it for what it provides", name)}
	}
	return nil
}

func hasInit(f file) []string {
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			return []string{"has an init function: registries and settings are values that are passed"}
		}
	}
	return nil
}

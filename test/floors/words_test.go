package floors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// worded are the files and folders whose words are checked against the glossary. Of Markdown
// the prose is read, of YAML the names of plays and tasks, of Go the comments and the texts.
var worded = []string{
	"README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/shell.md", "docs/security.md", "docs/performance.md",
	"docs/guides", "docs/reference", "builtin", "pkg", "cmd", "test",
}

// unworded are files that need such words: the cases of this test, and the output of npm.
var unworded = []string{"test/floors/words_test.go", "pkg/collections/general/npm_test.go"}

// TestWordsOfTheGlossary finds words that CONTRIBUTING.md says not to write.
func TestWordsOfTheGlossary(t *testing.T) {
	words := glossary(t)
	for _, top := range worded {
		err := filepath.WalkDir(filepath.Join("../..", top), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || slices.Contains(unworded, strings.TrimPrefix(filepath.ToSlash(p), "../../")) {
				return err
			}
			text, err := os.ReadFile(p)
			for _, found := range words.FindAllString(prose(t, p, string(text)), -1) {
				t.Errorf("%s: %q: see the glossary in CONTRIBUTING.md", p, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestWordsAreFound(t *testing.T) {
	words := glossary(t)
	for _, c := range []struct{ name, text, found string }{
		{"a.md", "A deed.\n", "deed"},
		{"a.md", "It is\ntold.\n", "is\ntold"},
		{"a.md", "Indeed, `deed` is code.\n```\na deed\n```\n", ""},
		{"CONTRIBUTING.md", "Fine.\n\n## Words\n\na deed\n", ""},
		{"a.yaml", "- name: Mend it\n  debug: {msg: a deed}\n", "Mend"},
		{"a.go", "package a\n\n// A deed.\nvar a = 1\n", "deed"},
		{"a.go", "package a\n\nvar a = \"hush\"\n", "hush"},
		{"a.go", "package a\n\nvar deed = 1\n", ""},
	} {
		if found := words.FindString(prose(t, c.name, c.text)); found != c.found {
			t.Errorf("%s %q: found %q, want %q", c.name, c.text, found, c.found)
		}
	}
}

func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 200 {
		t.Errorf("README.md has %d lines, at most 200: move the rest to a guide", n)
	}
}

const glossaryHeading = "\n## Words\n"

// glossary reads the words of the left column in CONTRIBUTING.md. A row marked * has words with
// other meanings too, and is for reviewers.
func glossary(t *testing.T) *regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), glossaryHeading)
	var words []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z, ]+) \|`).FindAllStringSubmatch(table, -1) {
		for _, w := range strings.Split(row[1], ",") {
			if w = strings.TrimSpace(w); w != "do not write" {
				words = append(words, strings.ReplaceAll(w, " ", `\s+`))
			}
		}
	}
	for _, sample := range []string{"mend", "luggage", `is\s+told`} {
		if !slices.Contains(words, sample) {
			t.Fatalf("the glossary lacks %q: has its table changed?", sample)
		}
	}
	return regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
}

var (
	code     = regexp.MustCompile("(?ms)^```.*?^```|`[^`]*`")
	taskName = regexp.MustCompile(`(?m)^\s*(?:- )?name: .*$`)
)

// prose is what people read in a file.
func prose(t *testing.T, name, text string) string {
	t.Helper()
	switch filepath.Ext(name) {
	case ".md":
		if filepath.Base(name) == "CONTRIBUTING.md" {
			text, _, _ = strings.Cut(text, glossaryHeading)
		}
		return code.ReplaceAllString(text, "")
	case ".yaml":
		return strings.Join(taskName.FindAllString(text, -1), "\n")
	case ".go":
		return commentsAndTexts(t, name, text)
	}
	return ""
}

func commentsAndTexts(t *testing.T, name, code string) string {
	t.Helper()
	syntax, err := parser.ParseFile(token.NewFileSet(), name, code, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range syntax.Comments {
		all = append(all, c.Text())
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			all = append(all, lit.Value)
		}
		return true
	})
	return strings.Join(all, "\n")
}

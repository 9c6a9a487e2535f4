package source

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"gopkg.in/yaml.v3"
)

const site = "- hosts: all\n  tasks:\n    - name: motd\n      copy: {dst: /etc/motd}\n"

func TestRender(t *testing.T) {
	f := NewFile("site.yml", []byte(site))
	d := Errorf(Pos{f, 4, 14}, "module %q has no argument %q", "copy", "dst").WithHelp("%s",
		DidYouMean("dst", []string{"src", "dest"}))
	d.Width = 3
	d.Trace = []Frame{{"role web", Pos{f, 1, 1}}, {What: "the command line"}}
	want := `site.yml:4:14: module "copy" has no argument "dst"
  3 |     - name: motd
  4 |       copy: {dst: /etc/motd}
                   ^^^
did you mean "dest"?
in role web (site.yml:1), the command line
`
	if got := d.Render(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := d.Error(); got != `site.yml:4:14: module "copy" has no argument "dst" (did you mean "dest"?)` {
		t.Error(got)
	}
}

func TestRenderPlaces(t *testing.T) {
	f := NewFile("f", []byte("one\n\ttab \x01 caf\xe9\n"+strings.Repeat("a", 500)+"HERE"+strings.Repeat("b", 500)))
	for _, c := range []struct {
		at   Pos
		want string
	}{
		{Pos{}, "x\n"},
		{Pos{File: f}, "f: x\n"},
		{Pos{File: f, Line: 1}, "f:1: x\n  1 | one\n"},
		{Pos{f, 1, 1}, "f:1:1: x\n  1 | one\n      ^\n"},
		{Pos{f, 1, 99}, "f:1:99: x\n  1 | one\n         ^\n"},
		{Pos{f, 2, 2}, "f:2:2: x\n  1 | one\n  2 |  tab   caf\uFFFD\n       ^\n"},
		{Pos{f, 99, 1}, "f:99:1: x\n  98 | \n  99 | \n       ^\n"},
	} {
		if got := Errorf(c.at, "x").Render(); got != c.want {
			t.Errorf("%v: %q, want %q", c.at, got, c.want)
		}
	}
	long := Errorf(Pos{f, 3, 501}, "x").Render()
	lines := strings.Split(long, "\n")
	if len(long) > 600 || strings.Index(lines[2], "HERE") != strings.Index(lines[3], "^") {
		t.Errorf("a long line is shown as %s", long)
	}
	if got := Warningf(Pos{}, "x").Render(); got != "warning: x\n" {
		t.Error(got)
	}
}

func TestSecretsInSnippets(t *testing.T) {
	for line, want := range map[string]string{
		"db_password: hunter2":             "db_password: *******",
		"h1 ansible_password=hunter2 a=b":  "h1 ansible_password=***********",
		`{"api_key": "abc", "x": 1}`:       `{"api_key": *****, "x": 1}`,
		"password: '{{ vault | nosuch }}'": "password: '{{ vault | nosuch }}'",
		"when: token == 'x'":               "when: token == 'x'",
		"name: set the password":           "name: set the password",
		"Token: ż":                         "Token: *",
	} {
		f := NewFile("f", []byte(line))
		if got := strings.Split(Errorf(Pos{f, 1, 1}, "x").Render(), "\n")[1]; got != "  1 | "+want {
			t.Errorf("%s is shown as %s", line, got)
		}
	}
}

func TestDiagnostics(t *testing.T) {
	a, b := NewFile("a", nil), NewFile("b", nil)
	var ds Diagnostics
	ds.Add(Errorf(Pos{b, 1, 1}, "four"), nil, Warningf(Pos{a, 2, 1}, "three"), Errorf(Pos{a, 1, 5}, "two"),
		Errorf(Pos{a, 1, 2}, "one"), Errorf(Pos{a, 1, 2}, "one"), Errorf(Pos{}, "zero"))
	want := "zero\na:1:2: one\na:1:5: two\na:2:1: three\nb:1:1: four"
	if got := ds.Sort().Error(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	same := Diagnostics{Warningf(Pos{a, 1, 1}, "x"), Errorf(Pos{a, 1, 1}, "y"), Errorf(Pos{a, 1, 1}, "x")}.Sort()
	if len(same) != 2 || len(same.Errors()) != 2 {
		t.Errorf("an error is lost behind a warning: %v", same)
	}
	if len(ds.Errors()) != 5 || len(ds.Warnings()) != 1 || ds.Err() == nil || ds.Warnings().Err() != nil {
		t.Error("errors and warnings are not told apart")
	}
}

func TestNearest(t *testing.T) {
	words := []string{"copy", "command", "hosts", "notify", "when", "a"}
	for word, want := range map[string]string{
		"copyy": "copy", "cpoy": "copy", "COPY": "copy", "comand": "command", "notfy": "notify", "whne": "when",
		"zebra": "", "": "a", "x": "a", "template": "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Nearest("b", []string{"c", "a"}); got != "a" {
		t.Errorf("a tie goes to %q", got)
	}
}

// TestAdvance finds the character ! of a scalar's value in the file.
func TestAdvance(t *testing.T) {
	for text, want := range map[string]string{
		"a: x y !":                             "f:1:8",
		"a: 'x ''y'' !'":                       "f:1:13",
		`a: "x \"y\" \x41\u0042\U00000043\t!"`: "f:1:35",
		"a: |\n  one\n    two\n  x !\n":        "f:4:5",
		"a: >-\n  one\n  two !\n":              "f:3:7",
		"a: >\n  one\n\n  two\n    more !\n":   "f:5:10",
		"a: one\n  two\n  three !\n":           "f:3:9",
		"a: \"one \\\n    two !\"\n":           "f:2:9",
		"a: 'one\n    two !'\n":                "f:2:9",
		"a: \"one\n\n    two !\"\n":            "f:3:9",
		"a: ż!":                                "f:1:5",
		"a: !!str x!":                          "f:1:11",
		"a: &n !unsafe \"x!\"":                 "f:1:17",
		"a: &n |\n  x!":                        "f:2:4",
	} {
		f := NewFile("f", []byte(text))
		docs, ds := ParseYAML(f)
		if ds != nil {
			t.Fatalf("%q: %v", text, ds)
		}
		n := docs[0].Content[0].Content[1]
		at := TextPos(f, n)
		if got := Advance(at, n.Value, strings.IndexByte(n.Value, '!')).String(); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestAdvanceElsewhere(t *testing.T) {
	f := NewFile("f", []byte("other text\n"))
	at := Pos{f, 1, 3}
	if got := Advance(at, "not there", 4); got != at {
		t.Errorf("a text that is not in the file is at %v", got)
	}
	if got := Advance(Pos{NewFile("f", nil), 1, 3}, "ab\ncd", 4); got.Line != 2 || got.Col != 2 {
		t.Errorf("without a text to look at: %v", got)
	}
	if got := Advance(Pos{}, "ab", 1); got != (Pos{}) {
		t.Error(got)
	}
	if got := Advance(Pos{f, 9, 9}, "ab", 7); got.Line != 9 {
		t.Error(got)
	}
}

func TestTree(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree := Tree{Embedded: fstest.MapFS{"playbooks/a.yaml": {Data: []byte("carried")}, "playbooks/b.yaml": {}}}
	for name, want := range map[string]string{path: "disk", "builtin:/playbooks/a.yaml": "carried",
		"builtin:/../playbooks/./a.yaml": "carried"} {
		got, err := tree.ReadFile(name)
		if err != nil || string(got) != want || !tree.IsFile(name) || tree.IsDir(name) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		f, err := tree.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	if !tree.IsDir("builtin:/") || !tree.IsDir("builtin:/playbooks") || !tree.IsDir(dir) || tree.IsFile(dir) ||
		tree.IsFile(path+"x") {
		t.Error("files and folders are confused")
	}
	for pattern, want := range map[string]int{"builtin:/playbooks/*.yaml": 2, dir + "/*": 1, "builtin:/nothing*": 0} {
		if found, err := tree.Glob(pattern); err != nil || len(found) != want {
			t.Errorf("%s: %v, %v", pattern, found, err)
		}
	}
	for _, d := range []string{dir, "builtin:/playbooks"} {
		if list, err := tree.ReadDir(d); err != nil || len(list) == 0 {
			t.Errorf("%s: %v, %v", d, list, err)
		}
	}
	var bare Tree
	if _, err := bare.ReadFile("builtin:/x"); err == nil {
		t.Error("a tree that carries nothing has a file")
	}
	_, err1 := bare.Open("builtin:/x")
	_, err2 := bare.Stat("builtin:/x")
	_, err3 := bare.ReadDir("builtin:/x")
	_, err4 := bare.Glob("builtin:/x")
	if err1 == nil || err2 == nil || err3 == nil || err4 == nil {
		t.Error(err1, err2, err3, err4)
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Join("/a", "b"), "/a/b"},
		{Join("/a", "/b"), "/b"},
		{Join("builtin:/a", "../../b"), "builtin:/b"},
		{Join("/a", "builtin:/b"), "builtin:/b"},
		{Dir("builtin:/a/b"), "builtin:/a"},
		{Dir("builtin:/a"), "builtin:/"},
		{Dir("/a/b"), "/a"},
		{Clean("builtin:a//b/"), "builtin:/a/b"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
	if !IsAbs("builtin:x") || !IsAbs("/x") || IsAbs("x") {
		t.Error("what is absolute")
	}
}

func TestParseYAML(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n---\nb: 2\n": "",
		"a: [1\nb: 2\n":     "f:1:4: Syntax Error while loading YAML: did not find expected ',' or ']' (this bracket is not closed)",
		"a: 1\na: 2\n":      `f:2:1: key "a" is set twice in this mapping (first on line 1) (remove or rename one: the last would silently win)`,
		"a: \x00":           "f:1:4: a zero byte: this is not a text file (is this the right file?)",
		"ż: \xff":           "f:1:4: byte 0xff is not valid UTF-8 (save the file as UTF-8)",
		"x: *a b\n":         "f:1:4: ",
		"# c\n\n  *a\n":     "f:3:3: alias *a has no anchor",
		"a: !x y":           "f:1:4: unknown YAML tag !x",
		"a: &a [*a]":        "f:1:8: alias *a is inside the anchor &a that it means (a value cannot contain itself)",
		strings.Repeat("[", 300) + strings.Repeat("]", 300): "nested too deep (more than 200 levels)",
	} {
		_, ds := ParseYAML(NewFile("f", []byte(text)))
		if (want == "") != (ds == nil) || ds != nil && !strings.Contains(ds.Error(), want) {
			t.Errorf("%q: %v, want %s", text, ds, want)
		}
	}
}

// TestSyntaxErrorLater has the error far down in a long file.
func TestSyntaxErrorLater(t *testing.T) {
	text := strings.Repeat("- name: a\n  command: b\n", 3000) + "- name: c\n  command: 'd\n" +
		strings.Repeat("- name: e\n", 50)
	_, ds := ParseYAML(NewFile("f", []byte(text)))
	if len(ds) != 1 || ds[0].Pos.String() != "f:6002:12" {
		t.Errorf("%v", ds)
	}
}

// breaks matches the line breaks of YAML.
var breaks = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]")

func FuzzParseYAML(f *testing.F) {
	for _, s := range []string{site, "a: 'x", "a: [1, {b: \"c\\q\"", "a: &a [*a]", "\ta: b", "a:b\n c: d", "- - {{ x }}",
		"a: |\n  x\n b", "? a\n: b", "%YAML", "---\n...\n---", "a: *b", "\ufeffa: 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := NewFile("f", []byte(text))
		docs, ds := ParseYAML(file)
		for _, d := range ds {
			if last := len(breaks.FindAllString(text, -1)) + 1; d.Pos.Line > last {
				t.Errorf("%q: line %d of %d: %s", text, d.Pos.Line, last, d.Summary)
			}
			if d.Render() == "" {
				t.Error("nothing is said")
			}
		}
		for _, doc := range docs {
			scalars(doc, 0, func(n *yaml.Node) {
				at := TextPos(file, n)
				for off := range len(n.Value) + 1 {
					if got := Advance(at, n.Value, off); got.Line < at.Line {
						t.Errorf("%q: byte %d of %q is at %v, before %v", text, off, n.Value, got, at)
					}
				}
			})
		}
	})
}

func scalars(n *yaml.Node, depth int, f func(*yaml.Node)) {
	if n.Kind == yaml.ScalarNode && len(n.Value) < 100 {
		f(n)
	}
	for _, c := range n.Content {
		if depth < 100 {
			scalars(c, depth+1, f)
		}
	}
}

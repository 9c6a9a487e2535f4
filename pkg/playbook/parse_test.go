package playbook

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

func isModule(name string) bool {
	return strings.Contains(" debug command copy include_tasks include_role import_tasks import_role include ",
		" "+name+" ")
}

func parsed(t *testing.T, text string) (*Playbook, source.Diagnostics) {
	t.Helper()
	return NewParser(isModule).Playbook(source.NewFile("site.yml", []byte(text)))
}

// TestDiagnostics compares the diagnostics for the files of testdata with the comments ### on the same lines. The
// comments are patterns for the summary or the help.
func TestDiagnostics(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := map[int]string{}
		for i, line := range strings.Split(string(text), "\n") {
			if _, pattern, ok := strings.Cut(line, "### "); ok {
				want[i+1] = pattern
			}
		}
		_, ds := NewParser(isModule).Playbook(source.NewFile(path, text))
		met := map[int]bool{}
		for _, d := range ds {
			pattern := want[d.Pos.Line]
			if pattern == "" && strings.Contains(d.Summary, "loops on") {
				continue // is reported at the task, above the loop
			}
			if pattern == "" || !regexp.MustCompile(pattern).MatchString(d.Summary+"\n"+d.Help) {
				t.Errorf("%s: %s (%s), want %q", d.Pos, d.Summary, d.Help, pattern)
			}
			met[d.Pos.Line] = true
		}
		for line, pattern := range want {
			if !met[line] {
				t.Errorf("%s:%d: nothing found, want %q", path, line, pattern)
			}
		}
	}
}

func TestLoopsOnImports(t *testing.T) {
	_, ds := parsed(t, "- hosts: all\n  tasks:\n    - import_tasks: a.yml\n      loop: [1]\n")
	if ds.Err() == nil || !strings.Contains(ds.Err().Error(), "You cannot use loops on 'import_tasks' statements") {
		t.Error(ds)
	}
}

func TestWholeFiles(t *testing.T) {
	p := NewParser(nil)
	file := func(text string) *source.File { return source.NewFile("f.yml", []byte(text)) }
	for text, want := range map[string]string{
		"":                            "the playbook is empty",
		"a: b":                        "a playbook must be a list of plays",
		"- hosts: a\n---\n- hosts: b": "a second YAML document",
		"- [":                         "Syntax Error while loading YAML",
	} {
		_, ds := p.Playbook(file(text))
		if ds.Err() == nil || !strings.Contains(ds.Err().Error(), want) {
			t.Errorf("%q: %v, want %q", text, ds.Err(), want)
		}
	}
	if steps, ds := p.Tasks(file("# nothing\n"), false); steps != nil || ds.Err() != nil {
		t.Error(steps, ds)
	}
	if _, ds := p.Tasks(file("- hosts: all\n  tasks: []\n"), false); ds.Err() == nil {
		t.Error("a playbook is taken as tasks")
	}
	if v, ds := p.Vars(file("")); v.Len() != 0 || ds.Err() != nil {
		t.Error(v, ds)
	}
	if _, ds := p.Vars(file("- 1")); ds.Err() == nil {
		t.Error("a list is taken as variables")
	}
}

func TestMeta(t *testing.T) {
	p := NewParser(nil)
	m, ds := p.Meta(source.NewFile("main.yml",
		[]byte("dependencies: [a, {role: b, x: 1}]\nallow_duplicates: yes\ngalaxy_info: {}\ncollections: [ansible.posix]\n")))
	if ds.Err() != nil || len(m.Dependencies) != 2 || !m.AllowDuplicates {
		t.Errorf("%+v %v", m, ds)
	}
	for text, want := range map[string]string{
		"dependencis: []": "meta/main.yml has no key", "[a]": "must be a mapping",
	} {
		if _, ds := p.Meta(source.NewFile("main.yml", []byte(text))); ds.Err() == nil ||
			!strings.Contains(ds.Err().Error(), want) {
			t.Errorf("%q: %v", text, ds)
		}
	}
	if m, ds := p.Meta(source.NewFile("main.yml", nil)); m == nil || ds.Err() != nil {
		t.Error(m, ds)
	}
}

func TestTree(t *testing.T) {
	pb, ds := parsed(t, `- name: p
  hosts: [a, b]
  vars: {x: 1, y: 2}
  pre_tasks: [{debug: {}}]
  roles: [r, {role: s, p: 1, vars: {v: 1}, tasks_from: t}]
  tasks:
    - &t {name: one, command: "true", loop: [1], loop_control: {loop_var: v}, register: r}
    - block: [*t]
      when: a
    - local_action: command x y=z
    - include_tasks: f.yml
  handlers: [{name: h, debug: {}, listen: [l]}]
- import_playbook: other.yml
`)
	if ds.Err() != nil || len(pb.Items) != 2 {
		t.Fatal(ds, pb)
	}
	play := pb.Items[0].(*Play)
	if diff := cmp.Diff([]string{"x", "y"}, play.Vars.Names); diff != "" {
		t.Error(diff)
	}
	task := play.Tasks[0].(*Task)
	if task.Name != "one" || task.Module != "command" || task.Loop.Var.Text() != "v" || task.Register != "r" {
		t.Errorf("%+v", task)
	}
	block := play.Tasks[1].(*Block)
	if len(block.When) != 1 || len(block.Body) != 1 || block.At().Line != 8 || task.At().Line != 7 {
		t.Errorf("%+v", block)
	}
	local := play.Tasks[2].(*Task)
	if !local.Local || local.Module != "command" || local.Args.Text() != "x y=z" {
		t.Errorf("%+v", local)
	}
	if inc := play.Tasks[3].(*Include); inc.Static || inc.Role || inc.Args.Text() != "f.yml" {
		t.Errorf("%+v", inc)
	}
	if h := play.Handlers[0].(*Task); h.Listen[0] != "l" {
		t.Errorf("%+v", h)
	}
	if r := play.Roles[1]; r.Name.Text() != "s" || r.Params.Len() != 1 || r.From.Tasks.Text() != "t" || r.Vars.Len() != 1 {
		t.Errorf("%+v", r)
	}
	if imp := pb.Items[1].(*ImportPlaybook); imp.Path.Text() != "other.yml" || imp.Path.TextAt().Line != 13 {
		t.Errorf("%+v", imp)
	}
}

func TestApply(t *testing.T) {
	value := func(text string) Value {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		return Value{n.Content[0], source.NewFile("f", []byte(text))}
	}
	a, ds := NewParser(nil).ApplyAttrs(value("{name: x, become: true, tags: [a], vars: {v: 1}}"))
	if ds.Err() != nil || !a.Become.IsSet() || len(a.Tags) != 1 || a.Vars.Len() != 1 {
		t.Errorf("%+v %v", a, ds)
	}
	for _, bad := range []string{"text", "{bcome: true}", "{loop: [1]}"} {
		if _, ds := NewParser(nil).ApplyAttrs(value(bad)); ds.Err() == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestValue(t *testing.T) {
	var unset Value
	if unset.IsSet() || !unset.IsNull() || unset.Text() != "" || unset.Kind() != 0 || unset.Elements() != nil ||
		unset.Get("a").IsSet() || unset.TextAt().Line != 0 {
		t.Error("an unset value has something")
	}
	var none *Vars
	if none.Len() != 0 {
		t.Error("no variables have a length")
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]Word{
		`a=1 b="two words" c='x'`:  {{Key: "a", Value: "1"}, {Key: "b", Value: "two words"}, {Key: "c", Value: "x"}},
		`msg={{ a + "b c" }} rest`: {{Key: "msg", Value: `{{ a + "b c" }}`}, {Key: "", Value: "rest"}},
		`x={% if a %} b {% endif %}`: {{Key: "x", Value: "{% if a %}"}, {Key: "", Value: "b"},
			{Key: "", Value: "{% endif %}"}},
		`q="a \" b"`:       {{Key: "q", Value: `a " b`}},
		`a/b=c`:            {{Key: "", Value: "a/b=c"}},
		``:                 nil,
		"  spaced \t out ": {{Key: "", Value: "spaced"}, {Key: "", Value: "out"}},
		`e=`:               {{Key: "e", Value: ""}},
		`half="a"b"`:       nil,
	} {
		got, err := SplitWords(text)
		if text == `half="a"b"` {
			if err == nil {
				t.Errorf("%s: no error", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Word{}, "At", "ValueAt")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	known := func(k string) bool { return k == "chdir" || k == "creates" }
	rest, words := ExtractWords(`chdir=/tmp echo  a=b "c d" creates='/x y'`, known)
	if rest != `echo  a=b "c d"` || len(words) != 2 || words[1].Value != "/x y" {
		t.Errorf("%q %v", rest, words)
	}
	for text, want := range map[string]string{
		"echo a \\\n  b\n":            "echo a  b\n",
		"echo a \\\nb":                "echo a b",
		"echo a \\\n b chdir=/tmp\n":  "echo a b",
		"echo 'a \\\n b'\n\n":         "echo 'a \\\n b'\n\n",
		"cat <<E\n  x\\\n y\nE\n":     "cat <<E\n  x\\\n y\nE\n",
		"creates=/x\n chdir=/y\nls\n": "ls\n",
		`echo it\'s chdir=/x one\"s`:  `echo it\'s one\"s`,
	} {
		if rest, _ := ExtractWords(text, known); rest != want {
			t.Errorf("%q leaves %q, not %q", text, rest, want)
		}
	}
	if rest, words := ExtractWords(`echo "open`, known); rest != `echo "open` || words != nil {
		t.Errorf("%q %v", rest, words)
	}
}

func TestKeywordsAreDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keywords() {
		if k.Doc == "" || k.On == 0 || k.Type == "" || k.On.String() == "" || seen[k.Name] {
			t.Errorf("%+v", k)
		}
		seen[k.Name] = true
		if unsupported()[k.Name] != "" {
			t.Errorf("%s is documented and refused", k.Name)
		}
	}
}

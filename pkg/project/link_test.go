package project

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/module"
	"kubekey/pkg/module/account"
	"kubekey/pkg/module/exec"
	"kubekey/pkg/module/file"
	"kubekey/pkg/module/flow"
	"kubekey/pkg/module/image"
	"kubekey/pkg/module/kube"
	"kubekey/pkg/module/net"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

func newLinker(t *testing.T, sel Selection) *Linker {
	t.Helper()
	reg, err := module.NewRegistry(exec.Modules(), file.Modules(), flow.Modules(), kube.Modules(), account.Modules(),
		image.Modules(), net.Modules(), pki.Modules())
	if err != nil {
		t.Fatal(err)
	}
	e := template.New(expr.New(expr.Options{}, library.Standard()), source.Tree{})
	nowhere := func(string) source.Pos { return source.Pos{} }
	extra := vars.Templates("command line", value.NewDict("given", "x"), e, nowhere, nil)
	return New(Options{Engine: e, Modules: reg, Selection: sel, Extra: []*vars.Layer{extra}})
}

// unpack writes an archive to a directory and returns its path.
func unpack(t *testing.T, a *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range a.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func link(t *testing.T, archive string, sel Selection) (*Linker, *Playbook, source.Diagnostics) {
	t.Helper()
	dir := unpack(t, txtar.Parse([]byte(archive)))
	l := newLinker(t, sel)
	pb, ds := l.Playbook(filepath.Join(dir, "site.yml"))
	return l, pb, ds
}

// TestLanguageCases links the cases of test/language. Those that exit with 4 before anything runs must have errors,
// and the others none.
func TestLanguageCases(t *testing.T) {
	root := filepath.Join("..", "..", "test", "language", "testdata")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(filepath.Dir(path)) == "settings" { // the commands read these files
			return err
		}
		a, err := txtar.ParseFile(path)
		if err != nil {
			return err
		}
		exit, inventory := 0, false
		for _, line := range strings.Split(string(a.Comment), "\n") {
			word, rest, _ := strings.Cut(line, " ")
			if word == "exec" || word == "args" && strings.Contains(rest, "-e ") {
				return nil // the values of -e are not known here
			}
			if word == "exit" {
				exit, _ = strconv.Atoi(rest)
			}
			inventory = inventory || word == "args" && strings.Contains(rest, "-i ")
		}
		if exit == 4 && inventory {
			return nil // the error is in the inventory
		}
		bad := exit == 4 && !strings.Contains(path, "unreachable")
		site := filepath.Join(unpack(t, a), "site.yml")
		l := newLinker(t, Selection{})
		plugins, ds := Plugins(l.Tree, []string{site}, nil)
		env, more := l.Engine.Env().With(plugins)
		l.Engine = template.New(env, l.Tree)
		ds = append(ds, more...)
		_, more = l.Playbook(site)
		ds = append(ds, more...)
		if (ds.Err() != nil) != bad {
			t.Errorf("%s: %v", path, ds.Err())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBrokenFiles truncates every playbook of test/language at each line, and also removes each line. In all cases
// linking must end, without a panic.
func TestBrokenFiles(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "test", "language", "testdata", "*", "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatal(err, len(paths))
	}
	l := newLinker(t, Selection{})
	dir := t.TempDir()
	n := 0
	try := func(lines ...string) {
		n++
		path := filepath.Join(dir, strconv.Itoa(n)+".yml")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		l.Playbook(path)
	}
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			lines := strings.Split(string(f.Data), "\n")
			for i := 0; f.Name == "site.yml" && i < len(lines); i++ {
				try(lines[:i]...)
				try(append(append([]string(nil), lines[:i]...), lines[i+1:]...)...)
			}
		}
	}
}

func names(steps []Step) []string {
	var out []string
	for _, s := range steps {
		switch s := s.(type) {
		case *Task:
			out = append(out, s.Syntax.Name)
		case *Block:
			out = append(out, names(s.Body)...)
		}
	}
	return out
}

func TestSelection(t *testing.T) {
	for _, c := range []struct {
		tags, only, skip string
		runs             bool
	}{
		{"", "", "", true}, {"a", "", "", true}, {"never", "", "", false}, {"never,a", "", "", false},
		{"never,a", "a", "", true}, {"a", "b", "", false}, {"a,b", "b", "", true}, {"", "b", "", false},
		{"always", "b", "", true}, {"always", "b", "always", false}, {"always,b", "b", "b", false},
		{"a", "tagged", "", true}, {"", "tagged", "", false}, {"never,a", "tagged", "", false},
		{"", "untagged", "", true}, {"a", "untagged", "", false}, {"a", "all", "", true}, {"never", "all", "", false},
		{"a", "", "a", false}, {"a", "", "tagged", false}, {"", "", "untagged", false}, {"", "", "tagged", true},
		{"a", "", "all", false}, {"always", "", "all", true}, {"always", "", "all,always", false},
		{"always,never", "", "", false}, {"always,never", "always", "", true},
	} {
		split := func(s string) []string {
			if s == "" {
				return nil
			}
			return strings.Split(s, ",")
		}
		if got := (Selection{split(c.only), split(c.skip)}).Runs(split(c.tags)); got != c.runs {
			t.Errorf("tags %q, --tags %q, --skip-tags %q: runs %v", c.tags, c.only, c.skip, got)
		}
	}
}

func TestTagsSelectWhenLinking(t *testing.T) {
	_, pb, ds := link(t, `-- site.yml --
- hosts: all
  tags: "{{ given }}"
  roles: [{role: r, tags: role}]
  tasks:
    - {name: one, debug: {}, tags: t}
    - {name: two, debug: {}}
-- roles/r/tasks/main.yml --
- {name: in role, debug: {}}
`, Selection{Tags: []string{"t", "role"}})
	if ds.Err() != nil {
		t.Fatal(ds)
	}
	if diff := cmp.Diff([]string{"in role", "one"}, names(pb.Plays[0].Main)); diff != "" {
		t.Error(diff)
	}
	if pb.Plays[0].Setup != nil {
		t.Error("gathering carries more than the play's tags")
	}
	role := pb.Plays[0].Main[0].(*Block).Body[0].(*Task)
	if diff := cmp.Diff([]string{"x", "role"}, role.Attrs.Tags); diff != "" {
		t.Error(diff)
	}
	if role.Role.Name != "r" || len(role.SearchPath) < 2 || len(role.Trace) != 1 {
		t.Errorf("%+v", role)
	}
}

func TestAttributesInherit(t *testing.T) {
	_, pb, ds := link(t, `-- site.yml --
- hosts: all
  become: true
  environment: {A: 1}
  tasks:
    - block:
        - {name: one, debug: {}, become: false, when: b, environment: {C: 3}, notify: h}
      when: a
      environment: {B: 2}
  handlers: [{name: h, debug: {}}]
`, Selection{})
	if ds.Err() != nil {
		t.Fatal(ds)
	}
	task := pb.Plays[0].Main[0].(*Block).Body[0].(*Task)
	if len(task.Attrs.When) != 2 || task.Attrs.When[0].Src != "a" || len(task.Attrs.Environment) != 3 ||
		len(task.Attrs.Notify) != 1 {
		t.Errorf("%+v", task.Attrs)
	}
	outer := task.Attrs.Outer(Become)
	if v, _ := outer.Value[Become].Static(); v != true || outer.Outer(Become) == nil {
		t.Errorf("beyond the task become is %v", v)
	}
	if v := outer.Outer(Become).Value[Become]; v != nil {
		t.Errorf("beyond the play become is %v", v)
	}
	if task.Attrs.Outer(Port) != nil {
		t.Error("nobody gives a port")
	}
}

func TestAttrNames(t *testing.T) {
	seen := map[string]bool{}
	for a := Become; a < attrCount; a++ {
		if a.String() == "" || seen[a.String()] {
			t.Errorf("%d has the name %q", a, a)
		}
		seen[a.String()] = true
	}
	if RunOnce.Type() != playbook.Bool || Timeout.Type() != playbook.Seconds || Timeout.String() != "timeout" {
		t.Error("keywords are mixed up")
	}
}

func TestHandlersAreFound(t *testing.T) {
	one, two := &Role{Name: "one"}, &Role{Name: "two"}
	all := []*Task{
		{Known: "restart", Role: one}, {Known: "restart", Role: two}, {Known: "restart"},
		{Known: "l", Listen: []string{"topic"}}, {Known: "l", Listen: []string{"topic"}},
		{Listen: []string{"topic"}}, {Listen: []string{"topic"}, Role: one},
	}
	for _, c := range []struct {
		name string
		from *Role
		want []int
	}{
		{"restart", nil, []int{2}}, {"restart", one, []int{0}}, {"one : restart", nil, []int{0}},
		{"topic", nil, []int{4, 5, 6}}, {"one : topic", nil, []int{6}}, {"none", nil, nil},
	} {
		var got []int
		for _, h := range FindHandlers(all, c.name, c.from) {
			for i := range all {
				if all[i] == h {
					got = append(got, i)
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestDynamicIncludes(t *testing.T) {
	l, pb, ds := link(t, `-- site.yml --
- hosts: all
  tasks:
    - include_tasks: {file: inc.yml, apply: {tags: t, become: true}}
      vars: {v: 1}
    - include_role: {name: r}
-- inc.yml --
- {name: inside, debug: {}}
-- broken.yml --
- nope: {}
-- roles/r/tasks/main.yml --
- {name: in role, debug: {}}
-- roles/r/tasks/other.yml --
- {name: in other, debug: {}}
-- roles/r/handlers/main.yml --
- {name: h, debug: {}}
`, Selection{})
	if ds.Err() != nil {
		t.Fatal(ds)
	}
	play := pb.Plays[0]
	inc, role := play.Main[0].(*Task), play.Main[1].(*Task)
	b, path, ds := l.IncludeTasks(inc, "inc.yml")
	if ds.Err() != nil || !strings.HasSuffix(path, "/inc.yml") {
		t.Fatal(path, ds)
	}
	inside := b.Body[0].(*Task)
	if inside.Attrs.Value[Become] == nil || !cmp.Equal(inside.Attrs.Tags, []string{"t"}) ||
		inside.Trace[0].What != "include_tasks inc.yml" {
		t.Errorf("%+v", inside)
	}
	if _, _, ds := l.IncludeTasks(inc, "broken.yml"); ds.Err() == nil {
		t.Error("a broken file is included")
	}
	if _, _, ds := l.IncludeTasks(inc, "/nope.yml"); ds.Err() == nil ||
		!strings.Contains(ds.Err().Error(), "Could not find or access '/nope.yml'") {
		t.Error(ds)
	}
	b, _, ds = l.IncludeRole(role, RoleRequest{Name: "r", Tasks: "other", NoDuplicates: true})
	if ds.Err() != nil || names(b.Body)[0] != "in other" || b.Body[0].(*Block).Once == "" || len(play.Handlers) != 1 {
		t.Errorf("%+v %v", b, ds)
	}
	if _, _, ds := l.IncludeRole(role, RoleRequest{Name: "nope"}); ds.Err() == nil {
		t.Error("a role that is not there is included")
	}
}

func TestConditions(t *testing.T) {
	_, pb, ds := link(t, `-- site.yml --
- hosts: all
  tasks:
    - debug: {}
      when: [true, 1, "n == 5", "{{ text }}", "{{ n }} == 5", "{{ n }}", "{{ '' }}", nope, "{{ nope }}", "{{ '((' }}", "{{ data }}", "'{{ data }}' == 'n == 5'"]
`, Selection{})
	if ds.Err() != nil {
		t.Fatal(ds)
	}
	scope := &vars.Scope{}
	v := scope.New(context.Background(), "h", nil, nil, vars.Static{Play: []*vars.Layer{
		vars.Values("v", value.NewDict("n", 5, "data", "n == 5")),
		vars.Compiled("file", []string{"text"}, map[string]*template.Data{"text": template.Literal("n == 6")}, nil),
	}}, nil)
	want := []string{"true", "true", "true", "false", "true", "true", "false", "error", "error", "error", "error", "true"}
	for i, c := range pb.Plays[0].Main[0].(*Task).Attrs.When {
		got, err := c.Holds(context.Background(), v)
		text := strconv.FormatBool(got)
		if err != nil {
			text = "error"
		}
		if text != want[i] {
			t.Errorf("%s is %s (%v), want %s", c.Src, text, err, want[i])
		}
	}
}

func TestVarsFile(t *testing.T) {
	dir := unpack(t, txtar.Parse([]byte("-- vars/a.yml --\na: 1\n-- empty.yml --\n-- bad.yml --\n- 1\n")))
	l := newLinker(t, Selection{})
	p := &Play{Dir: dir, Roles: &RoleList{}}
	path, ok := l.FindVarsFile(p, "a.yml")
	if !ok {
		t.Fatal("vars/a.yml is not found")
	}
	if layer, ds := l.VarsFile(path); ds.Err() != nil || layer.Len() != 1 {
		t.Error(layer, ds)
	}
	if layer, ds := l.VarsFile(filepath.Join(dir, "empty.yml")); ds.Err() != nil || layer.Len() != 0 {
		t.Error(layer, ds)
	}
	for _, bad := range []string{"bad.yml", "nope.yml", "vars"} {
		if _, ds := l.VarsFile(filepath.Join(dir, bad)); ds.Err() == nil {
			t.Errorf("%s is read", bad)
		}
	}
	if _, ok := l.FindVarsFile(p, "nope.yml"); ok {
		t.Error("a file that is not there is found")
	}
}

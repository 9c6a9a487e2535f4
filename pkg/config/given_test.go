package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/inventory"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

func engine() *template.Engine { return template.New(expr.New(expr.Options{}), source.Tree{}) }

// write creates a file in its own folder.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := value.JSON(v, value.JSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// seen evaluates a name with only these layers.
func seen(t *testing.T, layers []*vars.Layer, e *template.Engine, name string) string {
	t.Helper()
	scope := &vars.Scope{Extra: layers, Engine: e}
	v, ok, err := scope.New(context.Background(), "", nil, nil, vars.Static{}, nil).Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return "undefined"
	}
	return jsonOf(t, v)
}

func TestLayersOfTheCommandLine(t *testing.T) {
	file := write(t, "c.yaml", "a: {b: 1, c: [x, y]}\nd: from config\nu: !unsafe '{{ d }}'\n")
	more := write(t, "more.yaml", "a: {b: 2}\n")
	for _, c := range []struct {
		configs, extra, sets []string
		name, want           string
	}{
		{[]string{file}, nil, nil, "a", `{"b": 1, "c": ["x", "y"]}`},
		{[]string{file, more}, nil, nil, "a", `{"b": 2, "c": ["x", "y"]}`},
		{[]string{file}, []string{"d=words"}, nil, "d", `"words"`},
		{[]string{file}, []string{"d=words", `{"d": [1]}`}, nil, "d", `[1]`},
		{[]string{file}, []string{"@" + more}, nil, "a", `{"b": 2}`},
		{[]string{file}, nil, []string{"a.c[1]=z"}, "a", `{"b": 1, "c": ["x", "z"]}`},
		{[]string{file}, []string{"a={}"}, []string{"a.c[1]=z"}, "a", "error"},
		{nil, nil, []string{"n[2].k=1.30"}, "n", `[null, null, {"k": "1.30"}]`},
		{nil, nil, []string{"n=[1, two]"}, "n", `[1, "two"]`},
		{[]string{file}, nil, nil, "u", `"{{ d }}"`},
		{nil, []string{"t='{{ 1 + 1 }}'"}, nil, "t", `2`},
		{nil, nil, nil, "d", "undefined"},
	} {
		r, e := Reader{Secrets: &redact.Set{}}, engine()
		g, ds := r.Given(c.configs, c.extra, c.sets)
		if ds.Err() != nil {
			t.Fatal(ds)
		}
		layers, ds := r.Layers(g, e)
		got := "error"
		if ds.Err() == nil {
			got = seen(t, layers, e, c.name)
		}
		if got != c.want {
			t.Errorf("-c %v -e %v --set %v: %s is %s, want %s (%v)", c.configs, c.extra, c.sets, c.name, got, c.want, ds)
		}
	}
}

func TestApplyMergesByPrecedence(t *testing.T) {
	s := load(t, schemaText)
	for _, c := range []struct {
		extra, sets []string
		path, want  string
	}{
		{nil, nil, "name", `"inventory"`},
		{[]string{"port=1"}, nil, "port", `"1"`},
		{[]string{"name=extra"}, []string{"name=set"}, "name", `"set"`},
		{nil, []string{"deep.active=no"}, "deep", `{"active": false, "list": [{"path": "/a"}], "nothing": null}`},
		{nil, []string{"deep.list[0].mode=0644"}, "deep",
			`{"active": true, "list": [{"path": "/a", "mode": "0644"}], "nothing": null}`},
		{nil, []string{"deep.list[0].mode=1", "deep.list[1].path=/b"}, "deep",
			`{"active": true, "list": [{"path": "/a", "mode": 1}, {"path": "/b"}], "nothing": null}`},
		{[]string{"other=1"}, []string{"another=2"}, "other", "undefined"},
	} {
		r := Reader{Secrets: &redact.Set{}}
		g, ds := r.Given([]string{write(t, "c.yaml", "deep: {list: [{path: /a}]}\n")}, c.extra, c.sets)
		if ds.Err() != nil {
			t.Fatal(ds)
		}
		merged, ds := s.Apply(g, file(t, "group_vars/all.yml", "name: inventory\n"))
		if ds.Err() != nil {
			t.Fatal(ds)
		}
		got := "undefined"
		if v, ok := merged.Get(c.path); ok {
			got = jsonOf(t, v)
		}
		if got != c.want {
			t.Errorf("-e %v --set %v: %s is %s, want %s", c.extra, c.sets, c.path, got, c.want)
		}
		e := engine()
		layers := r.Others(g, s, e)
		for _, name := range []string{"name", "port", "deep"} {
			if got := seen(t, layers, e, name); got != "undefined" {
				t.Errorf("%s is a key of the config, and a variable beside it: %s", name, got)
			}
		}
		if len(c.sets) > 0 && c.sets[0] == "another=2" &&
			(seen(t, layers, e, "another") != "2" || seen(t, layers, e, "other") != `"1"`) {
			t.Error("variables that the schema does not describe are lost")
		}
	}
}

func TestSetNamesKeysThatAreNearMisses(t *testing.T) {
	_, ds := load(t, schemaText).Apply(Given{sets: []string{"prot=1"}})
	if err := ds.Err(); err == nil || !strings.Contains(err.Error(), `did you mean "port"?`) {
		t.Errorf("--set prot=1: %v", err)
	}
}

func TestGivenReportsAllProblemsWithoutTheText(t *testing.T) {
	secrets := &redact.Set{}
	_, ds := Reader{Secrets: secrets}.Given(
		[]string{"/nowhere.yaml", write(t, "c.yaml", "1a: x\npassword:hunter22: 1\n")},
		[]string{"hunter22", "a=1 a=hunter22", `{"b": hunter22 x: }`, "@/nowhere.yaml"}, nil)
	if len(ds) < 6 {
		t.Errorf("of seven problems these are found: %v", ds)
	}
	for _, d := range ds {
		if shown := secrets.Text(d.Error()); strings.Contains(shown, "hunter22") {
			t.Errorf("a value is shown: %s", shown)
		}
	}
}

func TestInventoryPartsAreOfTheGroupAll(t *testing.T) {
	dir := t.TempDir()
	hosts := filepath.Join(dir, "hosts.yaml")
	text := "all:\n  vars: {name: all, other: 1}\n  children:\n    web: {hosts: {n1: {port: 1}}, vars: {kind: large}}\n"
	if err := os.WriteFile(hosts, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	inv, ds := inventory.Load(context.Background(), []string{hosts}, inventory.Options{Secrets: &redact.Set{}})
	if ds.Err() != nil {
		t.Fatal(ds)
	}
	s := load(t, schemaText)
	parts, ds := s.InventoryParts(inv, dir)
	if merged := s.Merge(parts...); jsonOf(t, merged.Values) == "" || merged.At("name").Line != 2 {
		t.Errorf("name is set at %v", merged.At("name"))
	} else if v, _ := merged.Get("name"); v != "all" {
		t.Errorf("name is %v", v)
	}
	if len(ds) != 2 {
		t.Fatalf("port and kind are not for all hosts, and reported is: %v", ds)
	}
	for i, want := range []string{"port is set for n1", "kind is set for n1"} {
		if !strings.Contains(ds[0].Error()+ds[1].Error(), want) {
			t.Errorf("%d: %q is missing in %v", i, want, ds)
		}
	}
}

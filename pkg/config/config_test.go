package config

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"kubekey/builtin"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

const schemaText = `
type: object
additionalProperties: false
properties:
  name: {description: What it is called., type: string, minLength: 1, default: web}
  port: {type: integer, maximum: 65535, default: 80}
  range: {type: string, format: cidrs, default: ""}
  kind: {enum: [small, "", large], default: small}
  free: {description: Anything., type: object, default: {a: 1}}
  unset: {type: string}
  deep:
    description: A section.
    type: object
    additionalProperties: false
    properties:
      active: {type: boolean, default: true}
      list:
        type: array
        default: []
        items: {$ref: "#/$defs/entry"}
      nothing: {type: [string, "null"], default: null}
$defs:
  entry:
    type: object
    additionalProperties: false
    required: [path]
    properties: {path: {type: string}, mode: {type: string}}
`

func load(t *testing.T, text string) *Schema {
	t.Helper()
	tree := source.Tree{Embedded: fstest.MapFS{"config/schema.yaml": {Data: []byte(text)}}}
	s, ds := Load(tree, "builtin:/config/schema.yaml")
	if ds.Err() != nil {
		t.Fatal(ds)
	}
	return s
}

// file returns a part that is read from a file.
func file(t *testing.T, name, text string) Part {
	t.Helper()
	f := source.NewFile(name, []byte(text))
	docs, ds := source.ParseYAML(f)
	if ds.Err() != nil {
		t.Fatal(ds)
	}
	v, err := value.FromYAML(docs[0].Content[0])
	if err != nil {
		t.Fatal(err)
	}
	return Part{Name: name, Values: v.(*value.Dict), File: f, Node: docs[0].Content[0]}
}

func TestDefaults(t *testing.T) {
	got, _ := value.JSON(load(t, schemaText).Defaults(), value.JSONOptions{})
	want := `{"name": "web", "port": 80, "range": "", "kind": "small", "free": {"a": 1}, "deep": {"active": true, "list": [], "nothing": null}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMerge(t *testing.T) {
	s := load(t, schemaText)
	c := s.Merge(
		file(t, "low.yaml", "port: 1\nfree: {b: {c: 1}}\ndeep: {list: [{path: /a}, {path: /b}]}"),
		file(t, "high.yaml", "port: 2\nfree: {b: {d: 2}}\ndeep: {list: [{path: /c}]}\nname:"),
		Part{Name: "--set", Values: value.NewDict("deep", value.NewDict("active", false))},
	)
	got, _ := value.JSON(c.Values, value.JSONOptions{})
	want := `{"name": null, "port": 2, "range": "", "kind": "small", "free": {"a": 1, "b": {"c": 1, "d": 2}}, "deep": {"active": false, "list": [{"path": "/c"}], "nothing": null}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	empty := s.Merge(file(t, "c.yaml", "deep:\nfree:"))
	if ds := empty.Check(); ds.Err() != nil {
		t.Errorf("a section without content is an error: %v", ds)
	}
	for at, path := range map[string][]string{"high.yaml:1:7": {"port"}, "low.yaml:2:15": {"free", "b", "c"},
		"high.yaml:3:15": {"deep", "list", "0", "path"}, "": {"deep", "active"}} {
		got := c.At(path...).String()
		if path[0] == "deep" && path[1] == "list" {
			got, at = strings.SplitN(got, ":", 2)[0], "high.yaml"
		}
		if got != at {
			t.Errorf("%v is at %q, want %q", path, got, at)
		}
	}
}

func TestMergeWithoutSchema(t *testing.T) {
	c := Merge(
		file(t, "low.yaml", "a: {b: 1, c: [1, 2]}\nd: low"),
		file(t, "high.yaml", "# above\na: {c: [3], e: 4}"),
	)
	got, _ := value.JSON(c.Values, value.JSONOptions{})
	if want := `{"a": {"b": 1, "c": [3], "e": 4}, "d": "low"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for at, path := range map[string][]string{"high.yaml:2:4": {"a"}, "low.yaml:1:8": {"a", "b"},
		"high.yaml:2:16": {"a", "e"}, "low.yaml:2:4": {"d"}} {
		if got := c.At(path...).String(); got != at {
			t.Errorf("%v is at %q, want %q", path, got, at)
		}
	}
}

func TestUnsafe(t *testing.T) {
	c := load(t, schemaText).Merge(
		file(t, "low.yaml", "name: !unsafe '{{ a }}'\nkind: !unsafe '{{ a }}'\nfree: {b: &x !unsafe '{{ a }}', c: [1, *x], d: !unsafe {e: '{{ a }}'}}\nunset: '{{ a }}'"),
		file(t, "high.yaml", "name: '{{ b }}'\nfree: {f: 1}"),
		Part{Name: "--set", Values: value.NewDict("free", value.NewDict("b", "{{ c }}"))},
	)
	for want, paths := range map[bool][]string{true: {"kind", "free.c.1", "free.d.e"},
		false: {"name", "free.b", "free.c.0", "free.f", "unset", "port", "nowhere"}} {
		for _, path := range paths {
			if got := c.Unsafe(strings.Split(path, ".")); got != want {
				t.Errorf("%s is unsafe: %t", path, got)
			}
		}
	}
	ds := c.Check()
	if len(ds) != 1 || !strings.Contains(ds.Err().Error(), `low.yaml:2:7: kind: "{{ a }}" is not one of small`) {
		t.Errorf("text that is no template is checked as any: %v", ds)
	}
}

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		"prot: 1":                           `c.yaml:1:1: the config has no key "prot" (did you mean "port"?)`,
		"active: true":                      `c.yaml:1:1: the config has no key "active" (it belongs under deep)`,
		"deep: {actve: 1}":                  `c.yaml:1:8: deep has no key "actve" (did you mean "active"?)`,
		"deep: {list: [{path: a, mde: b}]}": `c.yaml:1:25: deep.list[0] has no key "mde" (did you mean "mode"?)`,
		"deep: {list: [{mode: b}]}":         `c.yaml:1:15: deep.list[0]: needs path`,
		`port: "80"`:                        `c.yaml:1:7: port: "80" is text, expected a whole number (write it without quotes)`,
		"name: 1.0":                         `c.yaml:1:7: name: 1.0 is a number, expected text (put it into quotes)`,
		"name: ''":                          `c.yaml:1:7: name: must not be empty`,
		"port: 70000":                       `c.yaml:1:7: port: 70000 is more than 65535`,
		"kind: lage":                        `c.yaml:1:7: kind: "lage" is not one of small, "", large (did you mean "large"?)`,
		"deep: {active: 'yes'}":             `c.yaml:1:16: deep.active: "yes" is text, expected true or false (write it without quotes)`,
		"deep: []":                          `c.yaml:1:7: deep: the list is a list, expected a mapping`,
		"range: 10.0.0.0":                   `c.yaml:1:8: range: "10.0.0.0" is no range of addresses: a prefix length is missing, as in 10.233.64.0/18`,
		"range: 10.0.0.1/8":                 `c.yaml:1:8: range: "10.0.0.1/8" has bits set beyond its prefix: the range is 10.0.0.0/8`,
		"range: 10.0.0.0/8,11.0.0.0/8":      `c.yaml:1:8: range: "10.0.0.0/8,11.0.0.0/8" has two ranges of one family: dual stack is one of each, as in 10.233.64.0/18,fd85::/56`,
		"range: '10.0.0.0/8, fd00::/99x'":   `c.yaml:1:8: range: "10.0.0.0/8, fd00::/99x" holds fd00::/99x, which is no range of addresses, as in 10.233.64.0/18 or fd85::/56`,
		"range: 10.0.0.0/8,fd00::/8":        "",
		"range: 10.0.0.0/8/fd00::/8":        "",
		`port: "{{ x }}"`:                   "",
		`deep: {active: "{{ x }}"}`:         "",
		"free: {anything: [goes]}":          "",
	} {
		ds := load(t, schemaText).Merge(file(t, "c.yaml", text)).Check()
		got := ""
		if ds.Err() != nil {
			got = ds.Error()
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// Check reports all problems at once, wherever they were set.
func TestCheckTellsAll(t *testing.T) {
	ds := load(t, schemaText).Merge(
		file(t, "a.yaml", "port: no"), file(t, "b.yaml", "kind: x\nprot: 1"),
		Part{Name: "--set", Values: value.NewDict("name", 5)},
	).Check()
	want := "name: 5 is a number, expected text (from --set) (put it into quotes)\n" +
		"a.yaml:1:7: port: False is true or false, expected a whole number\n" +
		`b.yaml:1:7: kind: "x" is not one of small, "", large` + "\n" +
		`b.yaml:2:1: the config has no key "prot" (did you mean "port"?)`
	if diff := cmp.Diff(want, ds.Error()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestBrokenSchema(t *testing.T) {
	tree := source.Tree{Embedded: fstest.MapFS{"config/schema.yaml": {Data: []byte("type: object\nproperties:\n  a: {type: strnig}\n")}}}
	_, ds := Load(tree, "builtin:/config/schema.yaml")
	if len(ds) == 0 || !strings.HasPrefix(ds.Error(),
		"builtin:/config/schema.yaml:3:13: the schema of the config: properties.a.type: ") {
		t.Errorf("%v", ds)
	}
}

func TestFind(t *testing.T) {
	tree := source.Tree{Embedded: fstest.MapFS{"config/schema.yaml": {}, "playbooks/a.yaml": {}, "b.yaml": {},
		"other/c.yaml": {}}}
	for playbook, want := range map[string]string{
		"builtin:/playbooks/a.yaml": "builtin:/config/schema.yaml", "builtin:/b.yaml": "builtin:/config/schema.yaml",
		"builtin:/other/c.yaml": "",
	} {
		if got := Find(tree, playbook); got != want {
			t.Errorf("%s: %q, want %q", playbook, got, want)
		}
	}
}

// The printed example reads back as the defaults.
func TestExampleIsAConfig(t *testing.T) {
	builtins, ds := Load(source.Tree{Embedded: builtin.FS()}, "builtin:/config/schema.yaml")
	if ds.Err() != nil {
		t.Fatal(ds)
	}
	for _, s := range []*Schema{load(t, schemaText), builtins} {
		var out bytes.Buffer
		if err := s.Example(&out, value.NewDict()); err != nil {
			t.Fatal(err)
		}
		c := s.Merge(file(t, "example.yaml", out.String()))
		if ds := c.Check(); ds.Err() != nil {
			t.Error(ds)
		}
		want, _ := value.JSON(s.Defaults(), value.JSONOptions{})
		if got, _ := value.JSON(c.Values, value.JSONOptions{}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for _, key := range s.Keys() {
			if !strings.Contains(out.String(), "\n"+key+":") && !strings.Contains(out.String(), "# "+key+":") &&
				!strings.HasPrefix(out.String(), key) {
				t.Errorf("the example lacks %s", key)
			}
		}
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") && len(line) > 101 && strings.Count(line, " ") > 12 {
				t.Errorf("a long line: %s", line)
			}
		}
	}
}

// Every key of the cluster config has a description and a default. What is null by default has no keys until it is set.
func TestBuiltinSchemaIsComplete(t *testing.T) {
	s, ds := Load(source.Tree{Embedded: builtin.FS()}, "builtin:/config/schema.yaml")
	if ds.Err() != nil {
		t.Fatal(ds)
	}
	var walk func(n node, path string, inNull bool)
	walk = func(n node, path string, inNull bool) {
		for name, sub := range n.properties() {
			at := strings.TrimPrefix(path+"."+name, ".")
			if sub.description() == "" {
				t.Errorf("%s has no description", at)
			}
			v, ok := sub.fallback()
			if !ok && !inNull && !strings.HasPrefix(at, "hook_") {
				t.Errorf("%s has no default", at)
			}
			if at != "cluster_require" { // its keys are described in the role precheck
				walk(sub, at, inNull || ok && v == nil)
			}
		}
	}
	walk(s.root, "", false)
}

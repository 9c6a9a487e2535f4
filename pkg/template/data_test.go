package template

import (
	"context"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// compileYAML compiles YAML text.
func compileYAML(t *testing.T, text string) (*Data, source.Diagnostics) {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	return newEngine().Node(source.NewFile("vars.yml", []byte(text)), &n)
}

func TestNodeValue(t *testing.T) {
	scope := expr.Names{"n": 5, "l": []any{1}, "k": "key"}
	for _, c := range []struct{ name, text, want string }{
		{"static", "{a: 1, b: [x, yes]}", "{'a': 1, 'b': ['x', True]}"},
		{"native", "a: '{{ l }}'", "{'a': [1]}"},
		{"text", "- a{{ n }}\n- 2", "['a5', 2]"},
		{"nested", "a: {b: [1, {c: '{{ n }}'}]}", "{'a': {'b': [1, {'c': 5}]}}"},
		{"literal", "a: '[{{ n }}, 0x10, {1, 2}, 1_0, true, \"\\101\"]'", "{'a': [5, 16, [1, 2], 10, True, 'A']}"},
		{"no literal", "a: '[{{ n }}, 010]'", "{'a': '[5, 010]'}"},
		{"key", "'{{ k }}': 1", "{'key': 1}"},
		{"unsafe", "a: !unsafe '{{ n }}'", "{'a': '{{ n }}'}"},
		{"alias", "a: &x ['{{ n }}']\nb: *x", "{'a': [5], 'b': [5]}"},
		{"merge", "a: &x {p: '{{ n }}', q: 1}\nb: {<<: *x, q: 2}", "{'a': {'p': 5, 'q': 1}, 'b': {'q': 2, 'p': 5}}"},
		{"merge of a list", "a: &x {p: 1}\nb: &y {q: '{{ n }}'}\nc: {<<: [*x, *y]}",
			"{'a': {'p': 1}, 'b': {'q': 5}, 'c': {'p': 1, 'q': 5}}"},
		{"block scalar", "a: |\n  x\n  {{ n }}\n", "{'a': 'x\\n5\\n'}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, ds := compileYAML(t, c.text)
			if err := ds.Err(); err != nil {
				t.Fatal(err)
			}
			v, err := d.Value(context.Background(), scope)
			if err != nil || repr(v) != c.want {
				t.Errorf("%s, %v, want %s", repr(v), err, c.want)
			}
			_, static := d.Static()
			if static != (c.name == "static" || c.name == "unsafe") {
				t.Errorf("static is %v", static)
			}
		})
	}
}

func TestNodeProblems(t *testing.T) {
	_, ds := compileYAML(t, "a: '{{ x | nofilter }}'\nb: '{{ y'\nc: '{{ z'\nd: {[1]: 2}\n")
	if len(ds) != 4 {
		t.Fatalf("%d problems: %v", len(ds), ds)
	}
	for i, want := range []string{"vars.yml:1:", "vars.yml:2:", "vars.yml:3:", "vars.yml:4:"} {
		if !strings.Contains(ds[i].Error(), want) {
			t.Errorf("%v is not at %s", ds[i], want)
		}
	}
	_, ds = compileYAML(t, strings.Repeat("[", 150)+strings.Repeat("]", 150))
	if ds.Err() == nil {
		t.Error("150 levels were taken")
	}
	d, ds := compileYAML(t, "a: '{{ l }}'\n'{{ l }}': 1\nb: '{{ nope }}'\nc: ['{{ nope }}']")
	if ds.Err() != nil {
		t.Fatal(ds)
	}
	if _, err := d.Value(context.Background(), expr.Names{"l": []any{1}}); err == nil {
		t.Error("a list became a key")
	}
	for _, key := range []string{"b", "c"} {
		m, _ := d.Member(key)
		_, err := m.Value(context.Background(), expr.Names{})
		wantError(t, err, "'nope' is undefined")
	}
	d, _ = compileYAML(t, "a: '{{ nope }}'")
	if _, err := d.Value(context.Background(), expr.Names{}); err == nil {
		t.Error("an undefined member of a mapping was taken")
	}
}

func TestMembers(t *testing.T) {
	d, _ := compileYAML(t, "a: {x: 1, l: [1, 2]}\nb: ['{{ n }}', 7]\n")
	if !d.IsContainer() || d.TemplatedKeys() {
		t.Error("a mapping with templates is a container without templated keys")
	}
	if d, _ := compileYAML(t, "'{{ k }}': 1"); !d.TemplatedKeys() {
		t.Error("a templated key goes unnoticed")
	}
	a, _ := d.Member("a")
	l, _ := a.Member("l")
	last, ok := l.Member(-1)
	if v, _ := last.Static(); !ok || v != 2 {
		t.Errorf("%v, %v", v, ok)
	}
	b, _ := d.Member("b")
	if m, ok := b.Member(1); !ok || m.Raw() != 7 {
		t.Errorf("%v", ok)
	}
	for _, miss := range []any{"zz", 9} {
		if _, ok := b.Member(miss); ok {
			t.Errorf("member %v", miss)
		}
		if _, ok := a.Member(miss); ok {
			t.Errorf("member %v", miss)
		}
	}
	if _, ok := Literal(1).Member("x"); ok {
		t.Error("a number has a member")
	}
	if got := repr(d.Raw()); got != "{'a': {'x': 1, 'l': [1, 2]}, 'b': ['{{ n }}', 7]}" {
		t.Error(got)
	}
	m := Mapping([]string{"p", "q"}, []*Data{Literal(1), b})
	v, err := m.Value(context.Background(), expr.Names{"n": 5})
	if err != nil || repr(v) != "{'p': 1, 'q': [5, 7]}" {
		t.Errorf("%s, %v", repr(v), err)
	}
}

func TestDataOfValues(t *testing.T) {
	e := newEngine()
	d, err := e.Data(value.NewDict("a", []any{"{{ n }}", 1, "x"}, "b", nil), source.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := d.Value(context.Background(), expr.Names{"n": 5})
	if err != nil || repr(v) != "{'a': [5, 1, 'x'], 'b': None}" {
		t.Errorf("%s, %v", repr(v), err)
	}
	for _, bad := range []any{"{{ n", []any{"{{ n"}, value.NewDict("a", "{{ n")} {
		if _, err := e.Data(bad, source.Pos{}); err == nil {
			t.Errorf("%s was taken", repr(bad))
		}
	}
}

package schema_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

type common struct {
	Mode  schema.FileMode `kk:"mode" doc:"permission bits"`
	Owner string          `kk:"owner"`
}

type rule struct {
	Port  int    `kk:"port,required"`
	Proto string `kk:"proto" default:"tcp" choices:"tcp,udp"`
}

type sample struct {
	common
	Dest    string            `kk:"dest,required,path,alias=path,alias=name" doc:"where"`
	State   string            `kk:"state" default:"present" choices:"present,absent"`
	Enabled string            `kk:"enabled" choices:"on,off"`
	Force   bool              `kk:"force" default:"yes"`
	Backup  *bool             `kk:"backup"`
	Count   int               `kk:"count" default:"3"`
	Ratio   float64           `kk:"ratio"`
	Names   []string          `kk:"names" default:"a,b"`
	Kinds   []string          `kk:"kinds" choices:"x,y"`
	That    []any             `kk:"that"`
	Env     map[string]string `kk:"env"`
	Data    *value.Dict       `kk:"data"`
	Content any               `kk:"content"`
	Wait    time.Duration     `kk:"wait" default:"1.5"`
	Token   redact.Secret     `kk:"token"`
	Rule    *rule             `kk:"rule"`
	Rules   []rule            `kk:"rules"`
	Ignored string
}

func dict(pairs ...any) *value.Dict { return value.NewDict(pairs...) }

func TestDecodeDefaults(t *testing.T) {
	var s sample
	if err := schema.Decode(&s, dict("path", "/etc/x"), &redact.Set{}); err != nil {
		t.Fatal(err)
	}
	if s.Dest != "/etc/x" || s.State != "present" || !s.Force || s.Count != 3 || s.Wait != 1500*time.Millisecond {
		t.Errorf("got %+v", s)
	}
	if diff := cmp.Diff([]string{"a", "b"}, s.Names); diff != "" {
		t.Error(diff)
	}
	if s.Backup != nil || s.Rule != nil || s.Content != nil || s.Mode.IsSet() {
		t.Errorf("arguments that were not given are set: %+v", s)
	}
}

func TestDecodeCoerces(t *testing.T) {
	var s sample
	var hidden redact.Set
	err := schema.Decode(&s, dict(
		"dest", 5, "state", "absent", "enabled", true, "force", "no", "backup", "on", "count", " 12 ", "ratio", "0.5",
		"names", []any{"x", 1, true}, "kinds", "x, y", "that", "a in [1, 2]", "env", dict("A", 1, "B", nil),
		"data", `{"k": 1}`, "content", dict("a", 1), "wait", 2, "token", "s3cret", "mode", 420, "owner", "root",
		"rule", dict("port", "53", "proto", "udp"), "rules", []any{dict("port", 1), dict("port", 2)}), &hidden)
	if err != nil {
		t.Fatal(err)
	}
	if shown := hidden.Text("s3cret"); shown != redact.Mask {
		t.Errorf("the token is shown as %s", shown)
	}
	checks := map[string]bool{
		"dest":    s.Dest == "5",
		"state":   s.State == "absent",
		"enabled": s.Enabled == "on",
		"force":   !s.Force,
		"backup":  s.Backup != nil && *s.Backup,
		"count":   s.Count == 12,
		"ratio":   s.Ratio == 0.5,
		"names":   cmp.Equal(s.Names, []string{"x", "1", "True"}),
		"kinds":   cmp.Equal(s.Kinds, []string{"x", "y"}),
		"that":    cmp.Equal(s.That, []any{"a in [1, 2]"}),
		"env":     cmp.Equal(s.Env, map[string]string{"A": "1", "B": ""}),
		"data":    value.Equal(s.Data, dict("k", 1)),
		"content": value.Equal(s.Content, dict("a", 1)),
		"wait":    s.Wait == 2*time.Second,
		"token":   s.Token.Reveal() == "s3cret",
		"mode":    s.Mode.String() == "0644",
		"owner":   s.Owner == "root",
		"rule":    s.Rule != nil && *s.Rule == rule{53, "udp"},
		"rules":   cmp.Equal(s.Rules, []rule{{1, "tcp"}, {2, "tcp"}}),
	}
	for name, ok := range checks {
		if !ok {
			t.Errorf("%s was decoded wrongly: %+v", name, s)
		}
	}
}

func TestDecodeProblems(t *testing.T) {
	cases := []struct {
		name string
		args *value.Dict
		want string
	}{
		{"unknown", dict("dst", "/x", "dest", "/y"), `unknown argument "dst" (did you mean "dest"?)`},
		{"missing", dict(), `missing required arguments: dest`},
		{"null is missing", dict("dest", nil), `missing required arguments: dest`},
		{"choice", dict("dest", "/x", "state", "x"), `value of state must be one of: present, absent, got: x`},
		{"list choice", dict("dest", "/x", "kinds", "x,z"), `value of kinds must be one of: x, y, got: z`},
		{"bool", dict("dest", "/x", "force", "maybe"), `value of force must be a bool (yes or no), got "maybe"`},
		{"int is not truncated", dict("dest", "/x", "count", "5.5"), `value of count must be an int, got "5.5"`},
		{"float is not truncated", dict("dest", "/x", "count", 5.5), `value of count must be an int, got 5.5`},
		{"string from list", dict("dest", []any{"a"}), `value of dest must be a string, got a list`},
		{"list of lists", dict("dest", "/x", "names", []any{[]any{}}),
			`value of names must be a list of strings, got a list`},
		{"dict", dict("dest", "/x", "data", "{oops"), `value of data must be a dict, got "{oops"`},
		{"map", dict("dest", "/x", "env", dict("a", []any{})), `value of env must be a dict of strings, got a dict`},
		{"seconds", dict("dest", "/x", "wait", "soon"), `value of wait must be a number of seconds, got "soon"`},
		{"number", dict("dest", "/x", "ratio", true), `value of ratio must be a number, got True`},
		{"mode", dict("dest", "/x", "mode", 644), `value of mode must be a file mode: 644 is a decimal number; write "0644"`},
		{"undefined", dict("dest", &value.Undefined{Name: "x"}), `value of dest: 'x' is undefined`},
		{"twice", dict("dest", "/x", "path", "/y"), `dest and path are the same argument (give only one of them)`},
		{"nested", dict("dest", "/x", "rule", dict("prto", 1)),
			`unknown argument "rule.prto" (did you mean "proto"?); missing required arguments: port found in rule`},
		{"nested type", dict("dest", "/x", "rules", []any{1}), `value of rules must be a dict, got 1`},
		{"long strings are not shown", dict("dest", "/x", "force", strings.Repeat("x", 99)),
			`value of force must be a bool (yes or no), got a string of 99 bytes`},
		{"all at once", dict("foo", 1, "count", "x"),
			`unknown argument "foo"; value of count must be an int, got "x"; missing required arguments: dest`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := schema.Decode(&sample{}, c.args, &redact.Set{})
			var problems schema.Errors
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want Errors", err)
			}
			if err.Error() != c.want {
				t.Errorf("got  %s\nwant %s", err, c.want)
			}
		})
	}
}

func TestCheckPassesOverTemplates(t *testing.T) {
	dynamic := func(v any) bool {
		s, ok := v.(string)
		return ok && strings.Contains(s, "{{")
	}
	args := dict("dest", "{{ x }}", "count", "{{ n }}", "state", "bad", "rules",
		[]any{"{{ r }}", dict("port", "{{ p }}", "x", 1)})
	var got []string
	for _, p := range schema.Check(&sample{}, args, &redact.Set{}, schema.Unsure{Dynamic: dynamic}) {
		got = append(got, p.Path+": "+p.Msg)
	}
	want := []string{
		"state: value of state must be one of: present, absent, got: bad",
		`rules.x: unknown argument "rules.x"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestExplain(t *testing.T) {
	args := dict("dst", "/x", "port", "{")
	type fetch struct {
		Dest string `kk:"dest,required,alias=path"`
		Port int    `kk:"port"`
	}
	got := schema.Explain("copy", &fetch{}, schema.Check(&fetch{}, args, &redact.Set{}, schema.Unsure{}))
	want := `Unsupported parameters for (copy) module: dst. Supported parameters include: dest (path), port. did you mean "dest"?; ` +
		`value of port must be an int, got "{"; missing required arguments: dest`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRest(t *testing.T) {
	var s struct {
		Cacheable bool        `kk:"cacheable"`
		Vars      *value.Dict `kk:",rest"`
	}
	if err := schema.Decode(&s, dict("cacheable", true, "a", 1, "b", nil), &redact.Set{}); err != nil {
		t.Fatal(err)
	}
	if !s.Cacheable || !value.Equal(s.Vars, dict("a", 1, "b", nil)) {
		t.Errorf("got %+v", s)
	}
}

func TestDescribe(t *testing.T) {
	args, err := schema.Describe(&sample{})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]schema.Arg{}
	for _, a := range args {
		byName[a.Name] = a
	}
	want := schema.Arg{Name: "dest", Aliases: []string{"path", "name"}, Type: "path", Required: true, Doc: "where"}
	if diff := cmp.Diff(want, byName["dest"]); diff != "" {
		t.Error(diff)
	}
	types := map[string]string{
		"mode": "mode", "names": "list of str", "that": "list", "env": "dict of str", "wait": "seconds", "token": "secret",
		"rules": "list of dict", "content": "any", "data": "dict", "backup": "bool", "ratio": "float",
	}
	for name, want := range types {
		if got := byName[name].Type; got != want {
			t.Errorf("type of %s: got %s, want %s", name, got, want)
		}
	}
	if len(byName["rules"].Options) != 2 || byName["rules"].Options[1].Default != "tcp" {
		t.Errorf("nested options: %+v", byName["rules"].Options)
	}
}

func TestBadDeclarations(t *testing.T) {
	cases := map[string]any{
		"no pointer": sample{},
		"option": &struct {
			A string `kk:"a,bogus"`
		}{},
		"type": &struct {
			A chan int `kk:"a"`
		}{},
		"no name": &struct {
			A string `kk:""`
		}{},
		"rest": &struct {
			A string `kk:",rest"`
		}{},
		"unexported": &struct {
			a string `kk:"a"`
		}{},
		"nil": nil,
	}
	for name, v := range cases {
		if _, err := schema.Describe(v); err == nil {
			t.Errorf("%s: Describe has no error", name)
		}
		if len(schema.Check(v, nil, &redact.Set{}, schema.Unsure{})) == 0 {
			t.Errorf("%s: Check has no problem", name)
		}
		if err := schema.Decode(v, nil, &redact.Set{}); err == nil {
			t.Errorf("%s: Decode has no error", name)
		}
	}
}

func TestFileMode(t *testing.T) {
	cases := []struct {
		mode any
		old  fs.FileMode
		dir  bool
		want string
	}{
		{"0644", 0, false, "0644"},
		{"755", 0, false, "0755"},
		{"0o600", 0, false, "0600"},
		{420, 0, false, "0644"},
		{"4755", 0, false, "4755"},
		{"preserve", 0o640, false, "0640"},
		{"", 0o640, false, "0640"},
		{"u=rw,g=r,o=", 0o777, false, "0640"},
		{"u=rw,g=r,o-x", 0o777, false, "0646"},
		{"+x", 0o644, false, "0755"},
		{"+w", 0o444, false, "0644"},
		{"a+w", 0o444, false, "0666"},
		{"go-rwx", 0o755, false, "0700"},
		{"u+rwX,g+rX", 0o600, false, "0640"},
		{"u+rwX,g+rX", 0o600, true, "0750"},
		{"u+rwX,g+rX", 0o700, false, "0750"},
		{"g=u", 0o700, false, "0770"},
		{"g+s", 0o755, true, "2755"},
		{"u+s,+t", 0o755, false, "5755"},
		{"u=rwx,g=rx", fs.ModeSetgid | 0o700, true, "2750"},
		{"ug=rw-w", 0o000, false, "0440"},
	}
	for _, c := range cases {
		m, err := schema.ParseMode(c.mode)
		if err != nil {
			t.Errorf("%v: %v", c.mode, err)
			continue
		}
		got, err := m.Apply(c.old, c.dir)
		if err != nil || schema.FormatMode(got) != c.want {
			t.Errorf("%v on %v: got %s, %v; want %s", c.mode, c.old, schema.FormatMode(got), err, c.want)
		}
	}
	for _, bad := range []any{644, -1, 99999, "0888", "77777", "u=rz", "x", "u", "u=go", true, []any{}} {
		if _, err := schema.ParseMode(bad); err == nil {
			t.Errorf("%v is taken for a mode", bad)
		}
	}
}

func TestPlanDecodesManyTimes(t *testing.T) {
	plan, err := schema.PlanFor(&sample{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for i := range 8 {
		go func() {
			var s sample
			err := plan.Decode(&s, dict("dest", "/x", "count", i, "rule", dict("port", i)), &redact.Set{})
			if err == nil && (s.Count != i || s.Rule.Port != i) {
				err = errors.New("decoded another's arguments")
			}
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []any{&rule{}, sample{}, nil} {
		if err := plan.Decode(bad, dict(), &redact.Set{}); err == nil {
			t.Errorf("a plan for sample decodes into %T", bad)
		}
	}
}

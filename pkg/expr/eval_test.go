package expr_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func eval(t *testing.T, src string, scope expr.Scope) (any, error) {
	t.Helper()
	x, err := expr.New(expr.Options{Now: fixedNow}, everything()...).Compile(src, source.Pos{}, expr.Escaped)
	if err != nil {
		t.Fatalf("compile %s: %v", src, err)
	}
	return x.Eval(context.Background(), scope)
}

func fixedNow() time.Time { return time.Date(2024, 2, 29, 13, 5, 9, 120000, time.UTC) }

// made returns the result of an expression without variables.
func made(t *testing.T, src string) any {
	t.Helper()
	v, err := eval(t, src, expr.Names{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantValue(t *testing.T, src string, scope expr.Scope, want string) {
	t.Helper()
	got, err := eval(t, src, scope)
	if err != nil {
		t.Errorf("%s: %v, want %s", src, err, want)
		return
	}
	if value.Repr(got) != want {
		t.Errorf("%s = %s, want %s", src, value.Repr(got), want)
	}
}

func wantError(t *testing.T, src string, scope expr.Scope, want string) {
	t.Helper()
	got, err := eval(t, src, scope)
	if err == nil {
		t.Errorf("%s = %s, want the error %q", src, value.Repr(got), want)
		return
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want the error %q", src, err, want)
	}
}

func TestWhereKkDiffersFromJinja(t *testing.T) {
	scope := expr.Names{"d": value.NewDict("a", 1, "items", 2, "keys", []any{"x"}), "list": []any{1}}
	for src, want := range map[string]string{
		"undef_x.a.b is defined":                     "False",
		"undef_x[1:] | default(1)":                   "1",
		"'%s' % list":                                "'[1]'",
		"'%s' % [1, 2]":                              "'[1, 2]'",
		"'%s' % ([1, 2],)":                           "'[1, 2]'",
		"'%s%%' % (5,)":                              "'5%'",
		"'%s-%s' % [1, 2]":                           "'1-2'",
		"undef_x.a.b | default(1)":                   "1",
		"d.a.b.c | default('z')":                     "'z'",
		"d.items":                                    "2",
		"d.keys[0]":                                  "'x'",
		"2 ** 3 ** 2":                                "512",
		"'x' if false":                               "None",
		"('x' if false) ~ 'b'":                       "'b'",
		"('x' if false) | upper":                     "''",
		"('x' if false) | default('d')":              "'d'",
		"1 if ('x' if false) else 2":                 "2",
		"[undef_x, 1] | select('defined') | list":    "[1]",
		"undef('hint') | default(3)":                 "3",
		"1 is divisibleby 1 if true else 2":          "True",
		"'a' is defined if true else 2":              "True",
		"list is ansible.builtin.subset([1, 2])":     "True",
		"'x' | ansible.builtin.upper":                "'X'",
		"[1, 2] is any and [0] is not any":           "True",
		"[1, 2] is all and [0, 1] is not all":        "True",
		"1.5 is odd":                                 "False",
		"'yes' is truthy(convert_bool=true)":         "True",
		"'no' is falsy(convert_bool=true)":           "True",
		"'no' is truthy":                             "True",
		"0 is falsy":                                 "True",
		"[1, 2] is contains 2":                       "True",
		"[1] is superset [1]":                        "True",
		"'upper' is filter and 'odd' is test":        "True",
		"['a', 'b'] is sequence":                     "True",
		"dict([['a', 1]], b=2).b":                    "2",
		"namespace(c=1).c":                           "1",
		"'c' in namespace(c=1)":                      "True",
		"joiner('|')()":                              "''",
		"cycler(1, 2).next()":                        "1",
		"cycler(1, 2).current":                       "1",
		"cycler(1).reset()":                          "None",
		"[1, 2] | map('string') | map('length')|sum": "2",
		"dict(**{'a': 1}).a":                         "1",
		"range(*[1, 3])":                             "[1, 2]",
		"'{a}'.format(**{'a': 1})":                   "'1'",
	} {
		wantValue(t, src, scope, want)
	}
}

func TestRefused(t *testing.T) {
	scope := expr.Names{"d": value.NewDict("address", 1), "n": 5, "s": "x", "list": []any{1}, "big": int(1 << 62)}
	for src, want := range map[string]string{
		"'x' * 10 ** 9":                       "larger than",
		"[0] * 10 ** 9":                       "larger than",
		"2 ** 64":                             "64 bits",
		"big * 4":                             "64 bits",
		"big + big":                           "64 bits",
		"-big - big - big":                    "64 bits",
		"10.0 ** 400":                         "64 bits",
		"range(10 ** 9)":                      "items",
		"'%1000000d' % 1":                     "at most",
		"'x'.center(10 ** 9)":                 "larger than",
		"'x'.zfill(10 ** 9)":                  "larger than",
		"'{:99999999}'.format(1)":             "format",
		"'{{{}}}{'.format(1)":                 "single '{'",
		"d.adress":                            `'dict object' has no attribute 'adress' (did you mean "address"?)`,
		"list[3]":                             "list object has no element 3",
		"list.foo":                            "'list object' has no attribute 'foo'",
		"none.foo":                            "'None object' has no attribute 'foo'",
		"undef_x.a":                           "'undef_x' is undefined",
		"undef_x | upper":                     "'undef_x' is undefined",
		"rang(3)":                             `did you mean "range"?`,
		"upper('x')":                          "is a filter: write x | upper",
		"s.foo()":                             "'str object' has no attribute 'foo'",
		"s.uper()":                            `did you mean "upper"?`,
		"d.address()":                         "'int' object is not callable",
		"s.upper(1)":                          "at most 0 arguments",
		"s.replace('a')":                      "needs the argument new",
		"1 in undef_x":                        "'undef_x' is undefined",
		"{[1]: 2}":                            "cannot be the key",
		"d[[1]]":                              "unhashable",
		"s + 1":                               "~ joins anything",
		"n + 'a'":                             "unsupported operand type(s) for +: 'int' and 'str'",
		"n < 'a'":                             "'<' not supported between instances of 'int' and 'str'",
		"[1, undef_x]":                        "'undef_x' is undefined",
		"{'a': undef_x}":                      "'undef_x' is undefined",
		"s is version('1', 'between')":        "operator",
		"s is failed":                         "registered result",
		"n is odd(1)":                         "at most 0 arguments",
		"n is divisibleby 0":                  "division by zero",
		"[1] | map('upper', 1, 2, 3) | list":  "at most",
		"s is match('(')":                     "bad pattern",
		"s is regex('x', match_type='whole')": "match_type",
		"range(*5)":                           "not iterable",
		"dict(**5)":                           "** needs a dict",
		"dict(5)":                             "no list of pairs",
		"cycler()":                            "at least one",
		"lookup()":                            "name of a plugin",
		"lookup(5)":                           "must be a string",
		"lookup(s)":                           "no lookup named 'x'",
		"x.append(1)":                         "'x' is undefined",
	} {
		wantError(t, src, scope, want)
	}
}

func TestDepth(t *testing.T) {
	env := expr.New(expr.Options{}, everything()...)
	deep := map[string]string{
		"parens":  strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300),
		"lists":   strings.Repeat("[", 100000) + strings.Repeat("]", 100000),
		"nots":    strings.Repeat("not ", 300) + "1",
		"minus":   strings.Repeat("- ", 300) + "1",
		"powers":  strings.Repeat("1 ** ", 300) + "1",
		"ifs":     strings.Repeat("1 if 0 else ", 300) + "1",
		"filters": "1" + strings.Repeat("|int", 300),
		"attrs":   "a" + strings.Repeat(".b", 300),
		"tests":   "1" + strings.Repeat(" is eq 1", 300),
	}
	for name, src := range deep {
		_, err := env.Compile(src, source.Pos{}, expr.Escaped)
		if err == nil || !strings.Contains(err.Error(), "200") {
			t.Errorf("%s: %v, want an error about the depth", name, err)
		}
	}
	for name, src := range map[string]string{
		"or":      "x" + strings.Repeat(" or x", 5000),
		"plus":    "1" + strings.Repeat(" + 1", 5000),
		"concat":  "1" + strings.Repeat(" ~ 1", 5000),
		"compare": "1" + strings.Repeat(" <= 1", 5000),
		"list":    "[" + strings.Repeat("1,", 5000) + "]",
		"parens":  strings.Repeat("(", 150) + "1" + strings.Repeat(")", 150),
	} {
		x, err := env.Compile(src, source.Pos{}, expr.Escaped)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := x.Eval(context.Background(), expr.Names{"x": 0}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPositions(t *testing.T) {
	env := expr.New(expr.Options{}, everything()...)
	for _, c := range []struct{ src, want string }{
		{"a | uper", `site.yml:1:11: no filter named 'uper' (did you mean "upper"?)`},
		{"a\n  | uper", "site.yml:2:5: no filter"},
		{"'ż' ~ a is deffined", `site.yml:1:18: no test named 'deffined' (did you mean "defined"?)`},
		{"lookup('nosuch')", "site.yml:1:14: no lookup named 'nosuch'"},
		{"q('nosuch')", "site.yml:1:9: no lookup named"},
		{"a | map('uper')", "site.yml:1:15: no filter named 'uper'"},
		{"a | select('deffined')", "site.yml:1:18: no test"},
		{"a | rejectattr('x', 'deffined')", "site.yml:1:27: no test"},
		{"a b", "site.yml:1:9: unexpected 'b' after the expression"},
		{"a = b", "(a comparison is ==)"},
		{"(a", "site.yml:1:7: '(' is not closed (add a ')')"},
		{"", "site.yml:1:7: the expression is empty"},
		{"a && b", "(write 'and')"},
		{"a || b", "(write 'or')"},
		{"!a", "(write 'not')"},
		{"$a", "dollar"},
		{"“a”", "straight quotes"},
		{"a is defined(1)", "takes no arguments"},
		{"0644", "(write a string ('0644') or an octal number (0o644))"},
		{"9223372036854775808", "64 bits"},
		{"a.'b'", "(a key that is no name is written a['key'])"},
	} {
		at := source.Pos{File: source.NewFile("site.yml", []byte("when: "+c.src+"\n")), Line: 1, Col: 7}
		_, err := env.Compile(c.src, at, expr.Escaped)
		var d *source.Diagnostic
		if !errors.As(err, &d) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.src, err, c.want)
		}
	}
}

func TestEvaluationErrorsHavePlaces(t *testing.T) {
	file := source.NewFile("site.yml", []byte("x"))
	at := source.Pos{File: file, Line: 3, Col: 5}
	scope := expr.Names{"a": value.NewDict("name", "x"), "n": 1}
	env := expr.New(expr.Options{}, everything()...)
	for _, c := range []struct{ src, want, help string }{
		{"n == 1 and a.nme == 'x'", "site.yml:3:16: 'dict object' has no attribute 'nme'", `did you mean "name"?`},
		{"n\n  + nope", "site.yml:4:5: 'nope' is undefined", ""},
		{"n + (1\n / 0)", "site.yml:3:10: division by zero", ""},
		{"a.nme.deeper | upper", "site.yml:3:5: 'dict object' has no attribute 'nme'", `did you mean "name"?`},
		{"n | default(1) | combine(nope)", "site.yml:3:30: 'nope' is undefined", ""},
	} {
		x, err := env.Compile(c.src, at, expr.Escaped)
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Eval(context.Background(), scope)
		var e *expr.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v is no *Error", c.src, err)
			continue
		}
		d := e.Diagnostic()
		if !strings.HasPrefix(d.Error(), c.want) || d.Help != c.help {
			t.Errorf("%s: %q help %q, want %q help %q", c.src, d.Error(), d.Help, c.want, c.help)
		}
	}
}

// lister is a scope that lists its names as variable stores do.
type lister struct{ fixed }

func (l lister) Names() []string { return slices.Sorted(maps.Keys(l.names)) }

func TestNearNames(t *testing.T) {
	wantError(t, "kube_versoin == 1", expr.Names{"kube_version": 1},
		`'kube_versoin' is undefined (did you mean "kube_version"?)`)
	wantError(t, "kube_versoin | upper", lister{fixed{expr.Names{"kube_version": 1}}}, `did you mean "kube_version"?`)
	if _, err := eval(t, "kube_versoin", fixed{expr.Names{"kube_version": 1}}); err.Error() != "'kube_versoin' is undefined" {
		t.Errorf("a scope that lists nothing: %v", err)
	}
}

// lazy counts how often it is forced.
type lazy struct {
	members *value.Dict
	forced  *int
}

func (l lazy) At(key any) (any, bool, error) {
	v, ok := l.members.Get(key)
	if err, bad := v.(error); bad {
		return nil, false, err
	}
	return v, ok, nil
}

func (l lazy) Force() (any, error) {
	*l.forced++
	for _, v := range l.members.All() {
		if err, bad := v.(error); bad {
			return nil, err
		}
	}
	return l.members, nil
}

type lazyContainer struct{ lazy }

func (l lazyContainer) Contains(key any) (bool, error) { return l.members.Has(key), nil }

func TestLazy(t *testing.T) {
	undefined := fmt.Errorf("in the template of b: %w", &value.Undefined{Name: "c"})
	for _, c := range []struct {
		src, want string
		forced    int
	}{
		{"v.a", "1", 0},
		{"v['a'] + 1", "2", 0},
		{"v.get('a')", "1", 0},
		{"v.get('z', 5)", "5", 0},
		{"v.b is defined", "False", 0},
		{"v.b | default(3)", "3", 0},
		{"v.z | default(3)", "3", 0},
		{"v.get('b') | default(3)", "3", 0},
		{"'a' in v", "True", 0},
		{"v is defined", "True", 0},
		{"v | default(4)", "4", 1},
		{"v.n.a", "7", 0},
		{"v.n | length", "1", 1},
		{"v.n == {'a': 7}", "True", 1},
		{"v.n.keys() | list", "['a']", 1},
		{"'x' if v.n else 'y'", "'x'", 1},
		{"[1] if v.n is mapping", "[1]", 1},
		{"['a', 'a'] | map('extract', v) | list", "[1, 1]", 0},
		{"'n' | extract(v, 'a')", "7", 0},
		{"['n', 'n'] | map('extract', v) | map(attribute='a') | list", "[7, 7]", 0},
		{"['n'] | map('extract', v) | selectattr('a', 'defined') | map(attribute='a') | list", "[7]", 0},
		{"(nope | default(v)).a", "1", 0},
		{"dict(**v.n)", "{'a': 7}", 1},
	} {
		forced := 0
		inner := lazy{value.NewDict("a", 7), &forced}
		scope := expr.Names{"v": lazyContainer{lazy{value.NewDict("a", 1, "b", undefined, "n", inner), &forced}}}
		wantValue(t, c.src, scope, c.want)
		if forced != c.forced {
			t.Errorf("%s forced %d times, want %d", c.src, forced, c.forced)
		}
	}
	broken := errors.New("broken")
	forced := 0
	scope := expr.Names{"v": lazy{value.NewDict("a", broken, "u", undefined), &forced}}
	for _, src := range []string{"v.a", "v.a | default(1)", "v.a is defined", "v.get('a')", "v | length"} {
		if _, err := eval(t, src, scope); !errors.Is(err, broken) {
			t.Errorf("%s: %v, want broken", src, err)
		}
	}
	wantError(t, "v.u", scope, "'v.u' is undefined: in the template of b: 'c' is undefined")
}

// failing is a scope whose names cannot be evaluated.
type failing struct{ err error }

func (f failing) Lookup(string) (any, bool, error) { return nil, false, f.err }

func TestScopeErrors(t *testing.T) {
	undefined := fmt.Errorf("group_vars/all.yml:3: %w", &value.Undefined{Name: "y"})
	wantValue(t, "x is defined", failing{undefined}, "False")
	wantValue(t, "x.y | default(1)", failing{undefined}, "1")
	wantError(t, "x", failing{undefined}, "'x' is undefined: group_vars/all.yml:3: 'y' is undefined")
	wantError(t, "x | default(1)", failing{errors.New("broken")}, "broken")
	wantError(t, "x is defined", failing{errors.New("broken")}, "broken")
	wantError(t, "f(1)", failing{errors.New("broken")}, "broken")
}

func TestMutation(t *testing.T) {
	shared := []any{1}
	nested := value.NewDict("list", []any{1}, "d", value.NewDict("k", 1))
	for _, c := range []struct{ src, result, check, want string }{
		{"x.append(2)", "None", "x", "[1, 2]"},
		{"x.extend([2, 3])", "None", "x", "[1, 2, 3]"},
		{"x.insert(0, 0)", "None", "x", "[0, 1]"},
		{"x.insert(-9, 0)", "None", "x", "[0, 1]"},
		{"x.pop()", "1", "x", "[]"},
		{"x.remove(1)", "None", "x", "[]"},
		{"x.clear()", "None", "x", "[]"},
		{"y.sort()", "None", "y", "[1, 2, 3]"},
		{"y.sort(reverse=true)", "None", "y", "[3, 2, 1]"},
		{"y.reverse()", "None", "y", "[2, 1, 3]"},
		{"n.list.append(2)", "None", "n.list", "[1, 2]"},
		{"n['d'].update({'j': 2}, z=3)", "None", "n.d", "{'k': 1, 'j': 2, 'z': 3}"},
		{"n[key].pop('k')", "1", "n.d", "{}"},
		{"n.d.pop('q', 5)", "5", "n.d", "{'k': 1}"},
		{"n.d.setdefault('q', [])", "[]", "n.d", "{'k': 1, 'q': []}"},
		{"n.d.popitem()", "['k', 1]", "n.d", "{}"},
		{"n.d.clear()", "None", "n.d", "{}"},
		{"z[0].append(5)", "None", "z", "[[5]]"},
		{"z[-1].append(5)", "None", "z", "[[5]]"},
		{"ns.list.append(5)", "None", "ns.list", "[5]"},
	} {
		scope := expr.Names{
			"x": shared, "y": []any{3, 1, 2}, "n": nested, "key": "d", "z": []any{[]any{}},
			"ns": made(t, "namespace(list=[])"),
		}
		wantValue(t, c.src, scope, c.result)
		wantValue(t, c.check, scope, c.want)
	}
	if value.Repr(shared) != "[1]" || value.Repr(nested) != "{'list': [1], 'd': {'k': 1}}" {
		t.Errorf("shared data was changed: %s %s", value.Repr(shared), value.Repr(nested))
	}
}

// fixed is a scope that cannot bind.
type fixed struct{ names expr.Names }

func (f fixed) Lookup(name string) (any, bool, error) { return f.names.Lookup(name) }

func TestMutationInOtherScopes(t *testing.T) {
	scope := fixed{expr.Names{"x": []any{1}}}
	wantValue(t, "x.append(2) or x", scope, "[1, 2]")
	wantValue(t, "x", scope, "[1]")
}

func TestDatetime(t *testing.T) {
	scope := expr.Names{"then": fixedNow().AddDate(0, 0, -1).Add(-time.Hour)}
	for src, want := range map[string]string{
		"now().year":                                  "2024",
		"now().month ~ now().day ~ now().hour":        "'22913'",
		"now().minute ~ now().second":                 "'59'",
		"now().microsecond":                           "120",
		"now().nope is defined":                       "False",
		"now(utc=true).strftime('%Y-%m-%dT%H:%M:%S')": "'2024-02-29T13:05:09'",
		"now(fmt='%d.%m.%y %j %U %W %V %G %u %w %a %A %b %B %p %I %f %% %z %Z %s')": "'29.02.24 060 08 09 09 2024 4 4 Thu Thursday Feb February PM 01 000120 % +0000 UTC 1709211909'",
		"now(fmt='%-d %-m %-I %e %k %l %F %T %R %D %C %n%t%q')":                     "'29 2 1 29 13  1 2024-02-29 13:05:09 13:05 02/29/24 20 \\n\\t%q'",
		"now().isoformat()":                    "'2024-02-29T13:05:09.000120'",
		"now().timestamp() | int":              "1709211909",
		"now().weekday() ~ now().isoweekday()": "'34'",
		"now().date() ~ ' ' ~ now().time()":    "'2024-02-29 13:05:09'",
		"(now() - then).days":                  "1",
		"(now() - then).seconds":               "3600",
		"(now() - then).total_seconds()":       "90000.0",
		"(now() - then) | string":              "'1 day, 1:00:00'",
		"(then - now()) | string":              "'-2 days, 23:00:00'",
		"(now() - (now() - then)) == then":     "True",
		"then + (now() - then) == now()":       "True",
		"(now() - then) + then == now()":       "True",
		"(now() - then) > (then - now())":      "True",
		"-(now() - then) == then - now()":      "True",
		"+(now() - then) == now() - then":      "True",
		"now() > then":                         "True",
		"now() ~ ''":                           "'2024-02-29 13:05:09.000120'",
	} {
		wantValue(t, src, scope, want)
	}
	wantError(t, "now() + now()", scope, "unsupported operand")
	wantError(t, "(now() - then).hours", scope, "'timedelta object' has no attribute 'hours'")
}

func TestLiterals(t *testing.T) {
	env := expr.New(expr.Options{}, everything()...)
	for _, c := range []struct {
		src  string
		lit  expr.Literals
		want string
	}{
		{`'^(.*):.*$\1'`, expr.Raw, `^(.*):.*$\1`},
		{`'a\\b\n'`, expr.Raw, `a\\b\n`},
		{`'it\'s \"x\"'`, expr.Raw, `it's "x"`},
		{`'a\\b\n'`, expr.Escaped, "a\\b\n"},
		{`'\xz \u12 \1 \U0001F600'`, expr.Escaped, "\\xz \\u12 \x01 😀"},
	} {
		x, err := env.Compile(c.src, source.Pos{}, c.lit)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		if got, ok := x.Const(); !ok || got != any(c.want) {
			t.Errorf("%s = %q %v, want %q", c.src, got, ok, c.want)
		}
	}
}

func TestExpr(t *testing.T) {
	env := expr.New(expr.Options{}, everything()...)
	at := source.Pos{Line: 1, Col: 1}
	src := "a.b[c] | default(d, e=f) if g is eq(h) else [i, -j, k ~ l, not m, {n: o}, p == q, r[s:t], u(v), 1 + w]"
	x, err := env.Compile(src, at, expr.Escaped)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(x.Names(), ""); got != "acdfghijklmnopqrstuvw" {
		t.Errorf("names are %s", got)
	}
	if x.Source() != src || x.Pos() != at {
		t.Error("source and position are lost")
	}
	for src, want := range map[string]string{
		"5": "5", "-5": "-5", "[1, 'a', {'b': none}]": "[1, 'a', {'b': None}]",
		"a": "", "[a]": "", "{'a': b}": "", "-a": "", "1 + 1": "", "{[]: 1}": "",
	} {
		x, err := env.CompileTuple(src, source.Pos{}, expr.Escaped)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := x.Const()
		if ok != (want != "") || ok && value.Repr(v) != want {
			t.Errorf("%s is constant %v: %s", src, ok, value.Repr(v))
		}
	}
	if _, err := env.Compile("1, 2", source.Pos{}, expr.Escaped); err == nil {
		t.Error("a tuple is no expression")
	}
}

func TestBoolAndLoose(t *testing.T) {
	env := expr.New(expr.Options{}, everything()...)
	forced := 0
	scope := expr.Names{"l": lazy{value.NewDict("a", 1), &forced}, "s": "false", "e": []any{}}
	for src, want := range map[string]bool{"s": true, "e": false, "l": true, "'x' if false": false, "not e": true,
		"1 and s": true} {
		x, err := env.Compile(src, source.Pos{}, expr.Escaped)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := x.Bool(context.Background(), scope); got != want || err != nil {
			t.Errorf("Bool %s = %v %v", src, got, err)
		}
	}
	x, _ := env.Compile("nope", source.Pos{}, expr.Escaped)
	var undefined *value.Undefined
	if _, err := x.Bool(context.Background(), scope); !errors.As(err, &undefined) {
		t.Errorf("Bool of undefined: %v", err)
	}
	if v, err := x.EvalLoose(context.Background(), scope); !value.IsUndefined(v) || err != nil {
		t.Errorf("EvalLoose of undefined: %v %v", v, err)
	}
	x, _ = env.Compile("l", source.Pos{}, expr.Escaped)
	forced = 0
	if _, err := x.EvalLoose(context.Background(), scope); err != nil || forced != 0 {
		t.Errorf("EvalLoose forced %d times: %v", forced, err)
	}
}

func TestPanicOfAFilterIsAnError(t *testing.T) {
	scope := expr.Names{"f": expr.Func(func(*expr.Call, expr.Args) (any, error) { panic("boom") })}
	wantError(t, "f()", scope, "internal error while evaluating 'f()': boom")
}

func TestCallHelpers(t *testing.T) {
	env := expr.New(expr.Options{}, everything()...)
	c := &expr.Call{Context: context.Background(), Env: env, Scope: expr.Names{}}
	if v, err := c.Filter("ansible.builtin.upper", "x", expr.Args{}); v != any("X") || err != nil {
		t.Errorf("Filter: %v %v", v, err)
	}
	if _, err := c.Filter("uper", "x", expr.Args{}); err == nil || !strings.Contains(err.Error(), "upper") {
		t.Errorf("Filter: %v", err)
	}
	if ok, err := c.Test("eq", 1, expr.Args{Positional: []any{1}}); !ok || err != nil {
		t.Errorf("Test: %v %v", ok, err)
	}
	if _, err := c.Test("nosuch", 1, expr.Args{}); err == nil {
		t.Error("Test: no error")
	}
	data := value.NewDict("a", []any{value.NewDict("b", 1)}, "0", "zero")
	for path, want := range map[string]string{"a.0.b": "1", "0": "'zero'", "a.5": "Undefined", "x.y": "Undefined",
		"a.b": "Undefined"} {
		v, err := c.Attr(data, path)
		if value.Repr(v) != want || err != nil {
			t.Errorf("Attr %s = %s %v, want %s", path, value.Repr(v), err, want)
		}
	}
	if names := env.TestNames(); len(names) < 60 {
		t.Errorf("only %d tests", len(names))
	}
	for _, names := range [][]string{env.FilterNames(), env.LookupNames(), env.FunctionNames()} {
		if len(names) == 0 {
			t.Error("an empty table")
		}
	}
}

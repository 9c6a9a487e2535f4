package expr_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func TestVersions(t *testing.T) {
	for src, want := range map[string]string{
		"'1.2.3.4' is version('1.2.3', '>')":                               "True",
		"'1.20.0-rc1' is version('1.20.0', '>')":                           "True",
		"'1.20.0-rc1' is version('1.20.0', '<', strict=true)":              "True",
		"'1.20.0-rc1' is version('1.20.0', '<', version_type='semver')":    "True",
		"'1.2b1' is version('1.2', 'lt', version_type='strict')":           "True",
		"'1.2rc1' is version('1.2', 'lt', version_type='pep440')":          "True",
		"'1.2' is version('1.2.0', '==', version_type='semantic')":         "True",
		"'1.2' is version('1.2.0', '==', version_type='pep440')":           "True",
		"'1.2.post1' is version('1.2', '>', version_type='pep440')":        "True",
		"'1.2-1' is version('1.2.post1', '==', version_type='pep440')":     "True",
		"'1.0.dev1' is version('1.0a1', '<', version_type='pep440')":       "True",
		"'1.0a1.dev2' is version('1.0a1', '<', version_type='pep440')":     "True",
		"'1.0.post1.dev2' is version('1.0', '>', version_type='pep440')":   "True",
		"'1.0c1' is version('1.0-preview.1', 'eq', version_type='pep440')": "True",
		"'1!0.1' is version('2024.1', '>', version_type='pep440')":         "True",
		"'1.0+a.2' is version('1.0+a.10', '<', version_type='pep440')":     "True",
		"'1.0+1' is version('1.0+a', '>', version_type='pep440')":          "True",
		"'1.0+1' is version('1.0', '>', version_type='pep440')":            "True",
		"'V1.2.3.4.5' is version('1.2.3.4', '>', version_type='pep440')":   "True",
		"'1.2' is version('1.2.0')":                                        "False",
		"'1.2' is version('1.2')":                                          "True",
		"'v1.2' is version('1.2', '>')":                                    "True",
		"'1.a' is version('1.1', 'gt')":                                    "True",
		"'1.1' is version('1.a', '<')":                                     "True",
		"'1.b' is version('1.a', '>')":                                     "True",
		"'1.02' is version('1.2', 'eq')":                                   "True",
		"'99999999999999999999.1' is version('99999999999999999998', '>')": "True",
		"'99999999999999999999' is version('9', '>')":                      "True",
		"'1.10' is version('1.9', 'ge')":                                   "True",
		"'1.10' is version('1.9', '<=')":                                   "False",
		"'1.10' is version('1.9', '<>')":                                   "True",
		"'1.10' is version('1.9', '!=')":                                   "True",
		"1.5 is version('1.4', '>')":                                       "True",
		"'1.10' is version_compare('1.9', '>')":                            "True",
		"'1.10' is ansible.builtin.version('1.9', operator='>')":           "True",
	} {
		wantValue(t, src, expr.Names{}, want)
	}
	for src, want := range map[string]string{
		"'' is version('1')":   "empty",
		"none is version('1')": "empty",
		"nope is version('1')": "'nope' is undefined",
		"'1' is version('1', strict=true, version_type='semver')": "either",
		"'1' is version('1', version_type='x')":                   "version_type must be",
		"'1.2.3.4' is version('1', version_type='semver')":        "no semver version",
		"'1.2x' is version('1', version_type='pep440')":           "no pep440 version",
		"'1' is version('1.2.3.4', version_type='semver')":        "no semver version",
	} {
		wantError(t, src, expr.Names{}, want)
	}
}

func TestResults(t *testing.T) {
	ok := value.NewDict("rc", 0, "failed", false, "changed", true)
	loop := value.NewDict("results", []any{value.NewDict("changed", false), "x", value.NewDict("changed", true)})
	scope := expr.Names{
		"ok": ok, "bad": value.NewDict("failed", true, "unreachable", true), "loop": loop,
		"still":   value.NewDict("results", []any{}),
		"skipped": value.NewDict("skipped", true), "job": value.NewDict("started", 1, "finished", 0),
		"late": value.NewDict("timedout", value.NewDict("period", 5)),
	}
	for _, src := range []string{
		"ok is succeeded", "ok is success", "ok is successful", "ok is changed", "ok is change", "ok is not failed",
		"ok is reachable",
		"ok is not skipped", "ok is finished", "ok is started", "ok is not timedout", "bad is failed", "bad is failure",
		"bad is unreachable", "bad is not changed", "loop is changed", "still is not changed", "skipped is skipped",
		"skipped is skip",
		"job is started", "job is not finished", "late is timedout",
	} {
		wantValue(t, src, scope, "True")
	}
	wantError(t, "nope is failed", scope, "'nope' is undefined")
}

func TestTextTests(t *testing.T) {
	for src, want := range map[string]string{
		"'abc' is match('b')":                                  "False",
		"'abc' is match('ab')":                                 "True",
		"'abc' is match('x|b')":                                "False",
		"'abc' is search('b')":                                 "True",
		"'ABC' is search('b')":                                 "False",
		"'ABC' is search('b', ignorecase=true)":                "True",
		"'a\\nb' is search('^b')":                              "False",
		"'a\\nb' is search('^b', multiline=true)":              "True",
		"'abc' is regex('b')":                                  "True",
		"'abc' is regex('b', match_type='match')":              "False",
		"'abc' is regex('ab', match_type='fullmatch')":         "False",
		"'abc' is regex('a|abc', match_type='fullmatch')":      "True",
		"'foobar' is match('foo(?=bar)')":                      "True",
		"15 is match('1')":                                     "True",
		"'$ANSIBLE_VAULT;1.1' is vault_encrypted":              "True",
		"1 is vault_encrypted":                                 "False",
		"'http://a/b' is url":                                  "True",
		"'file:///etc' is url":                                 "True",
		"'/etc' is url":                                        "False",
		"'mailto:x@y' is url":                                  "False",
		"'mailto:x@y' is uri":                                  "True",
		"'http://a' is uri(['https'])":                         "False",
		"'http://a' is uri(schemes=['https', 'http'])":         "True",
		"'urn:isbn:1' is urn":                                  "True",
		"5 is url":                                             "False",
		"':' is url":                                           "False",
		"nan is nan and 1 is not nan":                          "True",
		"1.5 is divisibleby 1":                                 "False",
		"4.0 is even":                                          "True",
		"list is sameas list and list is not sameas other":     "True",
		"d is sameas d and d is not sameas {}":                 "True",
		"nope is sameas nope":                                  "False",
		"'maybe' is truthy(convert_bool=true)":                 "True",
		"[1] is subset([1, 2]) and [3] is not issubset([1])":   "True",
		"{'a': 1} is subset ['a']":                             "True",
		"'a' is filter or 'a' is test":                         "False",
		"'a' is escaped":                                       "False",
		"('' if false) is odd | default(true) if false else 1": "1",
	} {
		scope := expr.Names{"nan": math.NaN(), "list": []any{1}, "other": []any{1}, "d": value.NewDict()}
		wantValue(t, src, scope, want)
	}
	for src, want := range map[string]string{
		"'x' is odd":         "an integer is needed",
		"1 is any":           "not iterable",
		"[nope] is all":      "'nope' is undefined",
		"1 is subset [1]":    "not iterable",
		"[1] is subset 1":    "not iterable",
		"1 is eq nope":       "'nope' is undefined",
		"1 is in nope":       "'nope' is undefined",
		"1 is in 2":          "is not iterable",
		"nope is match('x')": "'nope' is undefined",
		"1 is eq":            "needs the argument other",
		"1 is eq(2, 3)":      "at most 1",
	} {
		wantError(t, src, expr.Names{}, want)
	}
}

func TestFileTests(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"l": file, "broken": filepath.Join(dir, "gone")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	env := expr.New(expr.Options{Files: source.Tree{Embedded: fstest.MapFS{"roles/x.yml": {}}}}, everything()...)
	for _, src := range []string{
		"dir is directory and f is not directory", "f is file and dir is not is_file", "l is link and f is not link",
		"f is exists and gone is not exists and broken is not exists", "broken is link_exists and f is link_exists",
		"f is abs and 'x' is not abs", "l is same_file(f) and dir is not same_file f", "gone is not same_file f",
		"'/' is mount and dir is not mount and f is not mount and gone is not mount",
		"'builtin:/roles/x.yml' is file and 'builtin:/roles' is directory and 'builtin:/y' is not exists",
		"'builtin:/roles' is not mount and 'builtin:/roles' is not link",
	} {
		x, err := env.Compile(src, source.Pos{}, expr.Escaped)
		if err != nil {
			t.Fatal(err)
		}
		scope := expr.Names{"dir": dir, "f": file, "l": filepath.Join(dir, "l"), "broken": filepath.Join(dir, "broken"),
			"gone": filepath.Join(dir, "gone")}
		if got, err := x.Eval(context.Background(), scope); got != true || err != nil {
			t.Errorf("%s: %v %v", src, got, err)
		}
	}
}

func TestLookupDispatch(t *testing.T) {
	env := expr.New(expr.Options{}, expr.Library{Lookups: []expr.Lookup{
		{Names: "echo", Do: func(_ *expr.Call, terms []any, _ *expr.Bound) ([]any, error) { return terms, nil }},
		{Names: "opt", Params: "**", Do: func(_ *expr.Call, _ []any, p *expr.Bound) ([]any, error) {
			v, _ := p.Named.Get("key")
			return []any{v, p.Named.Len()}, nil
		}},
		{Names: "one", Do: func(*expr.Call, []any, *expr.Bound) ([]any, error) { return []any{5}, nil }},
		{Names: "fail", Do: func(*expr.Call, []any, *expr.Bound) ([]any, error) { return nil, errors.New("no such thing") }},
		{Names: "undef", Do: func(*expr.Call, []any, *expr.Bound) ([]any, error) { return nil, &value.Undefined{Name: "term"} }},
	}})
	for src, want := range map[string]string{
		"lookup('echo', 'a', 'b')":                   "'a,b'",
		"lookup('echo', 'a')":                        "'a'",
		"lookup('echo', 5)":                          "5",
		"lookup('echo', {'a': 1})":                   "{'a': 1}",
		"lookup('echo', 'a', 5)":                     "['a', 5]",
		"lookup('echo')":                             "[]",
		"lookup('echo', 'a', wantlist=true)":         "['a']",
		"query('echo', 'a', 'b')":                    "['a', 'b']",
		"q('ansible.builtin.echo', 'a')":             "['a']",
		"query('echo', 'a', wantlist=false)":         "'a'",
		"lookup('opt', key='v', errors='ignore')":    "['v', 1]",
		"lookup('one')":                              "5",
		"q('one')":                                   "[5]",
		"lookup('fail', errors='ignore')":            "None",
		"lookup('fail', errors='warn')":              "None",
		"q('fail', errors='ignore')":                 "[]",
		"lookup('fail', errors='ignore') or 'other'": "'other'",
		"lookup(which, 'x')":                         "'x'",
	} {
		x, err := env.Compile(src, source.Pos{}, expr.Escaped)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		got, err := x.Eval(context.Background(), expr.Names{"which": "echo"})
		if err != nil || value.Repr(got) != want {
			t.Errorf("%s = %s %v, want %s", src, value.Repr(got), err, want)
		}
	}
	for src, want := range map[string]string{
		"lookup('fail')":                   "lookup 'fail': fail: no such thing",
		"lookup('undef', errors='ignore')": "'term' is undefined",
		"lookup(which)":                    `no lookup named 'ecko' (did you mean "echo"?)`,
		"lookup(nope)":                     "'nope' is undefined",
	} {
		x, err := env.Compile(src, source.Pos{}, expr.Escaped)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		_, err = x.Eval(context.Background(), expr.Names{"which": "ecko"})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}

func TestObjects(t *testing.T) {
	scope := expr.Names{
		"ns": made(t, "namespace(a=1)"), "j": made(t, "joiner('|')"), "c": made(t, "cycler(1, 2)"),
		"obj": value.NewDict("f", expr.Func(func(_ *expr.Call, a expr.Args) (any, error) { return len(a.Positional), nil })),
	}
	for _, c := range [][2]string{
		{"ns ~ ''", `"<Namespace {'a': 1}>"`},
		{"ns.b is defined", "False"},
		{"5 in ns", "False"},
		{"j() ~ j() ~ j()", "'||'"},
		{"c.next() ~ c.next() ~ c.next()", "'121'"},
		{"c.nope is defined", "False"},
		{"obj.f(1, 2)", "2"},
		{"obj['f'](1)", "1"},
		{"(obj.f)(*[1, 2, 3])", "3"},
		{"[obj.f][0]()", "0"},
	} {
		wantValue(t, c[0], scope, c[1])
	}
	wantError(t, "ns.b", scope, "'namespace object' has no attribute 'b'")
	wantError(t, "ns.b()", scope, "'namespace object' has no attribute 'b'")
	wantError(t, "namespace(5)", scope, "no list of pairs")
	wantError(t, "obj.f(nope)()", scope, "'int' object is not callable")
	if items, err := expr.Iterate("ab"); len(items) != 2 || err != nil {
		t.Errorf("Iterate: %v %v", items, err)
	}
	if v, err := expr.Attr(value.NewDict("a", 1), "a"); v != 1 || err != nil {
		t.Errorf("Attr: %v %v", v, err)
	}
}

func TestMoreOperators(t *testing.T) {
	scope := expr.Names{"min": math.MinInt, "max": math.MaxInt, "inf": math.Inf(1), "nan": math.NaN()}
	for src, want := range map[string]string{
		"min % -1": "0", "0 - max - 1 == min": "True", "max + 0 == max": "True", "min + 0 == min": "True",
		"max - 0 == max": "True",
		"(-1) ** 3":      "-1", "(-1) ** 4": "1", "1 ** 99": "1", "0 ** 5": "0", "(-2) ** 63 == min": "True",
		"min * 1 == min": "True",
		"+1.5":           "1.5", "-1.5": "-1.5", "[] * 5": "[]", "true * 'ab'": "'ab'", "'%F %E %G %A' | length": "11",
		"'%f %F %e %g' % (inf, inf, inf, nan)": "'inf INF inf nan'", "'%05f' % inf": "'  inf'", "'%c' % 'é'": "'é'",
		"'%.5d|%+.3d|%ld' % (42, 7, 1)": "'00042|+007|1'", "'% d|%-+5d|' % (5, 5)": "' 5|+5   |'",
		"'%-*d|' % (4, 7)": "'7   |'",
		"'%*d|' % (-4, 7)": "'7   |'", "'%#.3g' % 1.0": "'1.00'",
		"'{:%}|{:n}|{:E}|{:.3}'.format(0.5, 2, 12.5, 1.23456)":    "'50.000000%|2|1.250000E+01|1.23'",
		"'{:,.2f}|{:=+6d}|{:<6}|{:c}'.format(1234.5, 5, 1.5, 65)": "'1,234.50|+    5|1.5   |A'",
		"'{0.k}{0[k]}{1[0]}'.format({'k': 1}, ['x'])":             "'11x'",
		"'{!r:>5}'.format('a')":                                   "\"  'a'\"",
		"x == none if false":                                      "None",
	} {
		wantValue(t, src, scope, want)
	}
	for src, want := range map[string]string{
		"min // -1": "64 bits", "-min": "64 bits", "min - 1": "64 bits", "max + 1": "64 bits", "min * -1": "64 bits",
		"(-8.0) ** 0.5": "root of a negative",
		"0.0 ** -1":     "negative power", "nope + 1": "undefined", "1 + nope": "undefined", "-nope": "undefined",
		"nope[0:1]": "undefined", "'a'.count(1)": "must be a string", "'a'.find(1)": "must be a string",
		"'a'.partition(1)": "must be a string",
		"'a'[nope:]":       "undefined", "'a'[nope]": "undefined", "'abc'['x':]": "slice indices", "'abc'[:1.5]": "slice indices",
		"'abc'[::'x']": "slice indices",
		"5[1:]":        "cannot be sliced", "'%c' % 300000000": "%c requires", "'%c' % 'ab'": "%c requires",
		"'%x' % 'a'": "an integer is required",
		"'%f' % 'a'": "must be real number", "'%(a' % {'a': 1}": "incomplete format key", "'%(a)s' % 1": "requires a mapping",
		"'%(b)s' % {'a': 1}": "mapping lacks",
		"'%' % 1":            "incomplete format", "'%*d' % ('a', 1)": "small int", "'%*d' % ()": "not enough arguments",
		"'%.*d' % ()": "not enough",
		"'%s' % nope": "undefined", "'{!x}'.format(1)": "unknown conversion", "'{:f}'.format('a')": "unknown format code",
		"'{:d}'.format(1.5)": "unknown format code",
		"'{:q}'.format(1)":   "invalid format", "'{0[a}'.format(1)": "missing ']'", "'{a}'.format(1)": "no argument",
		"'{0.z}'.format({})":         "has no attribute 'z'",
		"'{:{:{}}}'.format(1, 2, 3)": "too deep", "'}'.format(1)": "single '}'", "'a'.split(1)": "must be a string",
		"'a'.rsplit('', 1)": "empty separator",
		"'a'.partition('')": "empty separator", "'a'.replace(1, 2)": "two strings",
		"'a'.center(5, 'ab')": "exactly one character", "'a'.find('a', 'b')": "slice indices",
		"'\\t'.expandtabs(10 ** 9)": "larger than", "'a'.replace('', 'b' * 10000000)": "larger than",
		"','.join([nope])": "undefined", "'a'.upper(nope)": "undefined",
		"[].append()": "needs the argument value", "[1].index(1, 'x')": "slice indices", "[1].remove(2)": "not in the list",
		"[1].pop(5)":   "out of range",
		"{}.popitem()": "is empty", "{}.update(5)": "no list of pairs", "{}.update([1])": "no pair",
		"[1, 'a'].sort()": "not supported", "[].extend(5)": "not iterable",
		"f(a=1, **{'a': 2})": "undefined", "dict(a=1, **{'a': 2})": "given twice", "range(1, a=2, a=3)": "given twice",
		"range('x')": "whole number",
	} {
		x, err := expr.New(expr.Options{}, everything()...).Compile(src, source.Pos{}, expr.Escaped)
		if err == nil {
			_, err = x.Eval(context.Background(), scope)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}

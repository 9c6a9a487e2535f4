package file

import (
	"os/exec"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func op(name, path string, more ...any) *value.Dict {
	d := value.NewDict("op", name, "path", path)
	d.Merge(value.NewDict(more...))
	return d
}

func TestJSONPatch(t *testing.T) {
	text := "{\n    \"z\": 1.50,\n    \"a\": {\"b\": [1, 2], \"c\": \"<&>\"}\n}\n"
	tail := "\n    \"a\": {\n        \"b\": [\n            1,\n            2\n        ],\n        \"c\": \"<&>\"\n    }\n}\n"
	moduletest.Edits(t, spec(t, "json_patch"), []editCase{
		{"merge", text, args("merge", value.NewDict("z", 2)), "{\n    \"z\": 2," + tail, ""},
		{"merge the same", text, args("merge", value.NewDict("a", value.NewDict("c", "<&>"), "gone", nil)), text, ""},
		{"merge removes", text, args("merge", value.NewDict("a", nil)), "{\n    \"z\": 1.50\n}\n", ""},
		{"add", "{}\n", args("operations", []any{op("add", "/x", "value", nil), op("add", "/y~1z", "value", []any{true})}),
			"{\"x\":null,\"y/z\":[true]}\n", ""},
		{"add the same", `{"x":1}`, args("operations", []any{op("add", "/x", "value", 1)}), `{"x":1}`, ""},
		{"add to a list", `[1]`, args("operations", []any{op("add", "/-", "value", 2), op("add", "/0", "value", 0)}),
			`[0,1,2]`, ""},
		{"remove", `{"x":1,"y":2}`, args("operations", []any{op("remove", "/x"), op("remove", "/none")}), `{"y":2}`, ""},
		{"move and copy", `{"x":1,"y":{}}`, args("operations",
			[]any{op("move", "/y/x", "from", "/x"), op("copy", "/z", "from", "/y")}), `{"y":{"x":1},"z":{"x":1}}`, ""},
		{"test that is met", `{"x":1}`, args("operations",
			[]any{op("test", "/x", "value", 1), op("replace", "/x", "value", 2)}), `{"x":2}`, ""},
		{"test that is not met", `{"x":1}`, args("operations",
			[]any{op("replace", "/x", "value", 2), op("test", "/x", "value", 1)}), `{"x":1}`, ""},
		{"indent", `{"x":1}`, args("merge", value.NewDict("x", 2), "indent", 1), "{\n \"x\": 2\n}", ""},
	})
	dir := t.TempDir()
	r, _ := moduletest.RunTwice(t, spec(t, "json_patch"),
		args("path", dir+"/new", "create", true, "merge", value.NewDict("a", value.NewDict("b", 1)), "mode", "0600"),
		moduletest.Options{Diff: true})
	moduletest.Want(t, r, "mode", "0600", "tested", nil)
	if got := read(t, dir+"/new"); got != "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n" {
		t.Errorf("the file holds %q", got)
	}
	p := write(t, dir+"/f", `{"x":1}`, 0o644)
	r = moduletest.Run(t, spec(t, "json_patch"), args("path", p, "operations", []any{op("test", "/x", "value", 2)}),
		moduletest.Options{})
	moduletest.Want(t, r, "tested", false)
	broken := write(t, dir+"/broken", `{"x":`, 0o644)
	s := spec(t, "json_patch")
	moduletest.Fails(t, "is not valid JSON", s, args("path", broken, "merge", value.NewDict("a", 1)), moduletest.Options{})
	list := write(t, dir+"/list", `[]`, 0o644)
	moduletest.Fails(t, "is an object", s, args("path", list, "merge", value.NewDict("a", 1)), moduletest.Options{})
	moduletest.Fails(t, "operations", s, args("path", p), moduletest.Options{})
	moduletest.Fails(t, "missing", s, args("path", p, "operations", []any{op("replace", "/no", "value", 1)}),
		moduletest.Options{})
	moduletest.Fails(t, "patch "+p, s, args("path", p, "operations", []any{op("move", "/y")}), moduletest.Options{})
	if read(t, p) != `{"x":1}` {
		t.Errorf("a patch that failed left %q", read(t, p))
	}
}

func TestHTPasswd(t *testing.T) {
	dir := t.TempDir()
	s := spec(t, "htpasswd")
	p := dir + "/users"
	for _, scheme := range []string{"apr_md5_crypt", "md5_crypt", "sha256_crypt", "sha512_crypt", "bcrypt",
		"portable_apache24", "ldap_sha1"} {
		r, again := moduletest.RunTwice(t, s, args("path", p, "name", scheme, "password", "pass: wörd", "hash_scheme", scheme,
			"mode", "0640"), moduletest.Options{Diff: true})
		if !strings.HasPrefix(r.Msg, "Added ") && r.Msg != "Created "+p || again.Msg != scheme+" already present" ||
			len(r.Diff) != 0 {
			t.Errorf("%s: %+v, then %q", scheme, r, again.Msg)
		}
	}
	text := read(t, p)
	if strings.Contains(text, "wörd") || strings.Count(text, "\n") != 7 || !strings.Contains(text, "\nbcrypt:$2y$10$") {
		t.Errorf("the file holds\n%s", text)
	}
	moduletest.RunTwice(t, s, args("path", p, "name", "bcrypt", "password", "other"), moduletest.Options{})
	if text = read(t, p); !strings.Contains(text, "\nbcrypt:$apr1$") || strings.Count(text, "\n") != 7 {
		t.Errorf("the file holds\n%s", text)
	}
	r, _ := moduletest.RunTwice(t, s, args("path", p, "name", "bcrypt", "state", "absent"), moduletest.Options{})
	if r.Msg != "Removed bcrypt" || strings.Contains(read(t, p), "bcrypt:$") {
		t.Errorf("%q left\n%s", r.Msg, read(t, p))
	}
	if r = moduletest.Run(t, s, args("path", dir+"/none", "name", "x", "state", "absent"),
		moduletest.Options{}); r.Changed {
		t.Errorf("result is %+v", r)
	}
	moduletest.Fails(t, "must not contain colons", s, args("path", p, "name", "a:b", "password", "x"),
		moduletest.Options{})
	moduletest.Fails(t, "missing: password", s, args("path", p, "name", "a"), moduletest.Options{})
	moduletest.Fails(t, "does not exist !", s, args("path", dir+"/none", "name", "a", "password", "x", "create", false),
		moduletest.Options{})
}

// TestHTPasswdKeepsSecrets checks that neither the password nor its hash is on any command line.
func TestHTPasswdKeepsSecrets(t *testing.T) {
	conn := moduletest.Count(nil)
	p := t.TempDir() + "/users"
	r := moduletest.Run(t, spec(t, "htpasswd"), args("path", p, "name", "ada", "password", "plain-password"),
		moduletest.Options{Conn: conn, Diff: true})
	hash := strings.TrimPrefix(strings.TrimSpace(read(t, p)), "ada:")
	for _, secret := range []string{"plain-password", hash} {
		if strings.Contains(strings.Join(conn.Lines(), "\n")+value.Repr(r.Data)+r.Msg, secret) {
			t.Errorf("%s is where others look", secret)
		}
	}
}

// TestHTPasswdAsOthersHash accepts hashes made by other tools.
func TestHTPasswdAsOthersHash(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	for _, kind := range []string{"-apr1", "-1", "-5", "-6"} {
		out, err := exec.Command("openssl", "passwd", kind, "it's me").Output()
		if err != nil {
			t.Fatal(err)
		}
		p := write(t, t.TempDir()+"/users", "ada:"+string(out), 0o600)
		if r := moduletest.Run(t, spec(t, "htpasswd"), args("path", p, "name", "ada", "password", "it's me"),
			moduletest.Options{}); r.Changed {
			t.Errorf("openssl passwd %s made %s, which counts as wrong", kind, out)
		}
	}
}

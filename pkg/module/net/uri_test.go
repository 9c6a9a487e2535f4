package net_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// api echoes requests.
func api(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		user, password, _ := r.BasicAuth()
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/text", http.StatusFound)
		case "/text":
			http.SetCookie(w, &http.Cookie{Name: "sid", Value: "7"})
			fmt.Fprint(w, "plain\n")
		case "/made":
			w.WriteHeader(http.StatusCreated)
		case "/missing":
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.Header().Set("X-Some-Thing", "v")
			fmt.Fprintf(w, `{"method": %q, "body": %q, "type": %q, "token": %q, "user": %q, "n": 1}`,
				r.Method, body, r.Header.Get("Content-Type"), r.Header.Get("X-Token"), user+":"+password)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestURI(t *testing.T) {
	base := api(t)
	cases := []struct {
		name string
		args []any
		want map[string]any // of the JSON that came back, or of the result with a leading dot
	}{
		{"get", []any{"url", base + "/echo"}, map[string]any{"method": "GET", "body": "", ".status": 200,
			".x_some_thing": "v", ".redirected": false, ".content": nil}},
		{"content", []any{"url", base + "/text", "return_content", true},
			map[string]any{".content": "plain\n", ".json": nil, ".url": base + "/text"}},
		{"cookies", []any{"url", base + "/text"},
			map[string]any{".cookies": value.NewDict("sid", "7"), ".cookies_string": "sid=7"}},
		{"json", []any{"url", base + "/echo", "method", "put", "body_format", "json", "body",
			value.NewDict("a", []any{1, "x\"y\n"})},
			map[string]any{"method": "PUT", "body": `{"a": [1, "x\"y\n"]}`, "type": "application/json"}},
		{"json text", []any{"url", base + "/echo", "method", "POST", "body_format", "json", "body", "{}"},
			map[string]any{"body": "{}"}},
		{"form", []any{"url", base + "/echo", "method", "POST", "body_format", "form-urlencoded", "body",
			value.NewDict("a", "1&2", "b", true, "c", []any{1, "x", nil})},
			map[string]any{"body": "a=1%262&b=True&c=1&c=x", "type": "application/x-www-form-urlencoded"}},
		{"raw", []any{"url", base + "/echo", "method", "POST", "body", "a\tb\\\r\n", "headers",
			value.NewDict("Content-Type", "x/y")}, map[string]any{"body": "a\tb\\\r\n", "type": "x/y"}},
		{"raw dict", []any{"url", base + "/echo", "method", "POST", "body", value.NewDict("a", 1)},
			map[string]any{"body": `{"a": 1}`}},
		{"password", []any{"url", base + "/echo", "user", "bob", "password", "pw", "force_basic_auth", true},
			map[string]any{"user": "bob:pw"}},
		{"redirect", []any{"url", base + "/moved", "return_content", true},
			map[string]any{".content": "plain\n", ".redirected": true, ".url": base + "/text"}},
		{"no redirect", []any{"url", base + "/moved", "follow_redirects", "none", "status_code", 302},
			map[string]any{".status": 302, ".location": base + "/text"}},
		{"no redirect of a post", []any{"url", base + "/moved", "method", "POST", "status_code", "302"},
			map[string]any{".status": 302}},
		{"codes", []any{"url", base + "/made", "status_code", []any{200, 201}}, map[string]any{".status": 201}},
		{"head", []any{"url", base + "/echo", "method", "HEAD"}, map[string]any{".status": 200}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			count := moduletest.Count(nil)
			r := run(t, "uri", moduletest.Options{Conn: count}, c.args...)
			if r.Failed || r.Changed || len(count.Lines()) != 1 {
				t.Fatalf("got %+v %s", r, value.Repr(r.Data))
			}
			echo, _ := get(r, "json").(*value.Dict)
			for k, want := range c.want {
				got, _ := echo.Get(k)
				if name, ok := strings.CutPrefix(k, "."); ok {
					got = get(r, name)
				}
				if !value.Equal(got, want) {
					t.Errorf("%s: got %s, want %s", k, value.Repr(got), value.Repr(want))
				}
			}
		})
	}
}

func TestURIFailures(t *testing.T) {
	base := api(t)
	r := run(t, "uri", moduletest.Options{}, "url", base+"/missing")
	if !r.Failed || r.Msg != "Status code was 404 and not [200]: Not Found" ||
		get(r, "content") != "404 page not found\n" {
		t.Errorf("got %+v %s", r, value.Repr(r.Data))
	}
	r = run(t, "uri", moduletest.Options{}, "url", fmt.Sprintf("http://127.0.0.1:%d/", closed(t)))
	if !r.Failed || get(r, "status") != -1 ||
		!strings.HasPrefix(r.Msg, "Status code was -1 and not [200]: Request failed: ") {
		t.Errorf("got %+v %s", r, value.Repr(r.Data))
	}
	for _, args := range [][]any{{"url", "nope"}, {"url", base, "body", "@/etc/passwd"},
		{"url", base, "headers", value.NewDict("a", "b\nc")}} {
		if r := run(t, "uri", moduletest.Options{}, args...); !r.Failed || r.Msg == "" {
			t.Errorf("%v: got %+v", args, r)
		}
	}
	if r := run(t, "uri", moduletest.Options{Check: true}, "url", base); !r.Skipped {
		t.Errorf("got %+v", r)
	}
	only(t)
	if r := run(t, "uri", moduletest.Options{}, "url", base); !r.Failed ||
		!strings.Contains(r.Msg, "curl is not installed") {
		t.Errorf("got %+v", r)
	}
}

func TestURIFiles(t *testing.T) {
	base := api(t)
	dest := filepath.Join(t.TempDir(), "out")
	for i, want := range []bool{true, false} {
		if r := run(t, "uri", moduletest.Options{}, "url", base+"/text", "dest", dest); r.Failed || r.Changed != want {
			t.Errorf("run %d: got %+v", i, r)
		}
	}
	if got, err := os.ReadFile(dest); err != nil || string(got) != "plain\n" {
		t.Errorf("got %q, %v", got, err)
	}
	folder := t.TempDir()
	if r := run(t, "uri", moduletest.Options{}, "url", base+"/text", "dest", folder); r.Data.String("path") != folder+
		"/text" {
		t.Errorf("into a folder: got %s", value.Repr(r.Data))
	}
	for key, path := range map[string]string{"creates": dest, "removes": dest + "x"} {
		if r := run(t, "uri", moduletest.Options{}, "url", base+"/missing", key, path); r.Failed ||
			!strings.HasPrefix(fmt.Sprint(get(r, "stdout")), "skipped, since") {
			t.Errorf("%s: got %+v", key, r)
		}
	}
}

func TestURISendsFiles(t *testing.T) {
	base := api(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"files/f.txt": "on the control node", "host": "on the host\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := moduletest.Options{Dir: dir}
	sent := func(pairs ...any) (string, string) {
		t.Helper()
		r := run(t, "uri", o, append([]any{"url", base + "/echo", "method", "POST"}, pairs...)...)
		d, _ := moduletest.Field(r, "json").(*value.Dict)
		if d == nil {
			t.Fatalf("got %+v", r)
		}
		return d.String("body"), d.String("type")
	}
	if body, kind := sent("src", "f.txt", "body_format", "json"); body != "on the control node" ||
		kind != "application/json" {
		t.Errorf("sent %q as %s", body, kind)
	}
	if body, _ := sent("src", filepath.Join(dir, "host"), "remote_src", true); body != "on the host\n" {
		t.Errorf("sent %q", body)
	}
	body, kind := sent("body_format", "form-multipart", "body", value.NewDict(
		"plain", "a b", "file", value.NewDict("filename", "f.txt"), "data",
		value.NewDict("content", "{}", "filename", "x.json", "mime_type", "application/x")))
	for _, part := range []string{
		"form-data; name=plain\r\n\r\na b\r\n", "filename=f.txt", "text/plain", "on the control node", "filename=x.json",
		"Content-Type: application/x\r\n\r\n{}\r\n",
	} {
		if !strings.Contains(strings.ReplaceAll(body, `"`, ""), part) ||
			!strings.HasPrefix(kind, "multipart/form-data; boundary=") {
			t.Errorf("%q is not in %q, sent as %s", part, body, kind)
		}
	}
	for _, c := range []struct {
		text  string
		pairs []any
	}{
		{"mutually exclusive: body|src", []any{"src", "f.txt", "body", "x"}},
		{"Could not find or access 'none'", []any{"src", "none"}},
		{"must be a dict of fields", []any{"body_format", "form-multipart", "body", "x"}},
		{"field a: at least one of filename or content",
			[]any{"body_format", "form-multipart", "body", value.NewDict("a", value.NewDict())}},
	} {
		if r := run(t, "uri", o, append([]any{"url", base + "/echo"}, c.pairs...)...); !r.Failed ||
			!strings.Contains(r.Msg, c.text) {
			t.Errorf("%s: got %+v", c.text, r)
		}
	}
}

func TestURIKeepsSecrets(t *testing.T) {
	base := api(t)
	count := moduletest.Count(nil)
	r := run(t, "uri", moduletest.Options{Conn: count}, "url", base+"/text?k=qu3ry", "method", "POST", "body", "b0dy",
		"user", "bob", "password", "s3cret",
		"headers", value.NewDict("X-Token", "t0ken"))
	seen := strings.Join(count.Lines(), "\n") + value.Repr(r.Data)
	for _, secret := range []string{"t0ken", "s3cret", "qu3ry", "b0dy"} {
		if strings.Contains(seen, secret) {
			t.Errorf("%s is seen in %s", secret, seen)
		}
	}
}

package expr_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// lookupFolder is a playbook with a role, for lookups that search files.
func lookupFolder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"root.txt":            "root\n",
		"role/files/a.txt":    "one\ntwo\n",
		"role/files/pad.txt":  "  x\n",
		"role/templates/x.j2": "x",
		"role/files/c.ini":    "[DEFAULT]\nport: 80\n[web]\n; no\nuser = alice\nmore = a\n  b=c\n\n  d\n[indented]\n  x = 1\n  y = 2\n[db]\nuser = bob\n",
		"role/files/case.ini": "[web]\nPort = 1\nPORT = 2\n[db]\nHost = x\n",
		"role/files/bare.ini": "[web]\nx\ny=1 ; 2\n",
		"role/files/p.ini":    "top = yes\n a\n",
		"role/files/bad.ini":  "s3cret\n",
		"role/files/e.csv":    "Symbol,Number,Mass\nH,1,1.008\nLi,3,6.94\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func lookupScope(dir string) expr.Names {
	return expr.Names{
		"ansible_search_path": []any{filepath.Join(dir, "role")},
		"playbook_dir":        dir,
		"inventory_hostname":  "n1",
		"groups": value.NewDict("all", []any{"n1", "n2", "n3"}, "web", []any{"n1", "n2"},
			"db", []any{"n2", "n3"}),
	}
}

func lookupEnvironment() *expr.Env {
	return expr.New(expr.Options{Now: fixedNow,
		Template: func(_ context.Context, f expr.TemplateFile, s expr.Scope) (string, error) {
			host, _, err := s.Lookup("inventory_hostname")
			return filepath.Base(f.Path) + f.VariableStart + f.CommentEnd + " for " + value.Str(host), err
		}}, everything()...)
}

func TestLookups(t *testing.T) {
	t.Setenv("KK_VAR", "val")
	caseFile(t, filepath.Join("testdata", "lookups.txt"), lookupEnvironment(), lookupScope(lookupFolder(t)))
}

func TestTemplateLookupNeedsAnEngine(t *testing.T) {
	checkError(t, expr.New(expr.Options{}, everything()...), expr.Names{}, source.Pos{}, "lookup('template', 'x.j2')",
		"cannot be rendered")
}

func TestPasswordIsKept(t *testing.T) {
	dir := t.TempDir()
	env, scope := expr.New(expr.Options{}, everything()...), expr.Names{"playbook_dir": dir}
	get := func(src string) string {
		t.Helper()
		v, err := evaluate(env, scope, source.Pos{}, src)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		return v.(string)
	}
	first := get("lookup('password', 'secrets/db length=12')")
	if again := get("lookup('password', 'secrets/db')"); again != first || len(first) != 12 {
		t.Errorf("the second lookup gave %q after %q", again, first)
	}
	file := filepath.Join(dir, "secrets", "db")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the file is %v, want 0600", info.Mode().Perm())
	}
	hashed := get("lookup('password', 'secrets/db encrypt=sha512_crypt')")
	if again := get("lookup('password', 'secrets/db encrypt=sha512_crypt')"); again != hashed {
		t.Errorf("the hash changed from %q to %q", hashed, again)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), first+" salt=") {
		t.Errorf("the file holds %q, want the password with its salt", text)
	}
	if plain := get("lookup('password', 'secrets/db')"); plain != first {
		t.Errorf("the password became %q, want %q", plain, first)
	}
	left, err := filepath.Glob(filepath.Join(dir, "secrets", ".password-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func TestPasswordFillsAnEmptyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	scope := expr.Names{"file": file}
	for _, src := range []string{"lookup('password', file) | length", "lookup('file', file) | length"} {
		checkValue(t, expr.New(expr.Options{}, everything()...), scope, source.Pos{}, src, "20")
	}
}

// Many hosts ask for a new password at the same time, and get the same one.
func TestPasswordForManyHosts(t *testing.T) {
	env := expr.New(expr.Options{}, everything()...)
	for range 50 {
		scope := expr.Names{"playbook_dir": t.TempDir()}
		got := make([]any, 16)
		var hosts sync.WaitGroup
		for i := range got {
			hosts.Go(func() {
				var err error
				if got[i], err = evaluate(env, scope, source.Pos{}, "lookup('password', 'secrets/db')"); err != nil {
					t.Error(err)
				}
			})
		}
		hosts.Wait()
		for _, password := range got {
			if password != got[0] {
				t.Fatalf("hosts got %q", got)
			}
		}
	}
}

// Check mode writes nothing: a password that does not exist yet is generated but not stored.
func TestPasswordIsNotKeptInCheckMode(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	if err := os.WriteFile(kept, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env, scope := expr.New(expr.Options{}, everything()...), expr.Names{"dir": dir, "ansible_check_mode": true}
	checkValue(t, env, scope, source.Pos{}, "lookup('password', dir ~ '/secrets/db length=12') | length", "12")
	checkValue(t, env, scope, source.Pos{}, "lookup('password', dir ~ '/kept')", "'secret'")
	checkValue(t, env, scope, source.Pos{}, "lookup('password', dir ~ '/kept encrypt=md5_crypt') | length", "34")
	if text, err := os.ReadFile(kept); err != nil || string(text) != "secret\n" {
		t.Errorf("the password that was there became %q (%v)", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "secrets")); !os.IsNotExist(err) {
		t.Errorf("check mode kept a password (%v)", err)
	}
}

func TestURLLookup(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch r.URL.Path {
		case "/ok":
			_, _ = w.Write([]byte("a\n" + user + password + r.Header.Get("X-K") + "\n"))
		case "/agent":
			_, _ = w.Write([]byte(r.UserAgent() + r.Header.Get("Cache-Control")))
		case "/to":
			http.Redirect(w, r, "/ok", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	})
	server, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer server.Close()
	defer secure.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	env, scope := expr.New(expr.Options{}, everything()...),
		expr.Names{"base": server.URL, "tls": secure.URL, "authority": authority}
	for src, want := range map[string]string{
		"query('url', tls ~ '/ok', validate_certs=false)":                              "['a', '']",
		"query('url', tls ~ '/ok', ca_path=authority)":                                 "['a', '']",
		"query('url', base ~ '/to')":                                                   "['a', '']",
		"query('url', base ~ '/agent')":                                                "['ansible-httpget']",
		"query('url', base ~ '/agent', http_agent='k', force=true)":                    "['kno-cache']",
		"query('url', base ~ '/ok')":                                                   "['a', '']",
		"query('url', base ~ '/ok', username='u', password='p', headers={'X-K': 'v'})": "['a', 'upv']",
		"query('url', base ~ '/ok', split_lines=false)":                                `['a\n\n']`,
	} {
		checkValue(t, env, scope, source.Pos{}, src, want)
	}
	for src, want := range map[string]string{
		"query('url', base ~ '/no')":                        "404",
		"query('url', base ~ '/to', follow_redirects='no')": "302",
		"query('url', base ~ '/ok', follow_redirects='x')":  "must be all",
		"query('url', base ~ '/ok', ca_path='/nowhere')":    "ca_path",
		"query('url', tls ~ '/ok')":                         "certificate",
		"query('url', 'ftp://x')":                           "unsupported protocol",
		"query('url', base ~ '/ok', timeout='soon')":        "whole number",
	} {
		checkError(t, env, scope, source.Pos{}, src, want)
	}
}

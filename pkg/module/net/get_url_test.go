package net_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/module/net"
	"kubekey/pkg/value"
)

// site is a web server with one file, /d/app.bin, that counts its answers.
type site struct {
	*httptest.Server
	mu      sync.Mutex
	content string
	auth    string // required when set
	cut     bool   // break off the next whole answer in the middle
	codes   []string
}

func newSite(t *testing.T, content string) *site {
	t.Helper()
	s := &site{content: content}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, password, _ := r.BasicAuth()
	switch {
	case s.auth != "" && r.Header.Get("X-Token")+user+password != s.auth:
		w.Header().Set("WWW-Authenticate", "Basic realm=x")
		http.Error(w, "no", http.StatusUnauthorized)
	case r.URL.Path == "/SUMS":
		fmt.Fprintf(w, "%s  other\n%s *dist/app.bin\n", strings.Repeat("0", 64), sha(s.content))
	case r.URL.Path == "/d/app.bin" && s.cut && r.Header.Get("Range") == "":
		s.cut = false
		s.codes = append(s.codes, "cut")
		w.Header().Set("Content-Length", fmt.Sprint(len(s.content)))
		fmt.Fprint(w, s.content[:len(s.content)/2])
	case r.URL.Path == "/d/app.bin":
		rec := &recorder{ResponseWriter: w, code: 200}
		http.ServeContent(rec, r, "app.bin", time.Unix(1700000000, 0), strings.NewReader(s.content))
		s.codes = append(s.codes, fmt.Sprint(rec.code))
	default:
		http.NotFound(w, r)
	}
}

type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

func (s *site) answers() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.codes, " ")
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// fetchTools are what get_url needs besides curl or wget.
func fetchTools(more ...string) []string {
	return append(more, "stat", "mktemp", "dirname", "chmod", "chown", "chgrp", "mv", "rm", "cp", "md5sum", "sha1sum",
		"sha256sum",
		"cut", "od", "tr", "head", "mkdir", "readlink", "id", "dd", "wc", "ls", "test", "printf", "basename", "awk", "sed",
		"grep", "touch", "tee", "mkfifo", "uname", "env", "true", "kill", "ln", "rmdir")
}

func TestGetURLIsIdempotent(t *testing.T) {
	for _, tool := range []string{"curl", "wget", "neither"} {
		for _, checksum := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s checksum=%v", tool, checksum), func(t *testing.T) {
				s := newSite(t, "content of the app\n")
				dest := filepath.Join(t.TempDir(), "app")
				only(t, fetchTools(tool)...)
				args := []any{"url", s.URL + "/d/app.bin", "dest", dest, "mode", "0750"}
				if checksum {
					args = append(args, "checksum", "sha256:"+sha(s.content))
				}
				spec := moduletest.Find(t, net.Modules(), "get_url")
				first, second := moduletest.RunTwice(t, spec, value.NewDict(args...), moduletest.Options{})
				if read(t, dest) != s.content || first.Msg != "OK (19 bytes)" || get(first, "status_code") != 200 ||
					get(first, "mode") != "0750" ||
					get(first, "size") != 19 || get(first, "checksum_src") == nil ||
					get(second, "checksum_dest") != get(first, "checksum_dest") {
					t.Errorf("got %s %s then %s", first.Msg, value.Repr(first.Data), value.Repr(second.Data))
				}
				if checksum && s.answers() != "200" {
					t.Errorf("the server answered %s", s.answers())
				}
				left, err := filepath.Glob(filepath.Dir(dest) + "/.*")
				if err != nil || len(left) > 0 {
					t.Errorf("left behind %v, %v", left, err)
				}
			})
		}
	}
}

func TestGetURLAsksForNewerOnly(t *testing.T) {
	s := newSite(t, "x")
	dest := filepath.Join(t.TempDir(), "app")
	args := []any{"url", s.URL + "/d/app.bin", "dest", dest}
	run(t, "get_url", moduletest.Options{}, args...)
	if r := run(t, "get_url", moduletest.Options{}, args...); r.Changed || get(r, "status_code") != 304 ||
		s.answers() != "200 304" {
		t.Errorf("got %+v after %s", r, s.answers())
	}
	s.content = "new"
	if r := run(t, "get_url", moduletest.Options{}, append(args, "force", true, "backup", true)...); !r.Changed ||
		read(t, dest) != "new" {
		t.Errorf("got %+v", r)
	} else if backup := get(r, "backup_file").(string); read(t, backup) != "x" {
		t.Errorf("the backup %s is wrong", backup)
	}
}

func TestGetURLFailures(t *testing.T) {
	s := newSite(t, "x")
	dir := t.TempDir()
	dest := filepath.Join(dir, "app")
	if err := os.WriteFile(dest, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	wrong := "sha256:" + strings.Repeat("0", 64)
	cases := []struct {
		name string
		args []any
		msg  string
	}{
		{"404", []any{"url", s.URL + "/none", "dest", dest, "force", true}, "404"},
		{"digest", []any{"url", s.URL + "/d/app.bin", "dest", dest, "checksum", wrong}, "did not match 000000"},
		{"no folder", []any{"url", s.URL + "/d/app.bin", "dest", dir + "/no/app"}, "Destination " + dir +
			"/no does not exist"},
		{"checksum", []any{"url", s.URL + "/d/app.bin", "dest", dest, "checksum", "sha256:12"},
			`"12" is not a sha256 digest`},
		{"algorithm", []any{"url", s.URL + "/d/app.bin", "dest", dest, "checksum", "crc:12"},
			"checksum must be ALGORITHM:DIGEST"},
		{"url", []any{"url", "example.org", "dest", dest}, "url must be an address"},
		{"header", []any{"url", s.URL, "dest", dest, "headers", value.NewDict("A", "b\nc")}, "headers must be one line each"},
	}
	for _, tool := range []string{"curl", "none"} {
		for _, c := range cases {
			t.Run(tool+" "+c.name, func(t *testing.T) {
				only(t, fetchTools(tool)...)
				if tool == "none" && c.name == "no folder" {
					c.msg = "does not exist"
				}
				r := run(t, "get_url", moduletest.Options{}, c.args...)
				if !r.Failed || !strings.Contains(r.Msg, c.msg) || read(t, dest) != "old" {
					t.Errorf("got %+v, want %q", r, c.msg)
				}
			})
		}
	}
}

func TestGetURLKeepsSecrets(t *testing.T) {
	for _, tool := range []string{"curl", "wget"} {
		t.Run(tool, func(t *testing.T) {
			s := newSite(t, "x")
			s.auth = "t0kenbobs3cr\"et"
			dest := filepath.Join(t.TempDir(), "app")
			only(t, fetchTools(tool)...)
			count := moduletest.Count(nil)
			r := run(t, "get_url", moduletest.Options{Conn: count}, "url", s.URL+"/d/app.bin?sig=qu3ry", "dest", dest,
				"headers", value.NewDict("X-Token", "t0ken"), "url_username", "bob", "url_password", "s3cr\"et", "force_basic_auth",
				true)
			if r.Failed || read(t, dest) != "x" {
				t.Fatalf("got %+v", r)
			}
			seen := strings.Join(count.Lines(), "\n") + value.Repr(r.Data) + r.Msg
			for _, secret := range []string{"t0ken", "s3cr", "qu3ry"} {
				if strings.Contains(seen, secret) {
					t.Errorf("%s is seen", secret)
				}
			}
		})
	}
}

func TestGetURLChecksumFile(t *testing.T) {
	for _, tool := range []string{"curl", "wget", "none"} {
		s := newSite(t, "x")
		dir := t.TempDir()
		only(t, fetchTools(tool)...)
		args := []any{"url", s.URL + "/d/app.bin", "dest", dir, "checksum", "sha256:" + s.URL + "/SUMS"}
		if r := run(t, "get_url", moduletest.Options{}, args...); r.Failed || !r.Changed || get(r, "dest") != dir+"/app.bin" {
			t.Errorf("%s: got %+v", tool, r)
		}
		if r := run(t, "get_url", moduletest.Options{}, args...); r.Failed || r.Changed || r.Msg != "file already exists" {
			t.Errorf("%s: got %+v", tool, r)
		}
		args[5] = "md5:" + s.URL + "/SUMS"
		spec := moduletest.Find(t, net.Modules(), "get_url")
		if _, err := moduletest.Try(t, spec, value.NewDict(args...), moduletest.Options{}); err == nil ||
			!strings.Contains(err.Error(), "has no entry for app.bin") {
			t.Errorf("%s: got %v", tool, err)
		}
	}
}

func TestGetURLKeepsAndSetsMode(t *testing.T) {
	s := newSite(t, "new")
	dest := filepath.Join(t.TempDir(), "app")
	if err := os.WriteFile(dest, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []any{"url", s.URL + "/d/app.bin", "dest", dest, "checksum", "sha256:" + sha("new")}
	if r := run(t, "get_url", moduletest.Options{}, args...); get(r, "mode") != "0600" {
		t.Errorf("the mode of the old file is lost: %s", value.Repr(r.Data))
	}
	args = append(args, "mode", "u+x")
	if r := run(t, "get_url", moduletest.Options{Check: true}, args...); !r.Changed {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "get_url", moduletest.Options{}, args...); !r.Changed || get(r, "mode") != "0700" {
		t.Errorf("got %+v %s", r, value.Repr(r.Data))
	}
	if r := run(t, "get_url", moduletest.Options{}, args...); r.Changed {
		t.Errorf("got %+v", r)
	}
}

func TestHTTPGetFile(t *testing.T) {
	s := newSite(t, strings.Repeat("0123456789", 1000))
	dest := filepath.Join(t.TempDir(), "app")
	args := value.NewDict("url", s.URL+"/none", "mirrors", s.URL+"/d/app.bin", "dest", dest, "mode", "0600", "checksum",
		"sha256:"+s.URL+"/SUMS")
	args.Set("url", s.URL+"/x/app.bin")
	spec := moduletest.Find(t, net.Modules(), "http_get_file")
	first, _ := moduletest.RunTwice(t, spec, args, moduletest.Options{Conn: moduletest.Unreachable{}})
	if read(t, dest) != s.content || get(first, "mode") != "0600" || get(first, "size") != 10000 || s.answers() != "200" {
		t.Errorf("got %s after %s", value.Repr(first.Data), s.answers())
	}
}

func TestHTTPGetFileResumes(t *testing.T) {
	s := newSite(t, strings.Repeat("0123456789", 1000))
	dir := t.TempDir()
	s.cut = true
	args := []any{"url", s.URL + "/d/app.bin", "dest", dir, "checksum", "sha256:" + sha(s.content)}
	if r := run(t, "http_get_file", moduletest.Options{}, args...); !r.Failed {
		t.Fatalf("half a file is taken for whole: %+v", r)
	}
	r := run(t, "http_get_file", moduletest.Options{}, args...)
	if r.Failed || read(t, dir+"/app.bin") != s.content || s.answers() != "cut 206" {
		t.Errorf("got %+v after %s", r, s.answers())
	}
}

func TestHTTPGetFileDropsAStalePart(t *testing.T) {
	s := newSite(t, "0123456789")
	dest := filepath.Join(t.TempDir(), "app")
	if err := os.WriteFile(dest+".part", []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, "http_get_file", moduletest.Options{}, "url", s.URL+"/d/app.bin", "dest", dest, "checksum", "sha256:"+
		sha(s.content))
	if r.Failed || read(t, dest) != s.content || s.answers() != "206 200" {
		t.Errorf("got %+v after %s", r, s.answers())
	}
}

func TestHTTPGetFileWithoutChecksum(t *testing.T) {
	s := newSite(t, "x")
	dest := filepath.Join(t.TempDir(), "app")
	args := []any{"url", s.URL + "/d/app.bin", "dest", dest}
	for i, want := range []bool{true, false} {
		if r := run(t, "http_get_file", moduletest.Options{}, args...); r.Failed || r.Changed != want {
			t.Errorf("run %d: got %+v", i, r)
		}
	}
	if s.answers() != "200 304" {
		t.Errorf("the server answered %s", s.answers())
	}
	if r := run(t, "http_get_file", moduletest.Options{}, append(args, "force", true)...); r.Changed {
		t.Errorf("the same content counts as a change: %+v", r)
	}
	if r := run(t, "http_get_file", moduletest.Options{},
		append(args, "checksum", "md5:"+strings.Repeat("0", 32))...); !r.Failed || read(t, dest) != "x" {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "http_get_file", moduletest.Options{Check: true}, append(args, "mode", "0700")...); !r.Changed {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "http_get_file", moduletest.Options{}, "url", s.URL+"/none?sig=s3cret", "dest", dest+"2"); !r.Failed ||
		strings.Contains(r.Msg, "s3cret") {
		t.Errorf("got %+v", r)
	}
	if r := run(t, "http_get_file", moduletest.Options{}, "url", "nope", "dest", dest); !r.Failed {
		t.Errorf("got %+v", r)
	}
}

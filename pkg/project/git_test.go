package project

import (
	"context"
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/redact"
)

// repository is a git repository with the file site.yml.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Setenv("HOME", t.TempDir())
	r := repository{t, t.TempDir()}
	r.git("init", "--quiet", "--initial-branch=main")
	return r
}

func (r repository) git(args ...string) {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	cmd.Dir = r.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git %q: %v: %s", args, err, out)
	}
}

func (r repository) commit(text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "site.yml"), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.git("add", "site.yml")
	r.git("commit", "--quiet", "--message", "c")
}

// fetched returns the content of site.yml in a checkout.
func fetched(t *testing.T, r Repository) string {
	t.Helper()
	dir, err := Checkout(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "site.yml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCheckout(t *testing.T) {
	origin := newRepository(t)
	origin.commit("one")
	origin.git("tag", "same")
	work := t.TempDir()
	r := Repository{URL: origin.dir, Dir: work}
	if got := fetched(t, r); got != "one" {
		t.Errorf("fetched %q", got)
	}
	origin.commit("two")
	if got := fetched(t, r); got != "two" {
		t.Errorf("fetched %q after a commit", got)
	}
	origin.git("checkout", "--quiet", "-b", "same")
	origin.commit("three")
	origin.git("checkout", "--quiet", "main")
	for want, r := range map[string]Repository{
		"one": {URL: origin.dir, Dir: work, Tag: "same"}, "three": {URL: "file://" + origin.dir, Dir: work, Branch: "same"},
	} {
		if got := fetched(t, r); got != want {
			t.Errorf("branch %q, tag %q: %q, not %q", r.Branch, r.Tag, got, want)
		}
	}
	marker := filepath.Join(work, "marker")
	for _, bad := range []Repository{
		{URL: origin.dir, Dir: work, Branch: "nope"}, {URL: origin.dir, Dir: work, Tag: "nope"},
		{URL: filepath.Join(origin.dir, "nope"), Dir: work},
		{URL: origin.dir, Dir: work, Token: new(redact.Set).Secret("@/nope")},
		{URL: origin.dir, Dir: filepath.Join(origin.dir, "site.yml")},
		{URL: "--upload-pack=touch " + marker, Dir: work}, {URL: "ext::touch " + marker, Dir: work},
	} {
		if _, err := Checkout(t.Context(), bad); err == nil {
			t.Errorf("%+v is fetched", bad)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("an address ran a program")
	}
	if left, _ := filepath.Glob(filepath.Join(work, "projects", "fetch-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCheckoutWithAToken(t *testing.T) {
	origin := newRepository(t)
	origin.commit("one")
	serve := &cgi.Handler{Path: mustLook(t, "git"), Args: []string{"http-backend"}, Env: []string{
		"GIT_PROJECT_ROOT=" + origin.dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + os.Getenv("HOME"),
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, password, _ := req.BasicAuth(); password != "s3cr3t-token" {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		serve.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	work := t.TempDir()
	r := Repository{URL: server.URL + "/.git", Dir: work, Token: new(redact.Set).Secret("s3cr3t-token")}
	if got := fetched(t, r); got != "one" {
		t.Errorf("fetched %q", got)
	}
	err := filepath.WalkDir(work, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if strings.Contains(string(text), "s3cr3t") {
			t.Errorf("%s holds the token", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, token := range []string{"", "wrong"} {
		r.Token = new(redact.Set).Secret(token)
		if _, err := Checkout(t.Context(), r); err == nil || strings.Contains(err.Error(), "wrong") {
			t.Errorf("with the token %q: %v", token, err)
		}
	}
	// A redirect to another server does not send the token there.
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, _, given := req.BasicAuth(); given {
			t.Error("the token went to another server")
		}
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(other.Close)
	redirects := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	t.Cleanup(redirects.Close)
	r = Repository{URL: redirects.URL + "/.git", Dir: work, Token: new(redact.Set).Secret("s3cr3t-token")}
	if _, err := Checkout(t.Context(), r); err == nil {
		t.Error("what the other server refuses is fetched")
	}
}

func TestCheckoutIsCancelled(t *testing.T) {
	newRepository(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		cancel(why)
		<-req.Context().Done()
	}))
	t.Cleanup(server.Close)
	if _, err := Checkout(ctx, Repository{URL: server.URL, Dir: t.TempDir()}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func TestCheckoutWithoutGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Checkout(t.Context(), Repository{URL: "https://example.org/x", Dir: t.TempDir()}); err == nil ||
		!strings.Contains(err.Error(), "there is no program git here: install it") {
		t.Errorf("got %v", err)
	}
}

func mustLook(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"": "", "plain": "plain", "@" + path: "secret"} {
		if got, err := (Repository{Token: new(redact.Set).Secret(given)}).token(t.Context()); err != nil || got != want {
			t.Errorf("%q gives %q, %v", given, got, err)
		}
	}
}

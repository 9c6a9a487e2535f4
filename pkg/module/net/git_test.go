package net

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// upstream is a repository that others clone.
type upstream struct {
	t   *testing.T
	dir string
}

func newUpstream(t *testing.T) upstream {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for key, text := range map[string]string{
		"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org", "GIT_COMMITTER_NAME": "t",
		"GIT_COMMITTER_EMAIL": "t@example.org",
		"GIT_CONFIG_GLOBAL":   "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "HOME": t.TempDir(),
	} {
		t.Setenv(key, text)
	}
	o := upstream{t, t.TempDir() + "/it's origin"}
	if err := os.Mkdir(o.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o.git("init", "-q", "-b", "main")
	o.commit("one")
	o.git("tag", "-a", "-m", "v1", "v1")
	return o
}

func (o upstream) git(args ...string) string {
	o.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = o.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		o.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit adds a commit whose file says text, and returns its name.
func (o upstream) commit(text string) string {
	o.t.Helper()
	if err := os.WriteFile(o.dir+"/file", []byte(text), 0o644); err != nil {
		o.t.Fatal(err)
	}
	o.git("add", "-A")
	o.git("commit", "-q", "-m", text)
	return o.git("rev-parse", "HEAD")
}

func gitTwice(t *testing.T, o moduletest.Options, pairs ...any) module.Result {
	t.Helper()
	r, again := moduletest.RunTwice(t, moduletest.Find(t, Modules(), "git"), value.NewDict(pairs...), o)
	if get(r, "after") != get(again, "before") || get(again, "before") != get(again, "after") {
		t.Errorf("first %s, then %s", value.Repr(r.Data), value.Repr(again.Data))
	}
	return r
}

func get(r module.Result, key string) any {
	v, _ := r.Data.Get(key)
	return v
}

func holds(t *testing.T, name, text string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != text {
		t.Errorf("%s holds %q, %v, not %q", name, got, err, text)
	}
}

func TestGitFollowsABranch(t *testing.T) {
	o := newUpstream(t)
	one := o.git("rev-parse", "HEAD")
	dest := t.TempDir() + "/deep/work tree"
	r := gitTwice(t, moduletest.Options{Diff: true}, "repo", o.dir, "dest", dest)
	if get(r, "before") != nil || get(r, "after") != one || len(r.Diff) != 1 {
		t.Errorf("got %s", value.Repr(r.Data))
	}
	two := o.commit("two")
	r = gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dest)
	if get(r, "before") != one || get(r, "after") != two {
		t.Errorf("got %s", value.Repr(r.Data))
	}
	holds(t, dest+"/file", "two")
	o.git("checkout", "-q", "-b", "side/x")
	o.commit("side")
	for _, c := range []struct{ version, text string }{{"side/x", "side"}, {"v1", "one"}, {"refs/heads/main", "two"},
		{one, "one"}, {"main", "two"}} {
		gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dest, "version", c.version)
		holds(t, dest+"/file", c.text)
	}
	if r = moduletest.Run(t, moduletest.Find(t, Modules(), "git"),
		value.NewDict("repo", o.dir, "dest", dest, "version", "side/x", "update", false), moduletest.Options{}); r.Changed ||
		get(r, "after") != two {
		t.Errorf("update: no changed %+v", r)
	}
	moved := o.dir + "-moved"
	if err := os.Rename(o.dir, moved); err != nil {
		t.Fatal(err)
	}
	r = gitTwice(t, moduletest.Options{}, "repo", moved, "dest", dest, "version", "main")
	if get(r, "remote_url_changed") != true || get(r, "after") != two {
		t.Errorf("got %s", value.Repr(r.Data))
	}
}

func TestGitArchive(t *testing.T) {
	o := newUpstream(t)
	dir := t.TempDir()
	for _, name := range []string{"a.tar", "a.tar.gz", "a.tgz"} {
		pack := dir + "/" + name
		r := gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/work "+name, "archive", pack, "archive_prefix",
			"top/")
		if get(r, "archive") != pack {
			t.Errorf("got %s", value.Repr(r.Data))
		}
		if out, err := exec.Command("tar", "-tf", pack).Output(); err != nil || !strings.Contains(string(out), "top/file\n") {
			t.Errorf("%s holds %q, %v", name, out, err)
		}
	}
	o.commit("two")
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/work a.tar", "archive", dir+"/a.tar")
	if out, err := exec.Command("tar", "-xOf", dir+"/a.tar", "file").Output(); err != nil || string(out) != "two" {
		t.Errorf("the archive holds %q, %v", out, err)
	}
	gitFails(t, "archive must end in", "repo", o.dir, "dest", dir+"/none", "archive", dir+"/a.rar")
	gitFails(t, "missing parameter(s) required by 'archive_prefix': archive", "repo", o.dir, "dest", dir+"/none",
		"archive_prefix", "x/")
}

func TestGitSeparateFolder(t *testing.T) {
	o := newUpstream(t)
	dir := t.TempDir()
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/new", "separate_git_dir", dir+"/its repo")
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/old")
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/old", "separate_git_dir", dir+"/first")
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/old", "separate_git_dir", dir+"/second")
	for work, repo := range map[string]string{"/new": "/its repo", "/old": "/second"} {
		holds(t, dir+work+"/.git", "gitdir: "+dir+repo+"\n")
		holds(t, dir+work+"/file", "one")
	}
	if _, err := os.Stat(dir + "/first"); err == nil {
		t.Error("the repository was copied, not moved")
	}
	gitFails(t, "already exists", "repo", o.dir, "dest", dir+"/old", "separate_git_dir", dir+"/its repo")
	gitFails(t, "mutually exclusive: separate_git_dir|bare", "repo", o.dir, "dest", dir+"/x", "separate_git_dir", dir+"/y",
		"bare", true)
}

func TestGitForce(t *testing.T) {
	o := newUpstream(t)
	dest := t.TempDir() + "/d"
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dest)
	for name, text := range map[string]string{"file": "mine", "untracked": "kept"} {
		if err := os.WriteFile(filepath.Join(dest, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := moduletest.Try(t, moduletest.Find(t, Modules(), "git"), value.NewDict("repo", o.dir, "dest", dest),
		moduletest.Options{})
	if err == nil || err.Error() != "Local modifications exist in the destination: "+dest+" (force=no)." {
		t.Errorf("got %v", err)
	}
	holds(t, dest+"/file", "mine")
	if r := gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dest, "force",
		true); r.Msg != "Local modifications exist." {
		t.Errorf("got %+v", r)
	}
	holds(t, dest+"/file", "one")
}

func TestGitKinds(t *testing.T) {
	o := newUpstream(t)
	one := o.git("rev-parse", "HEAD")
	o.commit("two")
	o.git("update-ref", "refs/changes/7", one)
	dir := t.TempDir()
	count := func(dest string) string { return upstream{t, dest}.git("rev-list", "--count", "HEAD") }
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/shallow", "depth", 1)
	if n := count(dir + "/shallow"); n != "1" {
		t.Errorf("depth 1 has %s commits", n)
	}
	o.commit("three")
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/shallow", "depth", 1)
	holds(t, dir+"/shallow/file", "three")
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/tag", "version", "v1", "depth", 1)
	holds(t, dir+"/tag/file", "one")
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/commit", "version", one, "depth", 1)
	holds(t, dir+"/commit/file", "one")
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/ref", "version", "refs/changes/7", "remote", "up")
	holds(t, dir+"/ref/file", "one")
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/bare.git", "bare", true)
	four := o.commit("four")
	if r := gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dir+"/bare.git", "bare", true); get(r,
		"after") != four {
		t.Errorf("got %s", value.Repr(r.Data))
	}
	r := moduletest.Run(t, moduletest.Find(t, Modules(), "git"), value.NewDict("repo", o.dir, "clone", false),
		moduletest.Options{})
	if get(r, "after") != four {
		t.Errorf("got %s", value.Repr(r.Data))
	}
}

func TestGitSubmodules(t *testing.T) {
	sub := newUpstream(t)
	o := newUpstream(t)
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
	t.Setenv("GIT_CONFIG_VALUE_0", "always")
	o.git("submodule", "add", "-q", sub.dir, "sub")
	o.commit("with sub")
	dest := t.TempDir() + "/d"
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dest)
	holds(t, dest+"/sub/file", "one")
	sub.commit("sub two")
	o.git("-C", "sub", "pull", "-q")
	o.commit("newer sub")
	gitTwice(t, moduletest.Options{}, "repo", o.dir, "dest", dest)
	holds(t, dest+"/sub/file", "sub two")
}

func TestGitPasswordIsNotSeen(t *testing.T) {
	o := newUpstream(t)
	backend := filepath.Join(o.git("--exec-path"), "git-http-backend")
	handler := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(o.dir),
		"GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ada" || password != "s3cret it's" {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	dest := t.TempDir() + "/d"
	conn := moduletest.Count(nil)
	repo := func(password string) string {
		return strings.Replace(server.URL, "//", "//ada:"+password+"@", 1) + "/it's%20origin/.git"
	}
	gitTwice(t, moduletest.Options{Conn: conn}, "repo", repo("s3cret%20it's"), "dest", dest)
	holds(t, dest+"/file", "one")
	config, err := os.ReadFile(dest + "/.git/config")
	if err != nil || strings.Contains(string(config), "s3cret") ||
		strings.Contains(strings.Join(conn.Lines(), ""), "s3cret") {
		t.Errorf("the password is where others look: %s, %v", config, err)
	}
	_, err = moduletest.Try(t, moduletest.Find(t, Modules(), "git"),
		value.NewDict("repo", repo("wrong-one"), "dest", dest), moduletest.Options{})
	if err == nil || !strings.Contains(err.Error(), "Failed to download remote objects and refs") ||
		strings.Contains(err.Error(), "wrong-one") {
		t.Errorf("got %v", err)
	}
}

func TestGitErrors(t *testing.T) {
	o := newUpstream(t)
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/mine", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for text, pairs := range map[string][]any{
		"must be specified unless clone=no":  {"repo", o.dir},
		"must not begin with a dash":         {"repo", "--upload-pack=touch x", "dest", dir},
		"Failed to checkout nope":            {"repo", o.dir, "dest", dir + "/nope", "version", "nope"},
		"Failed to download remote objects":  {"repo", dir + "/none", "dest", dir + "/x"},
		"Failed to clone":                    {"repo", o.dir, "dest", dir},
		"depth must be at least 1":           {"repo", o.dir, "dest", dir, "depth", 0},
		"Failed to find required executable": {"repo", o.dir, "dest", dir, "executable", "/no/git"},
	} {
		gitFails(t, text, pairs...)
	}
}

func gitFails(t *testing.T, text string, pairs ...any) {
	t.Helper()
	if _, err := moduletest.Try(t, moduletest.Find(t, Modules(), "git"), value.NewDict(pairs...),
		moduletest.Options{}); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%v ended with %v, not %q", pairs, err, text)
	}
}

func TestGitOverSSH(t *testing.T) {
	m := &gitModule{KeyFile: "/root/it's key", AcceptNewKey: true, SSHOpts: "-p 2222"}
	if got := m.ssh(); got != `ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o IdentitiesOnly=yes -i '/root/it'\''s key' -p 2222` {
		t.Errorf("git connects with %s", got)
	}
}

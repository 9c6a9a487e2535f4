package file

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
)

// emptyTemp provides a folder for temporary files and checks that it is empty at the end.
func emptyTemp(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("temporary files are left: %v %v", left, err)
		}
	})
}

func gzipped(t *testing.T) string {
	return packed(t, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
}

func TestUnarchiveURLByTheHost(t *testing.T) {
	emptyTemp(t)
	dir := t.TempDir()
	src := write(t, dir+"/a.tgz", gzipped(t), 0o644)
	host := moduletest.NewStandIns(t, map[string]string{"curl": `case $* in *bad*) echo "no such page" >&2; exit 22 ;; esac; while [ $# -gt 2 ]; do shift; done; cp ` + src + ` "$1"`})
	o := moduletest.Options{Conn: host}
	dest := dir + "/dest"
	if err := os.Mkdir(dest, 0o755); err != nil {
		t.Fatal(err)
	}
	a := args("src", "https://h/x/a.tgz?q=1", "dest", dest, "copy", false)
	if r := moduletest.Run(t, spec(t, "unarchive"), a, moduletest.Options{Conn: host, Check: true}); !r.Changed {
		t.Errorf("check mode predicts no change: %+v", r)
	}
	if left, _ := os.ReadDir(dest); len(left) > 0 {
		t.Errorf("check mode unpacked %v", left)
	}
	if r := moduletest.Run(t, spec(t, "unarchive"), a, o); !r.Changed {
		t.Errorf("nothing changed: %+v", r)
	}
	checkUnpacked(t, dest+"/top")
	if r := moduletest.Run(t, spec(t, "unarchive"), a, o); r.Changed {
		t.Errorf("the second run changed something: %+v", r)
	}
	if calls := host.Calls(); strings.Count(calls, " https://h/x/a.tgz?q=1") != 3 || strings.Contains(calls, "-k") {
		t.Errorf("curl was called so: %s", calls)
	}
	moduletest.Run(t, spec(t, "unarchive"), args("src", "https://h/a.tgz", "dest", dest, "remote_src", true,
		"validate_certs", false), o)
	if calls := host.Calls(); !strings.Contains(calls, "-k") {
		t.Errorf("curl was called so: %s", calls)
	}
	r := moduletest.Run(t, spec(t, "unarchive"),
		args("src", "https://h/a.tgz", "dest", dest, "remote_src", true, "creates", dest+"/top"), o)
	if !r.Skipped || host.Calls() != "" {
		t.Errorf("creates does not save the fetching: %+v", r)
	}
	moduletest.Fails(t, "no such page", spec(t, "unarchive"),
		args("src", "https://h/bad", "dest", dest, "remote_src", true), o)
}

func TestUnarchiveURLByTheControlNode(t *testing.T) {
	emptyTemp(t)
	text := gzipped(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); r.URL.Path != "/a.tgz" || user != "" && password != "sesame" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	withPassword := strings.Replace(server.URL, "://", "://u:sesame@", 1)
	bare := moduletest.Options{Conn: moduletest.NewStandIns(t, nil)}
	able := moduletest.Options{Conn: moduletest.NewStandIns(t, map[string]string{"curl": "exit 1"})}
	for address, o := range map[string]moduletest.Options{server.URL: bare, withPassword: able} {
		dest := t.TempDir()
		a := args("src", address+"/a.tgz", "dest", dest, "remote_src", true, "validate_certs", false)
		if r := moduletest.Run(t, spec(t, "unarchive"), a, o); !r.Changed {
			t.Errorf("nothing changed: %+v", r)
		}
		checkUnpacked(t, dest+"/top")
		if r := moduletest.Run(t, spec(t, "unarchive"), a, o); r.Changed {
			t.Errorf("the second run changed something: %+v", r)
		}
		moduletest.Fails(t, "404", spec(t, "unarchive"),
			args("src", address+"/b.tgz", "dest", dest, "remote_src", true, "validate_certs", false), o)
		moduletest.Fails(t, "certificate", spec(t, "unarchive"),
			args("src", address+"/a.tgz", "dest", dest, "remote_src", true), o)
	}
	_, err := moduletest.Try(t, spec(t, "unarchive"),
		args("src", withPassword+"/b.tgz", "dest", t.TempDir(), "remote_src", true), able)
	if err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("the password is shown: %v", err)
	}
}

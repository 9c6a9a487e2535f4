package source_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"kubekey/pkg/source"
)

func TestShownFrom(t *testing.T) {
	for _, c := range [][3]string{
		{"/a", "/a/b/c.j2", "b/c.j2"}, {"/a", "/x/c.j2", "/x/c.j2"}, {"", "/a/c.j2", "/a/c.j2"},
		{"/", "builtin:/r/c.j2", "builtin:/r/c.j2"}, {".", "builtin:/r/c.j2", "builtin:/r/c.j2"},
		{"/a", "/a/..b", "..b"}, {"/a", "/b", "/b"}, {"/a/b", "/a", "/a"}, {"/a", "/a", "."},
	} {
		if got := source.ShownFrom(c[0], c[1]); got != c[2] {
			t.Errorf("%s from %s: %s, want %s", c[1], c[0], got, c[2])
		}
	}
}

func TestShown(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if got := source.Shown(dir + "/roles/web"); got != "roles/web" {
		t.Error(got)
	}
}

func TestAbs(t *testing.T) {
	t.Chdir("/")
	for in, want := range map[string]string{"a/../b": "/b", "/a/": "/a", "builtin:/a/../b": "builtin:/b",
		"builtin:/../..": "builtin:/"} {
		if got, err := source.Abs(in); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestJoinToNoFolder(t *testing.T) {
	for in, want := range map[string]string{"a/b": "a/b", "/a": "/a", "builtin:/a": "builtin:/a"} {
		if got := source.Join("", in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestBundledIsNotOnDisk(t *testing.T) {
	for dir, want := range map[string]string{"/a": "/a", "": "", "builtin:/playbooks": ""} {
		if got := source.DiskDir(dir); got != want {
			t.Errorf("the folder on disk for %q is %q, want %q", dir, got, want)
		}
	}
	if got, err := source.DiskPath("/a/b"); got != "/a/b" || err != nil {
		t.Errorf("/a/b: %s, %v", got, err)
	}
	if got, err := source.DiskPath("builtin:/a/b"); err == nil {
		t.Errorf("a bundled file can be written to at %s", got)
	}
	if !source.NewFile("builtin:/a", nil).Bundled() || source.NewFile("/a", nil).Bundled() {
		t.Error("files under builtin:/ are bundled, others are not")
	}
}

func TestModesAndLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/run", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir+"/run", 0o751); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	tree := source.Tree{Embedded: fstest.MapFS{"run": {Mode: 0o444}}}
	for name, want := range map[string]os.FileMode{dir + "/run": 0o751, dir + "/gone": 0o644, "builtin:/run": 0o644} {
		if got := tree.CopyMode(name); got != want {
			t.Errorf("the mode for copies of %s is %o, want %o", name, got, want)
		}
	}
	for name, want := range map[string]bool{dir + "/run": false, dir + "/link": true, "builtin:/run": false,
		"builtin:/gone": false} {
		if got := tree.IsLink(name); got != want {
			t.Errorf("%s is a link: %v, want %v", name, got, want)
		}
	}
	if info, err := tree.Lstat("builtin:/run"); err != nil || info.Name() != "run" {
		t.Errorf("lstat of a bundled file: %v, %v", info, err)
	}
}

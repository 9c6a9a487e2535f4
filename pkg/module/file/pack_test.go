package file

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"archive/tar"

	"kubekey/pkg/connector"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/source"
)

// packedNames returns the member names of an archive, as read by Go.
func packedNames(t *testing.T, name string) []string {
	t.Helper()
	a, err := openArchive(source.Tree{}, name)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := a.walk(func(h *tar.Header, _ io.Reader) error {
		names = append(names, h.Name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

func TestArchivePacksFolders(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		for _, name := range oddNames {
			if !strings.ContainsAny(name, "\n") {
				write(t, dir+"/in/"+name, "text of "+name, 0o640)
			}
		}
		write(t, dir+"/in/sub/x.tmp", "t", 0o644)
		if err := os.Symlink("plain", dir+"/in/link"); err != nil {
			t.Fatal(err)
		}
		formats := []string{"tar", "gz", "bz2"}
		if _, err := exec.LookPath("xz"); err == nil && strings.HasSuffix(t.Name(), "local") {
			formats = append(formats, "xz")
		}
		for _, format := range formats {
			o := moduletest.Options{Conn: conn, Diff: true}
			dest := dir + "/out." + format
			a := args("path", dir+"/in", "dest", dest, "format", format, "mode", "0600", "exclusion_patterns", "*.tmp")
			r, again := moduletest.RunTwice(t, spec(t, "archive"), a, o)
			moduletest.Want(t, r, "dest", dest, "dest_state", "archive", "state", "file", "arcroot", dir+"/", "missing", []any{},
				"mode", "0600", "expanded_paths", []any{dir + "/in"})
			moduletest.Want(t, again, "state", "file")
			names := packedNames(t, dest)
			if len(names) != len(oddNames)-1+2 || !slices.Contains(names, "in/-rf") || !slices.Contains(names, "in/link") ||
				!slices.Contains(names, `in/back\slash`) || !slices.Contains(names, "in/sub/") {
				t.Errorf("%s holds %q", dest, names)
			}
			write(t, dir+"/in/more", "m", 0o600)
			moduletest.RunTwice(t, spec(t, "archive"), a, o)
			if !slices.Contains(packedNames(t, dest), "in/more") {
				t.Errorf("%s was not made again", dest)
			}
			if err := os.Remove(dir + "/in/more"); err != nil {
				t.Fatal(err)
			}
			noLeftovers(t, dir)
		}
	})
}

func TestArchiveOfSeveralPaths(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/1.conf", "a/2.conf", "a/3.txt", "b/deep/4"} {
		write(t, dir+"/"+name, name, 0o644)
	}
	dest := dir + "/out.tgz"
	a := args("path", []any{dir + "/a/*.conf", dir + "/b", dir + "/gone"}, "exclude_path", dir+"/a/2*", "dest", dest)
	r, _ := moduletest.RunTwice(t, spec(t, "archive"), a, moduletest.Options{})
	moduletest.Want(t, r, "dest_state", "incomplete", "missing", []any{dir + "/gone"}, "arcroot", dir+"/", "archived",
		[]any{dir + "/a/1.conf", dir + "/b/deep", dir + "/b/deep/4"})
	if got := packedNames(t, dest); !slices.Equal(got, []string{"a/1.conf", "b/deep/", "b/deep/4"}) {
		t.Errorf("the archive holds %q", got)
	}
	r, _ = moduletest.RunTwice(t, spec(t, "archive"), args("path", dir+"/b/", "dest", dir+"/content.tar", "format", "tar"),
		moduletest.Options{})
	moduletest.Want(t, r, "arcroot", dir+"/b/")
	if got := packedNames(t, dir+"/content.tar"); !slices.Equal(got, []string{"deep/", "deep/4"}) {
		t.Errorf("the archive holds %q", got)
	}
}

func TestArchiveCompressesAndRemoves(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		o := moduletest.Options{Conn: conn}
		p := write(t, dir+"/log it", "lines\n", 0o600)
		r, again := moduletest.RunTwice(t, spec(t, "archive"), args("path", p, "remove", true), o)
		moduletest.Want(t, r, "dest", p+".gz", "dest_state", "compress", "archived", []any{p})
		moduletest.Want(t, again, "dest_state", "compress", "missing", []any{p})
		out, err := exec.Command("gzip", "-dc", p+".gz").Output()
		if err != nil || string(out) != "lines\n" {
			t.Errorf("the file holds %q, %v", out, err)
		}
		if _, err := os.Stat(p); !os.IsNotExist(err) {
			t.Errorf("the file was not removed: %v", err)
		}
		write(t, dir+"/f", "x", 0o644)
		r, _ = moduletest.RunTwice(t, spec(t, "archive"), args("path", dir+"/f", "dest", dir+"/f.tgz", "force_archive", true),
			o)
		moduletest.Want(t, r, "dest_state", "archive")
		if got := packedNames(t, dir+"/f.tgz"); !slices.Equal(got, []string{"f"}) {
			t.Errorf("the archive holds %q", got)
		}
		write(t, dir+"/d/f", "x", 0o644)
		moduletest.RunTwice(t, spec(t, "archive"), args("path", dir+"/d", "dest", dir+"/d.tgz", "remove", true), o)
		if _, err := os.Stat(dir + "/d"); !os.IsNotExist(err) {
			t.Errorf("the folder was not removed: %v", err)
		}
		r = moduletest.Run(t, spec(t, "archive"), args("path", dir+"/no", "dest", dir+"/no.tar", "format", "tar"), o)
		moduletest.Want(t, r, "dest_state", "absent", "missing", []any{dir + "/no"})
		if r.Changed {
			t.Errorf("result is %+v", r)
		}
	})
}

func TestArchiveZip(t *testing.T) {
	if _, err := exec.LookPath("zip"); err != nil {
		t.Skip("zip is not installed (package zip)")
	}
	dir := t.TempDir()
	write(t, dir+"/in/a b", "x", 0o644)
	if err := os.Symlink("a b", dir+"/in/link"); err != nil {
		t.Fatal(err)
	}
	moduletest.RunTwice(t, spec(t, "archive"), args("path", dir+"/in", "dest", dir+"/o.zip", "format", "zip"),
		moduletest.Options{})
	z, err := zip.OpenReader(dir + "/o.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if len(z.File) != 2 || z.File[0].Name != "in/a b" || z.File[1].Name != "in/link" || z.File[1].UncompressedSize64 != 1 {
		t.Errorf("the archive holds %+v", z.File)
	}
}

func TestArchiveErrors(t *testing.T) {
	dir := t.TempDir()
	p := write(t, dir+"/d/f", "x", 0o644)
	s := spec(t, "archive")
	moduletest.Fails(t, "must be absolute", s, args("path", "f"), moduletest.Options{})
	moduletest.Fails(t, `must specify "dest"`, s, args("path", []any{p, dir}), moduletest.Options{})
	moduletest.Fails(t, `must specify "dest"`, s, args("path", dir+"/d/*"), moduletest.Options{})
	moduletest.Fails(t, "is a folder", s, args("path", p, "dest", dir), moduletest.Options{})
	moduletest.Fails(t, "it would be removed too", s, args("path", dir+"/d", "dest", dir+"/d/out.gz", "remove", true),
		moduletest.Options{})
	moduletest.Fails(t, "does not exist (create it", s, args("path", p, "dest", dir+"/none/x.gz"), moduletest.Options{})
	if os.Geteuid() == 0 {
		o := moduletest.Options{Conn: asNobody{}}
		open := t.TempDir()
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
		secret := write(t, open+"/secret", "x", 0o600)
		for up := open; up != "/tmp" && up != "/"; up = parentOf(up) {
			if err := os.Chmod(up, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		moduletest.Fails(t, "the new file could not be written", s, args("path", []any{secret, open}, "dest", open+"/o.tgz"),
			o)
		if _, err := os.Stat(open + "/o.tgz"); !os.IsNotExist(err) {
			t.Errorf("an archive that lacks a file was left: %v", err)
		}
	}
	old := time.Now().Add(-time.Hour)
	moduletest.RunTwice(t, s, args("path", p), moduletest.Options{})
	if err := os.Chtimes(p, old, old); err != nil {
		t.Fatal(err)
	}
	if r := moduletest.Run(t, s, args("path", p), moduletest.Options{}); r.Changed {
		t.Errorf("a compressed file has no time, but: %+v", r)
	}
}

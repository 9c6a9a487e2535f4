package file

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

var archiveTime = time.Unix(1600000000, 0)

// packed returns a tar file of a top-level folder with unusual names, a link and a hard link.
func packed(t *testing.T, wrap func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var b bytes.Buffer
	out := wrap(&b)
	w := tar.NewWriter(out)
	add := func(h tar.Header, text string) {
		h.ModTime, h.Size = archiveTime, int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	add(tar.Header{Name: "./top/", Typeflag: tar.TypeDir, Mode: 0o755}, "")
	for _, name := range oddNames {
		add(tar.Header{Name: "./top/" + name, Typeflag: tar.TypeReg, Mode: 0o640}, "content of "+name)
	}
	add(tar.Header{Name: "./top/link", Typeflag: tar.TypeSymlink, Linkname: "plain", Mode: 0o777}, "")
	add(tar.Header{Name: "./top/hard", Typeflag: tar.TypeLink, Linkname: "./top/plain"}, "")
	add(tar.Header{Name: "./top/sub/", Typeflag: tar.TypeDir, Mode: 0o755}, "")
	add(tar.Header{Name: "./top/sub/x.txt", Typeflag: tar.TypeReg, Mode: 0o644}, "x")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

func plainTar(w io.Writer) io.WriteCloser { return nopWriteCloser{w} }
func gzipTar(w io.Writer) io.WriteCloser  { return gzip.NewWriter(w) }

func packings4(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{
		"TarArchive": packed(t, plainTar),
		"TgzArchive": packed(t, gzipTar),
		"TarXzArchive": packed(t, func(w io.Writer) io.WriteCloser {
			z, err := xz.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return z
		}),
		"TarZstdArchive": packed(t, func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return z
		}),
	}
	if bz, err := exec.LookPath("bzip2"); err == nil {
		cmd := exec.Command(bz, "-c")
		cmd.Stdin = strings.NewReader(out["TarArchive"])
		b, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		out["TarBzipArchive"] = string(b)
	}
	return out
}

func checkUnpacked(t *testing.T, dir string) {
	t.Helper()
	for _, name := range oddNames {
		if got := read(t, dir+"/"+name); got != "content of "+name {
			t.Errorf("%q holds %q", name, got)
		}
	}
	if link, _ := os.Readlink(dir + "/link"); link != "plain" {
		t.Errorf("link leads to %q", link)
	}
	a, _ := os.Stat(dir + "/plain")
	if b, err := os.Stat(dir + "/hard"); err != nil || !os.SameFile(a, b) {
		t.Errorf("hard is not plain: %v", err)
	}
	if info, _ := os.Stat(dir + "/sub/x.txt"); !info.ModTime().Equal(archiveTime) {
		t.Errorf("time is %v", info.ModTime())
	}
}

func TestUnarchive(t *testing.T) {
	for handler, text := range packings4(t) {
		t.Run(handler, func(t *testing.T) {
			shells(t, func(t *testing.T, conn connector.Connector) {
				src, dir := t.TempDir(), t.TempDir()
				write(t, src+"/files/a", text, 0o644)
				o := moduletest.Options{Conn: conn, Dir: src, Diff: true}
				r, _ := moduletest.RunTwice(t, spec(t, "unarchive"), args("src", "a", "dest", dir, "list_files", true), o)
				moduletest.Want(t, r, "handler", handler, "dest", dir, "src", src+"/files/a", "state", "directory")
				checkUnpacked(t, dir+"/top")
				if files, _ := get(t, r, "files").([]any); len(files) != len(oddNames)+5 || files[0] != "top/" {
					t.Errorf("files are %s", value.Repr(files))
				}
				if !strings.Contains(r.Diff[0].Prepared, "+ top/plain\n") {
					t.Errorf("diff is %+v", r.Diff)
				}
				// One changed file.
				write(t, dir+"/top/sub/x.txt", "longer", 0o644)
				r, _ = moduletest.RunTwice(t, spec(t, "unarchive"), args("src", "a", "dest", dir), o)
				if r.Diff[0].Prepared != "~ top/sub/x.txt\n" || read(t, dir+"/top/sub/x.txt") != "x" {
					t.Errorf("diff is %+v", r.Diff)
				}
			})
		})
	}
}

func TestUnarchiveRemote(t *testing.T) {
	for handler, text := range packings4(t) {
		t.Run(handler, func(t *testing.T) {
			shells(t, func(t *testing.T, conn connector.Connector) {
				if _, bb := conn.(*onlyBusybox); bb && handler == "TarZstdArchive" {
					t.Skip("busybox has no zstd")
				}
				dir := t.TempDir()
				src := write(t, dir+"/it's an archive", text, 0o644)
				dest := dir + "/de st"
				if err := os.Mkdir(dest, 0o755); err != nil {
					t.Fatal(err)
				}
				a := args("src", src, "dest", dest, "remote_src", true)
				r := moduletest.Run(t, spec(t, "unarchive"), a, moduletest.Options{Conn: conn})
				moduletest.Want(t, r, "handler", handler)
				checkUnpacked(t, dest+"/top")
				if _, bb := conn.(*onlyBusybox); bb {
					return // busybox's listing does not escape a line break in a name
				}
				if r := moduletest.Run(t, spec(t, "unarchive"), a, moduletest.Options{Conn: conn}); r.Changed {
					t.Errorf("the second run changed something: %+v", r)
				}
			})
		})
	}
}

func TestUnarchiveRemoteAgain(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, name := range []string{"top/a b", "top/sub/c", "top/sub/d"} {
			if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 1, ModTime: archiveTime}); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, "x"); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.WriteHeader(&tar.Header{Name: "top/link", Typeflag: tar.TypeSymlink, Linkname: "a b",
			ModTime: archiveTime}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		src := write(t, dir+"/a.tar", b.String(), 0o644)
		o := moduletest.Options{Conn: conn}
		moduletest.RunTwice(t, spec(t, "unarchive"), args("src", src, "dest", mkdir(t, dir+"/1"), "remote_src", true), o)
		moduletest.RunTwice(t, spec(t, "unarchive"),
			args("src", src, "dest", mkdir(t, dir+"/2"), "remote_src", true, "exclude", "sub/c", "extra_opts",
				"--strip-components=1"), o)
		read(t, dir+"/1/top/a b")
		read(t, dir+"/2/sub/d")
		if _, err := os.Stat(dir + "/2/sub/c"); err == nil {
			t.Error("an excluded file was unpacked")
		}
		moduletest.Fails(t, "does not exist on the host", spec(t, "unarchive"),
			args("src", dir+"/no", "dest", dir, "remote_src", true), o)
		moduletest.Fails(t, "is not a file", spec(t, "unarchive"), args("src", dir, "dest", dir, "remote_src", true), o)
		moduletest.Fails(t, "list the archive", spec(t, "unarchive"),
			args("src", write(t, dir+"/junk", strings.Repeat("junk", 500), 0o644), "dest", dir, "remote_src", true), o)
	})
}

func mkdir(t *testing.T, p string) string {
	t.Helper()
	if err := os.MkdirAll(p, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func zipped(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range []string{"top/", "top/a b", "top/it's"} {
		h := &zip.FileHeader{Name: name, Modified: archiveTime, Method: zip.Deflate}
		h.SetMode(0o750)
		if strings.HasSuffix(name, "/") {
			h.SetMode(os.ModeDir | 0o755)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "/") {
			if _, err := io.WriteString(f, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestUnarchiveZip(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		src, dir := t.TempDir(), t.TempDir()
		p := write(t, src+"/files/a.zip", zipped(t), 0o644)
		o := moduletest.Options{Conn: conn, Dir: src}
		r, _ := moduletest.RunTwice(t, spec(t, "unarchive"), args("src", "a.zip", "dest", dir), o)
		moduletest.Want(t, r, "handler", "ZipArchive")
		if read(t, dir+"/top/it's") != "top/it's" || modeOf(t, dir+"/top/a b").Perm() != 0o750 {
			t.Error("the zip was not unpacked well")
		}
		if _, err := exec.LookPath("unzip"); err != nil {
			t.Log("unzip is not installed: an archive of the host is not tested")
			return
		}
		moduletest.RunTwice(t, spec(t, "unarchive"),
			args("src", p, "dest", mkdir(t, dir+"/r"), "remote_src", true, "exclude", "top/it's"), o)
		read(t, dir+"/r/top/a b")
		moduletest.Fails(t, "cannot be stripped", spec(t, "unarchive"),
			args("src", p, "dest", dir, "remote_src", true, "extra_opts", "--strip-components=1"), o)
	})
}

func TestUnarchiveOptions(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		src, dir := t.TempDir(), t.TempDir()
		write(t, src+"/files/a.tgz", packed(t, gzipTar), 0o644)
		o := moduletest.Options{Conn: conn, Dir: src}
		run := func(pairs ...any) {
			t.Helper()
			moduletest.RunTwice(t, spec(t, "unarchive"), args(append([]any{"src", "a.tgz"}, pairs...)...), o)
		}
		run("dest", mkdir(t, dir+"/strip"), "extra_opts", []any{"--strip-components=1"})
		checkUnpacked(t, dir+"/strip")
		run("dest", mkdir(t, dir+"/inc"), "include", "top/sub")
		run("dest", mkdir(t, dir+"/exc"), "exclude", []any{"*.txt", "top/pl*n", "hard"})
		for p, there := range map[string]bool{"inc/top/sub/x.txt": true, "inc/top/plain": false, "exc/top/sub/x.txt": false,
			"exc/top/plain": false, "exc/top/it's": true} {
			if _, err := os.Stat(dir + "/" + p); (err == nil) != there {
				t.Errorf("%s: there is %v", p, err == nil)
			}
		}
		run("dest", mkdir(t, dir+"/mode"), "mode", "u=rwX,g=rX,o=")
		if modeOf(t, dir+"/mode/top/sub").Perm() != 0o750 || modeOf(t, dir+"/mode/top/sub/x.txt").Perm() != 0o640 {
			t.Error("modes were not set")
		}
		newer := write(t, mkdir(t, dir+"/new/top")+"/plain", "newer", 0o644)
		run("dest", dir+"/new", "keep_newer", true)
		if read(t, newer) != "newer" {
			t.Error("a newer file was replaced")
		}
		r := moduletest.Run(t, spec(t, "unarchive"), args("src", "a.tgz", "dest", dir, "creates", newer), o)
		if r.Changed || !strings.Contains(r.Msg, "skipped, since") {
			t.Errorf("result is %+v", r)
		}
		r = moduletest.Run(t, spec(t, "unarchive"),
			args("src", src+"/files/a.tgz", "dest", dir, "creates", newer, "remote_src", true), o)
		if r.Changed || !strings.Contains(r.Msg, "skipped, since") {
			t.Errorf("result is %+v", r)
		}
	})
}

// Hosts that lack the same members get the same archive; other hosts get what they lack.
func TestUnarchiveOnManyHosts(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/files/a.tgz", packed(t, gzipTar), 0o644)
	o := moduletest.Options{Dir: src, Share: new(module.Share)}
	strip := []any{"--strip-components=1"}
	for _, host := range []string{"h1", "h2", "h3"} {
		dest := mkdir(t, dir+"/"+host)
		if host == "h3" {
			write(t, mkdir(t, dest+"/sub")+"/y.txt", "own", 0o644)
			moduletest.Run(t, spec(t, "unarchive"), args("src", "a.tgz", "dest", dest, "extra_opts", strip, "include",
				"top/sub"), o)
		}
		moduletest.RunTwice(t, spec(t, "unarchive"), args("src", "a.tgz", "dest", dest, "extra_opts", strip), o)
		checkUnpacked(t, dest)
	}
	moduletest.RunTwice(t, spec(t, "unarchive"),
		args("src", "a.tgz", "dest", mkdir(t, dir+"/whole"), "exclude", []any{"nothing"}), o)
	checkUnpacked(t, dir+"/whole/top")
}

// The reason why tar fails is in its first lines; the last line only reports that there were errors.
func TestUnarchiveSaysAllThatTarSays(t *testing.T) {
	src := t.TempDir()
	write(t, src+"/files/a.tgz", packed(t, gzipTar), 0o644)
	write(t, src+"/b.tgz", packed(t, gzipTar), 0o644)
	for _, a := range []*value.Dict{args("src", "a.tgz"), args("src", src+"/b.tgz", "remote_src", true)} {
		dir := t.TempDir()
		for _, in := range []string{"/top/plain/in/the/way", "/top/sub/x.txt/in/the/way"} {
			if err := os.MkdirAll(dir+in, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		a.Set("dest", dir)
		for _, text := range []string{"top/plain", "top/sub/x.txt", "Cannot open"} {
			moduletest.Fails(t, text, spec(t, "unarchive"), a, moduletest.Options{Dir: src})
		}
	}
}

func TestUnarchiveErrors(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/files/a.tgz", packed(t, gzipTar), 0o644)
	write(t, src+"/files/cut.tgz", packed(t, gzipTar)[:100], 0o644)
	write(t, src+"/files/junk", strings.Repeat("junk", 1000), 0o644)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "../../etc/x", Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, src+"/files/evil.tar", b.String(), 0o644)
	o := moduletest.Options{Dir: src}
	for _, c := range []struct {
		args *value.Dict
		text string
	}{
		{args("src", "no.tgz", "dest", dir), "Could not find or access"},
		{args("src", "a.tgz", "dest", dir+"/no"), "must be an existing dir"},
		{args("src", "a.tgz", "dest", src+"/files/junk"), "must be an existing dir"},
		{args("src", "cut.tgz", "dest", dir), "unexpected EOF"},
		{args("src", "junk", "dest", dir), "read archive"},
		{args("src", "evil.tar", "dest", dir), "leads out of the destination"},
		{args("src", "a.tgz", "dest", dir, "extra_opts", "--transform=x"), "is not supported"},
		{args("src", "a.tgz", "dest", dir, "extra_opts", "--strip-components"), "needs a number"},
		{args("src", "a.tgz", "dest", dir, "mode", "preserve"), "members have their own modes"},
	} {
		moduletest.Fails(t, c.text, spec(t, "unarchive"), c.args, o)
	}
	r := moduletest.Run(t, spec(t, "unarchive"), args("src", "a.tgz", "dest", dir+"/later"),
		moduletest.Options{Dir: src, Check: true})
	if !r.Changed || len(r.Warnings) != 1 {
		t.Errorf("result is %+v", r)
	}
}

func TestListings(t *testing.T) {
	for line, want := range map[string]member{
		`-rw-r--r-- 0/0               3 2020-09-13 12:26:40 top/a b`: {from: "top/a b", kind: typeFile,
			mode: 0o644, size: 3, mtime: 1600000000},
		`-rwsr-xr-x root/root         3 2020-09-13 12:26:40 a\nb\\c\303\244`: {from: "a\nb\\cä", kind: typeFile,
			mode: 0o4755, size: 3, mtime: 1600000000},
		`drwxr-xr-x 0/0               0 2020-09-13 12:26 top/`: {from: "top/", kind: typeDir, mode: 0o755,
			mtime: 1599999960},
		`lrwxrwxrwx 0/0               0 2020-09-13 12:26:40.5 top/l -> a b`: {from: "top/l", kind: typeLink, mode: 0o777,
			link: "a b", mtime: 1600000000},
		`hrw-r--r-- 0/0               0 2020-09-13 12:26:40 top/h link to top/a`: {from: "top/h", kind: typeFile, hard: true,
			mode: 0o644, link: "top/a", mtime: 1600000000},
	} {
		if got, ok := parseTarLine(line); !ok || got != want {
			t.Errorf("%s\nis %+v, not %+v", line, got, want)
		}
	}
	for _, line := range []string{"", "tar: x", "crw-r--r-- 0/0 1,3 2020-09-13 12:26:40 null"} {
		if m, ok := parseTarLine(line); ok {
			t.Errorf("%q is %+v", line, m)
		}
	}
}

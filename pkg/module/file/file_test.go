package file

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestFileDirectory(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		o := moduletest.Options{Conn: conn}
		for _, name := range oddNames {
			if name == "$HOME" {
				continue
			}
			dir := t.TempDir()
			p := filepath.Join(dir, "up", name, "leaf")
			r, _ := moduletest.RunTwice(t, spec(t, "file"), args("path", p+"/", "state", "directory", "mode", "u=rwx,g=rx,o="),
				o)
			moduletest.Want(t, r, "path", p, "state", "directory", "mode", "0750")
			for _, d := range []string{p, filepath.Dir(p), dir + "/up"} {
				if modeOf(t, d).Perm() != 0o750 {
					t.Errorf("%q has mode %o", d, modeOf(t, d))
				}
			}
		}
	})
}

func TestFileAttributes(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		if os.Getuid() != 0 {
			t.Skip("only root may give files away")
		}
		dir := t.TempDir()
		p := write(t, dir+"/f", "x", 0o644)
		o := moduletest.Options{Conn: conn, Diff: true}
		a := args("path", p, "mode", "4755", "owner", "nobody", "group", "1234")
		r, _ := moduletest.RunTwice(t, spec(t, "file"), a, o)
		moduletest.Want(t, r, "mode", "04755", "owner", "nobody", "uid", 65534, "gid", 1234, "group", "1234", "state", "file",
			"size", 1)
		before, _ := r.Diff[0].Before.(*value.Dict)
		if before.String("mode") != "0644" || before.String("path") != p {
			t.Errorf("diff is %s", value.Repr(before))
		}
		if got := modeOf(t, p); got.Perm() != 0o755 || got&os.ModeSetuid == 0 {
			t.Errorf("mode is %v", got)
		}
	})
}

func TestFileRecurse(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		outside := write(t, t.TempDir()+"/outside", "x", 0o600)
		for _, name := range oddNames {
			write(t, dir+"/top/"+name+"/"+name, "x", 0o600)
		}
		if err := os.Symlink(outside, dir+"/top/link"); err != nil {
			t.Fatal(err)
		}
		o := moduletest.Options{Conn: conn}
		moduletest.RunTwice(t, spec(t, "file"), args("path", dir+"/top", "recurse", true, "follow", false, "mode",
			"u=rwX,g=rX,o="), o)
		for _, name := range oddNames {
			if d, f := modeOf(t, dir+"/top/"+name).Perm(), modeOf(t, dir+"/top/"+name+"/"+name).Perm(); d != 0o750 ||
				f != 0o640 {
				t.Errorf("%q: folder %o, file %o", name, d, f)
			}
		}
		if modeOf(t, outside).Perm() != 0o600 {
			t.Error("a link out of the tree was followed")
		}
		moduletest.RunTwice(t, spec(t, "file"), args("path", dir+"/top", "recurse", true, "mode", "u=rwX,g=rX,o="), o)
		if got := modeOf(t, outside).Perm(); got != 0o640 {
			t.Errorf("what a link leads to has mode %o", got)
		}
	})
}

func TestFileAbsent(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		write(t, dir+"/d/sub/f", "x", 0o644)
		kept := write(t, dir+"/kept", "x", 0o644)
		if err := os.Symlink(kept, dir+"/link"); err != nil {
			t.Fatal(err)
		}
		o := moduletest.Options{Conn: conn, Diff: true}
		for _, p := range []string{dir + "/d", dir + "/link"} {
			r, _ := moduletest.RunTwice(t, spec(t, "file"), args("path", p, "state", "absent"), o)
			moduletest.Want(t, r, "path", p, "state", "absent")
			if _, err := os.Lstat(p); err == nil {
				t.Errorf("%s is still there", p)
			}
		}
		read(t, kept)
		moduletest.Fails(t, "the root folder is not removed", spec(t, "file"), args("path", "/", "state", "absent"), o)
	})
}

func TestFileLinks(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		target := write(t, dir+"/tar get", "x", 0o600)
		o := moduletest.Options{Conn: conn}
		link := dir + "/li'nk"
		r, _ := moduletest.RunTwice(t, spec(t, "file"), args("src", "tar get", "dest", link, "state", "link", "mode", "0640"),
			o)
		moduletest.Want(t, r, "dest", link, "src", "tar get", "state", "link")
		if got, _ := os.Readlink(link); got != "tar get" || modeOf(t, target).Perm() != 0o640 {
			t.Errorf("link to %q, target has %o", got, modeOf(t, target))
		}
		// The link is changed to point to a folder, and then to another target.
		if err := os.MkdirAll(dir+"/d", 0o755); err != nil {
			t.Fatal(err)
		}
		moduletest.RunTwice(t, spec(t, "file"), args("src", dir+"/d", "dest", link, "state", "link"), o)
		moduletest.RunTwice(t, spec(t, "file"), args("src", "nowhere", "dest", link, "state", "link", "force", true), o)
		if got, _ := os.Readlink(link); got != "nowhere" {
			t.Errorf("link to %q", got)
		}
		moduletest.Fails(t, "src file does not exist", spec(t, "file"),
			args("src", "nowhere", "dest", dir+"/other", "state", "link"), o)
		moduletest.Fails(t, "src is required", spec(t, "file"), args("dest", dir+"/other", "state", "link"), o)
		moduletest.Fails(t, "refusing to convert from directory to symlink", spec(t, "file"),
			args("src", target, "dest", dir+"/d", "state", "link"), o)
		f := write(t, dir+"/f", "x", 0o644)
		moduletest.Fails(t, "refusing to convert from file to symlink", spec(t, "file"),
			args("src", target, "dest", f, "state", "link"), o)
		moduletest.RunTwice(t, spec(t, "file"), args("src", target, "dest", f, "state", "link", "force", true), o)
		moduletest.RunTwice(t, spec(t, "file"), args("src", target, "dest", dir+"/d", "state", "link", "force", true), o)
		write(t, dir+"/full/x", "x", 0o644)
		moduletest.Fails(t, "is not empty, refusing to convert it", spec(t, "file"),
			args("src", target, "dest", dir+"/full", "state", "link", "force", true), o)
	})
}

func TestFileHard(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		target := write(t, dir+"/a", "x", 0o644)
		o := moduletest.Options{Conn: conn}
		r, _ := moduletest.RunTwice(t, spec(t, "file"), args("src", target, "dest", dir+"/b", "state", "hard"), o)
		moduletest.Want(t, r, "state", "hard", "src", target, "dest", dir+"/b")
		a, _ := os.Stat(target)
		b, _ := os.Stat(dir + "/b")
		if !os.SameFile(a, b) {
			t.Error("they are not the same file")
		}
		other := write(t, dir+"/c", "y", 0o644)
		moduletest.Fails(t, "different hard links exist", spec(t, "file"),
			args("src", target, "dest", other, "state", "hard"), o)
		moduletest.RunTwice(t, spec(t, "file"), args("src", target, "dest", other, "state", "hard", "force", true), o)
		moduletest.Fails(t, "src does not exist", spec(t, "file"), args("src", dir+"/no", "dest", dir+"/d", "state", "hard"),
			o)
		moduletest.Fails(t, "hard links to folders", spec(t, "file"), args("src", dir, "dest", dir+"/d", "state", "hard"), o)
		moduletest.Fails(t, "src is required", spec(t, "file"), args("dest", dir+"/d", "state", "hard"), o)
	})
}

func TestFileTouch(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		p := dir + "/to uch"
		o := moduletest.Options{Conn: conn}
		keep := args("path", p, "state", "touch", "mode", "0600", "access_time", "preserve", "modification_time", "preserve")
		r, _ := moduletest.RunTwice(t, spec(t, "file"), keep, o)
		moduletest.Want(t, r, "dest", p, "mode", "0600", "size", 0)
		old := time.Unix(1600000000, 0)
		if err := os.Chtimes(p, old, old); err != nil {
			t.Fatal(err)
		}
		if r := moduletest.Run(t, spec(t, "file"), args("path", p, "state", "touch"), o); !r.Changed {
			t.Error("touch is a change")
		}
		if info, _ := os.Stat(p); !info.ModTime().After(old) {
			t.Error("the time was not set")
		}
		set := args("path", p, "state", "touch", "access_time", "2020-02-03 04:05:06", "access_time_format",
			"%Y-%m-%d %H:%M:%S", "modification_time", "202002030405.06")
		moduletest.RunTwice(t, spec(t, "file"), set, o)
		if info, _ := os.Stat(p); info.ModTime().Local().Format(time.DateTime) != "2020-02-03 04:05:06" {
			t.Errorf("the time is %v", info.ModTime())
		}
		moduletest.Fails(t, `Error while obtaining timestamp for time soon`, spec(t, "file"),
			args("path", p, "state", "touch", "access_time", "soon"), o)
		moduletest.Fails(t, "bad directive %Q", spec(t, "file"),
			args("path", p, "state", "touch", "access_time", "1", "access_time_format", "%Q"), o)
		moduletest.RunTwice(t, spec(t, "file"), args("path", p, "state", "file", "modification_time", "202001011200.0"), o)
		moduletest.Fails(t, "does not exist", spec(t, "file"), args("path", dir+"/no/x", "state", "touch"), o)
	})
}

func TestFileStateOfWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	f := write(t, dir+"/f", "x", 0o644)
	if err := os.Symlink(f, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	o := moduletest.Options{}
	moduletest.Want(t, moduletest.Run(t, spec(t, "file"), args("path", f), o), "state", "file", "path", f)
	moduletest.Want(t, moduletest.Run(t, spec(t, "file"), args("path", dir), o), "state", "directory")
	moduletest.Want(t, moduletest.Run(t, spec(t, "file"), args("path", dir+"/link"), o), "state", "file", "path", f)
	moduletest.Want(t, moduletest.Run(t, spec(t, "file"), args("path", dir+"/link", "follow", false), o), "state", "link")
	moduletest.Fails(t, "is absent, cannot continue", spec(t, "file"), args("path", dir+"/no"), o)
	moduletest.Fails(t, "is directory, cannot continue", spec(t, "file"), args("path", dir, "state", "file"), o)
	moduletest.Fails(t, "already exists as a file", spec(t, "file"), args("path", f, "state", "directory"), o)
	moduletest.Fails(t, "src option requires", spec(t, "file"), args("path", f, "src", "x", "state", "touch"), o)
	moduletest.Fails(t, "recurse option requires", spec(t, "file"), args("path", f, "recurse", true, "state", "touch"), o)
	moduletest.Fails(t, "There was an issue creating "+f+"/x as requested: ", spec(t, "file"),
		args("path", f+"/x", "state", "directory"), o)
	moduletest.Fails(t, "recurse option requires state to be 'directory'", spec(t, "file"),
		args("path", f, "recurse", true), o)
	moduletest.Fails(t, "is link, cannot continue", spec(t, "file"),
		args("path", dir+"/link", "state", "file", "follow", false), o)
}

func TestPathsExpandOnTheHost(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		conn = connector.Env(&withHome{conn, dir}, nil)
		o := moduletest.Options{Conn: conn}
		r, _ := moduletest.RunTwice(t, spec(t, "file"),
			args("path", "~/a b/$KK_SUB/${KK_SUB}x/$NOT_SET", "state", "directory"), o)
		moduletest.Want(t, r, "path", dir+"/a b/it's/it'sx/$NOT_SET")
		r, _ = moduletest.RunTwice(t, spec(t, "copy"), args("content", "x", "dest", "~/f"), o)
		moduletest.Want(t, r, "dest", dir+"/f")
		read(t, dir+"/f")
	})
}

// withHome is a host on which HOME and KK_SUB are set.
type withHome struct {
	connector.Connector
	home string
}

func TestFilePermissionDenied(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := write(t, dir+"/f", "x", 0o644)
	o := moduletest.Options{Conn: &asNobody{}}
	moduletest.Fails(t, "set the mode of "+p+": ", spec(t, "file"), args("path", p, "mode", "0600"), o)
	moduletest.Fails(t, "cannot create a file in folder", spec(t, "copy"), args("content", "x", "dest", dir+"/g"), o)
	var st syscall.Stat_t
	if err := syscall.Stat(p, &st); err != nil || st.Mode&0o777 != 0o644 {
		t.Errorf("mode is %o, %v", st.Mode, err)
	}
}

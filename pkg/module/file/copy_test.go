package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestCopyContent(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		dest := filepath.Join(dir, "motd")
		o := moduletest.Options{Conn: conn}
		r, again := moduletest.RunTwice(t, spec(t, "copy"), args("content", "hi\n", "dest", dest, "mode", "0640"), o)
		moduletest.Want(t, r, "dest", dest, "mode", "0640", "state", "file", "size", 3, "uid", os.Getuid(),
			"checksum", "55ca6286e3e4f4fba5d0448333fa99fc5a404a73", "md5sum", "764efa883dda1e11db47671c4a3bbd9e")
		moduletest.Want(t, again, "path", dest, "size", 3, "mode", "0640")
		if got := read(t, dest); got != "hi\n" {
			t.Errorf("the file holds %q", got)
		}
		noLeftovers(t, dir)
	})
}

func TestCopyOddNames(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		src, dir := t.TempDir(), t.TempDir()
		for _, name := range oddNames {
			if name == "$HOME" {
				continue // expanded in arguments that are paths
			}
			write(t, filepath.Join(src, "files", name), name, 0o644)
			o := moduletest.Options{Conn: conn, Dir: src}
			a := args("src", name, "dest", dir+"/"+name)
			moduletest.Run(t, spec(t, "copy"), a, o)
			if r := moduletest.Run(t, spec(t, "copy"), a, o); r.Changed {
				t.Errorf("%q is copied again", name)
			}
			if got := read(t, filepath.Join(dir, name)); got != name {
				t.Errorf("%q holds %q", name, got)
			}
		}
		noLeftovers(t, dir)
	})
}

func TestCopyRoundTrips(t *testing.T) {
	dir := t.TempDir()
	dest := filepath.Join(dir, "f")
	run := func(content, mode string) (bool, int) {
		conn := moduletest.Count(nil)
		r := moduletest.Run(t, spec(t, "copy"), args("content", content, "dest", dest, "mode", mode, "owner", "root"),
			moduletest.Options{Conn: conn})
		return r.Changed, len(conn.Commands())
	}
	for _, step := range []struct {
		content, mode string
		changed       bool
		trips         int
	}{
		{"a", "0644", true, 2},
		{"a", "0644", false, 1},
		{"b", "0600", true, 2},
		{"b", "0640", true, 2},
		{"b", "u=rw,g=r,o=", false, 1},
		{"b", "g+w", true, 2},
	} {
		if changed, trips := run(step.content, step.mode); changed != step.changed || trips != step.trips {
			t.Errorf("%+v: changed %v in %d round trips", step, changed, trips)
		}
	}
}

func TestCopySecretsStayOffCommandLines(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/files/tree/a", "hunter2-secret", 0o600)
	conn := moduletest.Count(nil)
	o := moduletest.Options{Conn: conn, Dir: src}
	moduletest.Run(t, spec(t, "copy"), args("content", "hunter2-secret", "dest", dir+"/a"), o)
	moduletest.Run(t, spec(t, "copy"), args("src", "tree/", "dest", dir+"/tree"), o)
	for _, line := range conn.Lines() {
		if strings.Contains(line, "hunter2") || strings.Contains(line, "aHVudGVyMi") {
			t.Errorf("content stands in a command line: %.200s", line)
		}
	}
}

func TestCopyIntoFolder(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		src, dir := t.TempDir(), t.TempDir()
		write(t, src+"/files/a.txt", "a", 0o755)
		o := moduletest.Options{Conn: conn, Dir: src}
		r, _ := moduletest.RunTwice(t, spec(t, "copy"), args("src", "a.txt", "dest", dir, "mode", "preserve"), o)
		moduletest.Want(t, r, "dest", dir+"/a.txt", "mode", "0755", "src", src+"/files/a.txt")
		r, _ = moduletest.RunTwice(t, spec(t, "copy"),
			args("src", "a.txt", "dest", dir+"/new/sub/", "directory_mode", "0750"), o)
		moduletest.Want(t, r, "dest", dir+"/new/sub/a.txt")
		if got := modeOf(t, dir+"/new/sub").Perm(); got != 0o750 {
			t.Errorf("the new folder has mode %o", got)
		}
	})
}

func TestCopyLinks(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		target := write(t, dir+"/target", "old", 0o600)
		link := dir + "/link"
		if err := os.Symlink("target", link); err != nil {
			t.Fatal(err)
		}
		o := moduletest.Options{Conn: conn}
		r, _ := moduletest.RunTwice(t, spec(t, "copy"), args("content", "new", "dest", link, "follow", true), o)
		moduletest.Want(t, r, "dest", target, "mode", "0600")
		if read(t, target) != "new" || modeOf(t, link)&os.ModeSymlink == 0 {
			t.Error("follow: yes did not write what the link leads to")
		}
		// The link is replaced even if its target has the same content.
		moduletest.RunTwice(t, spec(t, "copy"), args("content", "new", "dest", link), o)
		if modeOf(t, link)&os.ModeSymlink != 0 || read(t, link) != "new" {
			t.Error("follow: no did not replace the link")
		}
	})
}

func TestCopyForceBackupValidate(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		dest := write(t, dir+"/f", "old", 0o640)
		o := moduletest.Options{Conn: conn}
		r := moduletest.Run(t, spec(t, "copy"), args("content", "new", "dest", dest, "force", false), o)
		if r.Changed || read(t, dest) != "old" {
			t.Error("force: no replaced the file")
		}
		moduletest.Fails(t, "failed to validate: rc:1", spec(t, "copy"),
			args("content", "new", "dest", dest, "validate", "grep -q good %s"), o)
		moduletest.Fails(t, "validate must contain %s", spec(t, "copy"),
			args("content", "new", "dest", dest, "validate", "true"), o)
		if read(t, dest) != "old" {
			t.Error("an invalid file was put in place")
		}
		for _, ok := range []string{
			"grep -q good '%s'", `grep -q good "%s"`, `sh -c 'grep -q good %s'`, `sh -c "grep -q good '%s'"`,
			`test "x%sy" = x%s'y'`,
			`test "$(cat %s)" = good`, `test "$(stat -c %%s %s)" = 4`, `sh -c "grep -q \"good\" %s"`,
		} {
			moduletest.Run(t, spec(t, "copy"), args("content", "good", "dest", dest+".quoted", "validate", ok, "force", true), o)
			if err := os.Remove(dest + ".quoted"); err != nil {
				t.Errorf("%s: %v", ok, err)
			}
		}
		r = moduletest.Run(t, spec(t, "copy"), args("content", "good", "dest", dest, "validate", "grep -q good %s", "backup",
			true), o)
		backup, _ := get(t, r, "backup_file").(string)
		if read(t, backup) != "old" || read(t, dest) != "good" || modeOf(t, dest).Perm() != 0o640 {
			t.Errorf("backup %q, content %q, mode %o", read(t, backup), read(t, dest), modeOf(t, dest))
		}
		noLeftovers(t, dir)
	})
}

func TestCopyErrors(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		src, dir := t.TempDir(), t.TempDir()
		write(t, src+"/files/vault", "$ANSIBLE_VAULT;1.1;AES256\n3131\n", 0o644)
		write(t, src+"/files/a", "a", 0o644)
		write(t, dir+"/plain", "x", 0o644)
		o := moduletest.Options{Conn: conn, Dir: src}
		for _, c := range []struct {
			args *value.Dict
			text string
		}{
			{args("content", "x", "dest", dir+"/no/such"), "Destination directory " + dir + "/no does not exist"},
			{args("content", "x", "dest", dir+"/plain/x"), "is not a directory"},
			{args("content", "x", "dest", dir), "can not use content with a dir as dest"},
			{args("content", "x", "dest", dir+"/"), "can not use content with a dir as dest"},
			{args("dest", dir+"/x"), "src (or content) is required"},
			{args("src", "a", "content", "b", "dest", dir+"/x"), "mutually exclusive"},
			{args("src", "nope", "dest", dir+"/x"), "Could not find or access 'nope'"},
			{args("src", "vault", "dest", dir+"/x"), "this is encrypted with a vault"},
			{args("src", "a", "dest", dir+"/x", "checksum", "123"), "does not match the expected checksum"},
			{args("content", "a", "dest", dir+"/x", "checksum", "123"), "does not match the expected checksum"},
			{args("src", dir+"/none", "dest", dir+"/x", "remote_src", true), "Source " + dir + "/none not found"},
			{args("content", "x", "dest", dir+"/x", "owner", "nosuchuser"), "failed to look up user nosuchuser"},
			{args("content", "x", "dest", dir+"/x", "group", "nosuchgroup"), "failed to look up group nosuchgroup"},
			{args("content", "x", "dest", dir+"/x", "mode", "preserve"), "preserve needs src"},
			{args("content", "x", "dest", "/dev/null"), "/dev/null is not a regular file"},
			{args("src", "a", "dest", "/dev/null"), "/dev/null is not a regular file"},
			{args("src", src+"/files/a", "dest", "/dev/null", "remote_src", true), "/dev/null is not a regular file"},
		} {
			moduletest.Fails(t, c.text, spec(t, "copy"), c.args, o)
		}
	})
}

func TestCopyGivesAllNewFoldersTheirMode(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/files/tree/f", "x", 0o644)
	o := moduletest.Options{Dir: src}
	moduletest.RunTwice(t, spec(t, "copy"), args("src", "tree", "dest", dir+"/a/b", "directory_mode", "0750"), o)
	moduletest.RunTwice(t, spec(t, "copy"), args("src", "tree/f", "dest", dir+"/c/d/", "directory_mode", "0700"), o)
	for p, mode := range map[string]fs.FileMode{"/a": 0o750, "/a/b": 0o750, "/a/b/tree": 0o750, "/c": 0o700,
		"/c/d": 0o700} {
		if got := modeOf(t, dir+p).Perm(); got != mode {
			t.Errorf("%s has mode %o, not %o", p, got, mode)
		}
	}
}

func TestCopyDiff(t *testing.T) {
	dir := t.TempDir()
	dest := write(t, dir+"/f", "old\n", 0o600)
	for _, check := range []bool{true, false} {
		o := moduletest.Options{Check: check, Diff: true}
		r := moduletest.Run(t, spec(t, "copy"), args("content", "new\n", "dest", dest, "mode", "0644"), o)
		if len(r.Diff) != 2 {
			t.Fatalf("diff is %+v", r.Diff)
		}
		if d := r.Diff[0]; d.Before != "old\n" || d.After != "new\n" || d.BeforeHeader != dest {
			t.Errorf("content diff is %+v", d)
		}
		before, _ := r.Diff[1].Before.(*value.Dict)
		if before.String("mode") != "0600" || before.String("path") != dest {
			t.Errorf("attribute diff is %+v", r.Diff[1])
		}
	}
	o := moduletest.Options{Check: true, Diff: true}
	for _, c := range []struct{ content, note string }{
		{"a\x00b", "source file appears to be binary"},
		{strings.Repeat("x", maxDiff+1), "source file size is greater than 104448"},
	} {
		r := moduletest.Run(t, spec(t, "copy"), args("content", c.content, "dest", dest), o)
		if !strings.Contains(r.Diff[0].Note, c.note) {
			t.Errorf("the diff says %+v", r.Diff[0].Note)
		}
	}
}

func TestCopyCheckModeWithoutFolder(t *testing.T) {
	dir := t.TempDir()
	o := moduletest.Options{Check: true}
	r := moduletest.Run(t, spec(t, "copy"), args("content", "x", "dest", dir+"/later/x", "owner", "laterUser"), o)
	if !r.Changed || len(r.Warnings) != 1 {
		t.Errorf("result is %+v", r)
	}
}

func TestCopyJSON(t *testing.T) {
	dir := t.TempDir()
	moduletest.Run(t, spec(t, "copy"), args("content", args("b", []any{1, true}, "a", nil), "dest", dir+"/x"),
		moduletest.Options{})
	if got := read(t, dir+"/x"); got != `{"b": [1, true], "a": null}` {
		t.Errorf("the file holds %q", got)
	}
}

func TestCopyTree(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		src, dir := t.TempDir(), t.TempDir()
		for _, name := range oddNames {
			write(t, src+"/files/tree/sub dir/"+name, "content of "+name+"\x00\xff", 0o755)
		}
		write(t, src+"/files/tree/empty", "", 0o644)
		write(t, src+"/files/tree/large", strings.Repeat("0123456789", bundleFile), 0o644)
		if err := os.Symlink("empty", src+"/files/tree/link"); err != nil {
			t.Fatal(err)
		}
		o := moduletest.Options{Conn: conn, Dir: src}
		a := args("src", "tree", "dest", dir, "mode", "preserve", "directory_mode", "0750", "local_follow", false)
		r, _ := moduletest.RunTwice(t, spec(t, "copy"), a, o)
		moduletest.Want(t, r, "dest", dir+"/", "src", src+"/files/tree")
		for _, name := range oddNames {
			if got := read(t, dir+"/tree/sub dir/"+name); got != "content of "+name+"\x00\xff" {
				t.Errorf("%q holds %q", name, got)
			}
		}
		if link, err := os.Readlink(dir + "/tree/link"); link != "empty" {
			t.Errorf("link is %q, %v", link, err)
		}
		if modeOf(t, dir+"/tree/sub dir").Perm() != 0o750 || modeOf(t, dir+"/tree/sub dir/plain").Perm() != 0o755 {
			t.Error("modes are wrong")
		}
		if len(read(t, dir+"/tree/large")) != 10*bundleFile {
			t.Error("the large file is not whole")
		}
		// One file and the mode change; only the content of the folder is copied.
		write(t, src+"/files/tree/empty", "no more", 0o644)
		a = args("src", "tree/", "dest", dir+"/tree", "mode", "0600", "backup", true)
		moduletest.RunTwice(t, spec(t, "copy"), a, o)
		if read(t, dir+"/tree/empty") != "no more" || modeOf(t, dir+"/tree/large").Perm() != 0o600 {
			t.Error("the second copy did not bring the changes")
		}
		if found, _ := filepath.Glob(dir + "/tree/empty.*~"); len(found) != 1 {
			t.Errorf("backups: %v", found)
		}
		noLeftovers(t, dir)
	})
}

func TestCopyTreeRoundTrips(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	for _, name := range strings.Fields("a b c d e f") {
		write(t, src+"/files/tree/"+name+"/"+name, name, 0o644)
	}
	for i, trips := range []int{2, 1} {
		conn := moduletest.Count(nil)
		moduletest.Run(t, spec(t, "copy"), args("src", "tree/", "dest", dir+"/x"), moduletest.Options{Conn: conn, Dir: src})
		if got := len(conn.Commands()); got != trips {
			t.Errorf("copy %d took %d round trips, not %d", i, got, trips)
		}
	}
}

func TestCopyTreeErrors(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/files/tree/sub/f", "x", 0o644)
	write(t, dir+"/tree/sub", "in the way", 0o644)
	o := moduletest.Options{Dir: src}
	moduletest.Fails(t, "is in the way of a folder", spec(t, "copy"), args("src", "tree", "dest", dir), o)
	if err := os.Symlink("..", src+"/files/tree/sub/circle"); err != nil {
		t.Fatal(err)
	}
	moduletest.Fails(t, "loop of links", spec(t, "copy"), args("src", "tree", "dest", dir), o)
}

func TestCopyRemote(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		o := moduletest.Options{Conn: conn, Diff: true}
		for _, name := range oddNames {
			write(t, dir+"/src/deep/"+name, name, 0o640)
		}
		r, _ := moduletest.RunTwice(t, spec(t, "copy"),
			args("src", dir+"/src/deep/it's", "dest", dir+"/one", "remote_src", true, "mode", "preserve"), o)
		moduletest.Want(t, r, "dest", dir+"/one", "mode", "0640", "checksum", "79bbc535e98fe7e64ace715175a9b3d6e4167bf0")
		if read(t, dir+"/one") != "it's" || r.Diff[0].After != "it's" {
			t.Errorf("copied %q, diff %+v", read(t, dir+"/one"), r.Diff)
		}
		moduletest.RunTwice(t, spec(t, "copy"), args("src", dir+"/src/", "dest", dir+"/all", "remote_src", true), o)
		for _, name := range oddNames {
			if got := read(t, dir+"/all/deep/"+name); got != name {
				t.Errorf("%q holds %q", name, got)
			}
		}
		r = moduletest.Run(t, spec(t, "copy"), args("src", dir+"/src", "dest", dir+"/all", "remote_src", true, "mode",
			"0600"), o)
		moduletest.Want(t, r, "dest", dir+"/all/src")
		if modeOf(t, dir+"/all/src/deep/plain").Perm() != 0o600 {
			t.Error("mode was not set")
		}
		moduletest.Fails(t, "not found", spec(t, "copy"), args("src", dir+"/nope", "dest", dir+"/x", "remote_src", true), o)
		moduletest.Fails(t, "into itself", spec(t, "copy"),
			args("src", dir+"/src", "dest", dir+"/src/deep", "remote_src", true), o)
		noLeftovers(t, dir)
	})
}

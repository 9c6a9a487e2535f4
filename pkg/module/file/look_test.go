package file

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/expr"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func statOf(t *testing.T, o moduletest.Options, pairs ...any) *value.Dict {
	t.Helper()
	r := moduletest.Run(t, spec(t, "stat"), args(pairs...), o)
	d, _ := get(t, r, "stat").(*value.Dict)
	return d
}

func TestStat(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		conn = moduletest.Count(conn)
		o := moduletest.Options{Conn: conn, Check: true}
		for _, name := range oddNames {
			p := write(t, dir+"/"+name, "hi\n", os.ModeSetuid|0o750)
			if name == "$HOME" {
				continue
			}
			when := time.Unix(1600000000, 0)
			if err := os.Chtimes(p, when, when); err != nil {
				t.Fatal(err)
			}
			d := statOf(t, o, "path", p)
			for key, want := range map[string]any{
				"exists": true, "isreg": true, "isdir": false, "islnk": false, "mode": "4750", "size": 3, "isuid": true,
				"isgid":    false,
				"checksum": "55ca6286e3e4f4fba5d0448333fa99fc5a404a73", "path": p, "mtime": 1600000000.0, "rusr": true,
				"xoth": false,
				"wgrp": false, "xgrp": true, "readable": true, "nlink": 1, "uid": os.Getuid(),
			} {
				if got, _ := d.Get(key); !value.Equal(got, want) {
					t.Errorf("%q: %s is %s, not %s", name, key, value.Repr(got), value.Repr(want))
				}
			}
		}
		if n := len(conn.(*moduletest.Counter).Commands()); n != len(oddNames)-1 {
			t.Errorf("%d round trips for %d files", n, len(oddNames)-1)
		}
	})
}

func TestStatLinksAndFolders(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		target := write(t, dir+"/it's\n", "x", 0o600)
		o := moduletest.Options{Conn: conn}
		if err := os.Symlink("it's\n", dir+"/link"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("nowhere", dir+"/dangling"); err != nil {
			t.Fatal(err)
		}
		d := statOf(t, o, "path", dir+"/link")
		if d.String("lnk_target") != "it's\n" || d.String("lnk_source") != target || d.Has("checksum") {
			t.Errorf("link: %s", value.Repr(d))
		}
		if d := statOf(t, o, "path", dir+"/link", "follow", true, "checksum_algorithm",
			"md5"); d.String("checksum") != "9dd4e461268c8034f5c8564e155c67a6" || d.Has("lnk_target") {
			t.Errorf("followed: %s", value.Repr(d))
		}
		if d := statOf(t, o, "path", dir+"/dangling"); !value.Truth(must(d.Get("islnk"))) {
			t.Errorf("dangling: %s", value.Repr(d))
		}
		if d := statOf(t, o, "path", dir+"/dangling", "follow", true); value.Truth(must(d.Get("exists"))) {
			t.Errorf("dangling, followed: %s", value.Repr(d))
		}
		if d := statOf(t, o, "path", dir); !value.Truth(must(d.Get("isdir"))) || d.Has("checksum") {
			t.Errorf("folder: %s", value.Repr(d))
		}
		for _, p := range []string{dir + "/no", target + "/x"} {
			if d := statOf(t, o, "path", p); d.Len() != 1 {
				t.Errorf("missing: %s", value.Repr(d))
			}
		}
		if d := statOf(t, o, "path", target, "checksum_algorithm", "sha512", "get_mime", false, "get_attributes",
			false); len(d.String("checksum")) != 128 || d.Has("mimetype") || d.Has("attr_flags") {
			t.Errorf("sha512: %s", value.Repr(d))
		}
	})
}

func must(v any, _ bool) any { return v }

// ls is used on a host without stat, or with a stat that does not support -c.
func TestHostWithoutStat(t *testing.T) {
	for says, script := range map[string]string{
		"unknown option": "echo \"stat: unrecognized option: c\" >&2; exit 1",
		"not found":      "echo \"sh: 1: stat: not found\" >&2; exit 127",
	} {
		t.Run(says, func(t *testing.T) {
			bin := t.TempDir()
			write(t, bin+"/stat", "#!/bin/sh\n"+script+"\n", 0o755)
			o := moduletest.Options{Conn: &withPath{moduletest.Shell(), bin}}
			dir := t.TempDir()
			for _, name := range oddNames {
				p := write(t, dir+"/"+name, "abc", 0o640)
				if name == "$HOME" {
					continue
				}
				d := statOf(t, o, "path", p)
				for key, want := range map[string]any{"mode": "0640", "size": 3, "uid": os.Getuid(), "isreg": true, "nlink": 1,
					"checksum": sha1Of(t, "abc")} {
					if got, _ := d.Get(key); !value.Equal(got, want) {
						t.Errorf("%q: %s is %s", name, key, value.Repr(got))
					}
				}
			}
			if d := statOf(t, o, "path", dir+"/no"); d.Len() != 1 {
				t.Errorf("missing: %s", value.Repr(d))
			}
			moduletest.RunTwice(t, spec(t, "file"), args("path", dir+"/d", "state", "directory", "mode", "0711"), o)
			moduletest.RunTwice(t, spec(t, "copy"), args("content", "x", "dest", dir+"/d/f", "mode", "0600"), o)
		})
	}
}

// withPath is a host whose PATH begins with a folder of additional commands.
type withPath struct {
	connector.Connector
	bin string
}

func (w *withPath) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	c.Line = "PATH=" + w.bin + ":$PATH; export PATH; " + c.Line
	return w.Connector.Run(ctx, c)
}

func TestInodes(t *testing.T) {
	n, err := parseInode("@ 123 -rws--s--t 1 0 7 3 Jan 1 00:00 x\n-rws--s--t 1 root seven 3 Jan 1 00:00 x")
	if err != nil || n.perm() != 0o7711 || n.owner != "root" || n.group != "seven" || n.size != 3 || n.ino != 123 ||
		!n.is(typeFile) {
		t.Errorf("inode is %+v, %v", n, err)
	}
	for _, bad := range []string{"@", "@1 2 3", "", "zz 1 2 3 4 5 6 7 8 9/a/b", "#", "#f 9z 1 2 3 4 5 6 7 8 9/a/b"} {
		if _, err := parseInode(bad); err == nil {
			t.Errorf("%q is read as an inode", bad)
		}
	}
}

func TestSlurp(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		text := strings.Repeat("\x00\xffx\n", 50000)
		p := write(t, dir+"/it's", text, 0o600)
		o := moduletest.Options{Conn: conn, Check: true}
		r := moduletest.Run(t, spec(t, "slurp"), args("src", p), o)
		moduletest.Want(t, r, "encoding", "base64", "source", p, "content", base64.StdEncoding.EncodeToString([]byte(text)))
		moduletest.Want(t, moduletest.Run(t, spec(t, "slurp"), args("src", write(t, dir+"/empty", "", 0o600)), o), "content",
			"")
		moduletest.Fails(t, "file not found: "+dir+"/no", spec(t, "slurp"), args("src", dir+"/no"), o)
		moduletest.Fails(t, "source is a directory", spec(t, "slurp"), args("src", dir), o)
	})
}

func TestFetch(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		for _, name := range oddNames {
			if name == "$HOME" {
				continue
			}
			dir, local := t.TempDir(), t.TempDir()
			p := write(t, dir+"/"+name, "content\x00", 0o644)
			o := moduletest.Options{Conn: conn, Vars: expr.Names{"playbook_dir": local}, Host: "n/1"}
			r, _ := moduletest.RunTwice(t, spec(t, "fetch"), args("src", p, "dest", "got"), o)
			dest := filepath.Join(local, "got", "n_1", p)
			moduletest.Want(t, r, "dest", dest, "checksum", r.Data.String("remote_checksum"))
			if read(t, dest) != "content\x00" || modeOf(t, dest).Perm() != 0o600 {
				t.Errorf("fetched %q with mode %o", read(t, dest), modeOf(t, dest))
			}
			if err := os.Chmod(dest, 0o644); err != nil {
				t.Fatal(err)
			}
			write(t, p, "other", 0o644)
			moduletest.RunTwice(t, spec(t, "fetch"), args("src", p, "dest", dest, "flat", true), o)
			if read(t, dest) != "other" || modeOf(t, dest).Perm() != 0o644 {
				t.Errorf("fetched %q with mode %o", read(t, dest), modeOf(t, dest))
			}
			r, _ = moduletest.RunTwice(t, spec(t, "fetch"), args("src", p, "dest", local+"/flat/", "flat", true), o)
			moduletest.Want(t, r, "dest", local+"/flat/"+name)
			noLeftovers(t, local)
		}
	})
}

func TestFetchErrors(t *testing.T) {
	dir := t.TempDir()
	p := write(t, dir+"/f", "x", 0o644)
	o := moduletest.Options{}
	moduletest.Fails(t, "the remote file does not exist", spec(t, "fetch"), args("src", dir+"/no", "dest", dir+"/x"), o)
	moduletest.Fails(t, "remote file is a directory", spec(t, "fetch"), args("src", dir, "dest", dir+"/x"), o)
	moduletest.Fails(t, "dest is an existing directory", spec(t, "fetch"), args("src", p, "dest", dir, "flat", true), o)
	moduletest.Fails(t, "not a directory", spec(t, "fetch"), args("src", p, "dest", p+"/x", "flat", true), o)
	r := moduletest.Run(t, spec(t, "fetch"), args("src", dir+"/no", "dest", dir+"/x", "fail_on_missing", false), o)
	if r.Changed || !strings.Contains(r.Msg, "not transferring, ignored") {
		t.Errorf("result is %+v", r)
	}
	if hostFolder("..") != "_" || hostFolder("") != "_" {
		t.Error("a host's name leads out of the folder")
	}
}

func foundNames(t *testing.T, r module.Result) []string {
	t.Helper()
	list, _ := get(t, r, "files").([]any)
	var names []string
	for _, f := range list {
		names = append(names, filepath.Base(f.(*value.Dict).String("path")))
	}
	return names
}

func TestFind(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		old := time.Now().Add(-48 * time.Hour)
		for _, f := range []struct {
			name, text string
			mode       os.FileMode
		}{
			{"a.log", "one\nerror: x\n", 0o644}, {"b.log", strings.Repeat("x", 5000), 0o600}, {"c.txt", "", 0o644},
			{".hidden", "", 0o644},
			{"sub/d.log", "no error", 0o640}, {"sub/deep/e.log", "", 0o644},
		} {
			write(t, dir+"/"+f.name, f.text, f.mode)
		}
		if err := os.Chtimes(dir+"/c.txt", old, old); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("sub", dir+"/link"); err != nil {
			t.Fatal(err)
		}
		o := moduletest.Options{Conn: conn, Check: true}
		for _, c := range []struct {
			args *value.Dict
			want string
		}{
			{args(), "a.log b.log c.txt"},
			{args("hidden", true), ".hidden a.log b.log c.txt"},
			{args("recurse", true), "a.log b.log c.txt d.log e.log"},
			{args("recurse", true, "depth", 2), "a.log b.log c.txt d.log"},
			{args("patterns", "*.log"), "a.log b.log"},
			{args("patterns", []any{"a*", "[!ab].*"}), "a.log c.txt"},
			{args("patterns", "?.log,*.txt", "excludes", "b*"), "a.log c.txt"},
			{args("patterns", `[ab]\.`, "use_regex", true), "a.log b.log"},
			{args("age", "1d"), "c.txt"},
			{args("age", "-1d"), "a.log b.log"},
			{args("size", "1k"), "b.log"},
			{args("size", "-100b"), "a.log c.txt"},
			{args("file_type", "directory"), "sub"},
			{args("file_type", "link"), "link"},
			{args("file_type", "any"), "a.log b.log c.txt link sub"},
			{args("contains", "error"), "a.log"},
			{args("contains", "n..error", "read_whole_file", true, "recurse", true), "d.log"},
			{args("mode", "0600"), "b.log"},
			{args("mode", "g=r", "exact_mode", false), "a.log c.txt"},
			{args("limit", 1), "a.log"},
			{args("follow", true, "recurse", true, "patterns", "d.log"), "d.log d.log"},
			{args("patterns", "nothing"), ""},
		} {
			a := c.args.Copy()
			a.Set("paths", dir)
			r := moduletest.Run(t, spec(t, "find"), a, o)
			if got := strings.Join(foundNames(t, r), " "); got != c.want {
				t.Errorf("%s found %q, not %q", value.Repr(c.args), got, c.want)
			}
			moduletest.Want(t, r, "matched", len(strings.Fields(c.want)))
			if r.Msg != "All paths examined" {
				t.Errorf("msg is %q", r.Msg)
			}
		}
		r := moduletest.Run(t, spec(t, "find"), args("paths", []any{dir + "/no", dir + "/a.log", dir + "/sub"},
			"get_checksum", true), o)
		skipped, _ := get(t, r, "skipped_paths").(*value.Dict)
		if skipped.Len() != 2 || len(r.Warnings) != 2 || !strings.HasPrefix(r.Msg, "Not all paths examined") {
			t.Errorf("skipped %s, warnings %q", value.Repr(skipped), r.Warnings)
		}
		files, _ := get(t, r, "files").([]any)
		d := files[0].(*value.Dict)
		if d.String("checksum") != sha1Of(t, "no error") || d.String("mode") != "0640" {
			t.Errorf("file is %s", value.Repr(d))
		}
		moduletest.Fails(t, "failed to process age", spec(t, "find"), args("paths", dir, "age", "2y"), o)
		moduletest.Fails(t, "failed to process size", spec(t, "find"), args("paths", dir, "size", "big"), o)
		moduletest.Fails(t, "is not valid", spec(t, "find"), args("paths", dir, "contains", "("), o)
	})
}

func sha1Of(t *testing.T, s string) string {
	t.Helper()
	ct, err := contentOf([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return ct.sha1
}

func TestFindTellsWhatItSkipped(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		write(t, dir+"/a.gbk", "\xc4\xe3\xba\xc3\n", 0o644)
		write(t, dir+"/b/c/d", "", 0o644)
		o := moduletest.Options{Conn: conn}
		for name, c := range map[string]struct {
			skipped string
			matched int
		}{
			"gbk":     {"", 1},
			"utf-8":   {"Failed to read the file " + dir + "/a.gbk due to an encoding error. current encoding: utf-8", 0},
			"klingon": {"unknown encoding: klingon", 0},
		} {
			r := moduletest.Run(t, spec(t, "find"), args("paths", dir, "contains", "你", "encoding", name), o)
			why := get(t, r, "skipped_paths").(*value.Dict)
			if got := why.String(dir); got != c.skipped || (got == "") != (r.Msg == "All paths examined") {
				t.Errorf("%s: %q is skipped because of %q", name, r.Msg, got)
			}
			moduletest.Want(t, r, "matched", c.matched)
		}
		r := moduletest.Run(t, spec(t, "find"), args("paths", dir, "recurse", true, "depth", 1, "file_type", "any"), o)
		moduletest.Want(t, r, "matched", 2, "examined", 3)

		f := &finder{skipped: value.NewDict()}
		f.hear("find: '/x/y': Permission denied\nfind: /z: Permission denied\nfind: odd")
		if value.Repr(f.skipped) != `{'/x/y': "[Errno 13] Permission denied: '/x/y'", '/z': "[Errno 13] Permission denied: '/z'"}` || len(f.warnings) != 1 {
			t.Errorf("heard %s, %q", value.Repr(f.skipped), f.warnings)
		}
	})
}

func TestFindOddNames(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		for _, name := range oddNames {
			write(t, dir+"/"+name+"/"+name, name, 0o644)
		}
		r := moduletest.Run(t, spec(t, "find"), args("paths", dir, "recurse", true, "get_checksum", true),
			moduletest.Options{Conn: conn})
		files, _ := get(t, r, "files").([]any)
		got := map[string]string{}
		for _, f := range files {
			got[f.(*value.Dict).String("path")] = f.(*value.Dict).String("checksum")
		}
		for _, name := range oddNames {
			if got[dir+"/"+name+"/"+name] != sha1Of(t, name) {
				t.Errorf("%q was not found, or has checksum %q", name, got[dir+"/"+name+"/"+name])
			}
		}
	})
}

func TestTempFile(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		o := moduletest.Options{Conn: conn}
		r := moduletest.Run(t, spec(t, "tempfile"), args("path", dir, "prefix", "it's ", "suffix", ".x"), o)
		p := r.Data.String("path")
		moduletest.Want(t, r, "mode", "0600", "state", "file", "size", 0)
		if !r.Changed || !strings.HasPrefix(p, dir+"/it's ") || !strings.HasSuffix(p, ".x") || modeOf(t, p).Perm() != 0o600 {
			t.Errorf("made %q", p)
		}
		r = moduletest.Run(t, spec(t, "tempfile"), args("path", dir, "state", "directory"), o)
		moduletest.Want(t, r, "mode", "0700", "state", "directory")
		moduletest.Fails(t, "create "+dir+"/no/ansible.", spec(t, "tempfile"), args("path", dir+"/no"), o)
		r = moduletest.Run(t, spec(t, "tempfile"), args("path", dir), moduletest.Options{Conn: conn, Check: true})
		if !r.Skipped {
			t.Errorf("result is %+v", r)
		}
	})
}

func TestAnswersThatBreakOff(t *testing.T) {
	for _, said := range []string{"S81a4", "\x00", "Qq\x00.\x00", ".\x00.\x00", "", "Ix\x00.\x00", "Uroot\x00.\x00",
		"C!\x00.\x00"} {
		if _, err := parseAnswer([]byte(said), []asked{{path: "/x"}}, "root", ""); err == nil {
			t.Errorf("%q is an answer", said)
		}
	}
}

func TestUnreachable(t *testing.T) {
	for _, a := range []struct {
		name string
		args *value.Dict
	}{
		{"copy", args("content", "x", "dest", "/x")}, {"file", args("path", "/x")}, {"stat", args("path", "/x")},
		{"slurp", args("src", "/x")},
		{"fetch", args("src", "/x", "dest", "/x")}, {"find", args("paths", "/x")},
		{"lineinfile", args("path", "/x", "line", "y")}, {"tempfile", args()},
	} {
		_, err := moduletest.Try(t, spec(t, a.name), a.args, moduletest.Options{Conn: moduletest.Unreachable{}})
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: %v", a.name, err)
		}
	}
}

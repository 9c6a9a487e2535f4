package file

import (
	"context"
	"os"
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestLineInFile(t *testing.T) {
	text := "# head\na=1\nb=2\na=3\nend\n"
	moduletest.Edits(t, spec(t, "lineinfile"), []editCase{
		{"exact", text, args("line", "b=2"), text, ""},
		{"append", text, args("line", "c=4"), text + "c=4\n", "line added"},
		{"append to an unfinished line", "x", args("line", "y"), "x\ny\n", "line added"},
		{"finish the line", "x", args("line", "x"), "x\n", "line replaced"},
		{"empty file", "", args("line", "y"), "y\n", "line added"},
		{"last match", text, args("regexp", "^a=", "line", "a=9"), "# head\na=1\nb=2\na=9\nend\n", "line replaced"},
		{"first match", text, args("regexp", "^a=", "line", "a=9", "firstmatch", true), "# head\na=9\nb=2\na=3\nend\n",
			"line replaced"},
		{"regexp without match", text, args("regexp", "^z=", "line", "z=1"), text + "z=1\n", "line added"},
		{"search string", text, args("search_string", "b=", "line", "b=3"), "# head\na=1\nb=3\na=3\nend\n", "line replaced"},
		{"backrefs", text, args("regexp", `^(?P<k>b)=(\d)$`, "line", `\g<k>:\2\t\1`, "backrefs", true),
			"# head\na=1\nb:2\tb\na=3\nend\n", "line replaced"},
		{"backrefs without match", text, args("regexp", "^z(.)", "line", `\1`, "backrefs", true), text, ""},
		{"no backrefs, literal", text, args("regexp", "^b", "line", `\1`), "# head\na=1\n\\1\na=3\nend\n", "line replaced"},
		{"insertafter", text, args("line", "n", "insertafter", "^a="), "# head\na=1\nb=2\na=3\nn\nend\n", "line added"},
		{"insertafter the first", text, args("line", "n", "insertafter", "^a=", "firstmatch", true),
			"# head\na=1\nn\nb=2\na=3\nend\n", "line added"},
		{"insertafter the end", text, args("line", "n", "insertafter", "^end"), text + "n\n", "line added"},
		{"insertafter nothing", text, args("line", "n", "insertafter", "^zzz"), text + "n\n", "line added"},
		{"insertbefore", text, args("line", "n", "insertbefore", "^b"), "# head\na=1\nn\nb=2\na=3\nend\n", "line added"},
		{"insertbefore nothing", text, args("line", "n", "insertbefore", "^zzz"), text + "n\n", "line added"},
		{"BOF", text, args("line", "n", "insertbefore", "BOF"), "n\n" + text, "line added"},
		{"EOF", text, args("line", "n", "insertafter", "EOF"), text + "n\n", "line added"},
		{"regexp wins over insertafter", text, args("regexp", "^b", "line", "b=9", "insertafter", "^end"),
			"# head\na=1\nb=9\na=3\nend\n", "line replaced"},
		{"remove by line", text, args("line", "b=2", "state", "absent"), "# head\na=1\na=3\nend\n", "1 line(s) removed"},
		{"remove by regexp", text, args("regexp", "^a=", "state", "absent"), "# head\nb=2\nend\n", "2 line(s) removed"},
		{"remove by search string", text, args("search_string", "=", "state", "absent"), "# head\nend\n",
			"3 line(s) removed"},
		{"remove nothing", text, args("line", "zzz", "state", "absent"), text, ""},
		{"no lower bound", "aaab\nab\n", args("regexp", "^a{,2}b", "line", "x"), "aaab\nx\n", "line replaced"},
		{"a set of letters and a bracket", "l]\nx\n", args("regexp", "^[[:alpha:]]", "line", "x"), "x\nx\n", "line replaced"},
		{"letters of ASCII", "é=1\ne=1\n", args("regexp", `^\w=`, "line", "x"), "é=1\nx\n", "line replaced"},
		{"lookahead", text, args("regexp", "^a=(?!1)", "line", "x"), "# head\na=1\nb=2\nx\nend\n", "line replaced"},
		{"backreference in the pattern", "aa\nab\n", args("regexp", `^(?P<x>.)(?P=x)$`, "line", "twice"), "twice\nab\n",
			"line replaced"},
		{"umlauts and lookbehind", "grün=1\n", args("regexp", `(?<=grün)=(.)`, "line", `grün: \1`, "backrefs", true),
			"grün: 1\n", "line replaced"},
		{"several lines", text, args("line", "x\ny", "insertafter", "^b"), "# head\na=1\nb=2\nx\ny\na=3\nend\n",
			"line added"},
		{"bytes that are no text", "\xff\xfe\nb\n", args("regexp", "^b", "line", "c"), "\xff\xfe\nc\n", "line replaced"},
	})
}

func TestBlockInFile(t *testing.T) {
	begin, end := "# BEGIN ANSIBLE MANAGED BLOCK\n", "# END ANSIBLE MANAGED BLOCK\n"
	moduletest.Edits(t, spec(t, "blockinfile"), []editCase{
		{"append", "a\n", args("block", "x\ny"), "a\n" + begin + "x\ny\n" + end, "Block inserted"},
		{"append to an unfinished line", "a", args("block", "x"), "a\n" + begin + "x\n" + end, "Block inserted"},
		{"the same", "a\n" + begin + "x\n" + end + "b\n", args("block", "x\n"), "a\n" + begin + "x\n" + end + "b\n", ""},
		{"update", "a\n" + begin + "x\n" + end + "b\n", args("block", "y"), "a\n" + begin + "y\n" + end + "b\n",
			"Block inserted"},
		{"remove", "a\n" + begin + "x\n" + end + "b\n", args("block", "x", "state", "absent"), "a\nb\n", "Block removed"},
		{"empty block", "a\n" + begin + "x\n" + end + "b\n", args("block", ""), "a\nb\n", "Block removed"},
		{"nothing to remove", "a\n", args("state", "absent"), "a\n", ""},
		{"insertafter", "a\nb\na\nc\n", args("block", "x", "insertafter", "^a"), "a\nb\na\n" + begin + "x\n" + end + "c\n",
			"Block inserted"},
		{"insertbefore", "a\nb\n", args("block", "x", "insertbefore", "^b"), "a\n" + begin + "x\n" + end + "b\n",
			"Block inserted"},
		{"BOF", "a\n", args("block", "x", "insertbefore", "BOF"), begin + "x\n" + end + "a\n", "Block inserted"},
		{"marker", "a\n", args("block", "x", "marker", "<!-- {mark} -->", "marker_begin", "open", "marker_end", "close"),
			"a\n<!-- open -->\nx\n<!-- close -->\n", "Block inserted"},
		{"newlines", "a\nb\n", args("block", "x", "insertafter", "^a", "prepend_newline", true, "append_newline", true),
			"a\n\n" + begin + "x\n" + end + "\nb\n", "Block inserted"},
	})
}

func TestReplace(t *testing.T) {
	moduletest.Edits(t, spec(t, "replace"), []editCase{
		{"all", "a1\na2\nb\n", args("regexp", `^a(\d)$`, "replace", `x\1`), "x1\nx2\nb\n", "2 replacements made"},
		{"delete", "a1\na2\n", args("regexp", `\d`), "a\na\n", "2 replacements made"},
		{"none", "a\n", args("regexp", "z", "replace", "y"), "a\n", ""},
		{"the same", "a\n", args("regexp", "a", "replace", "a"), "a\n", ""},
		{"after", "x\nMARK\nx\n", args("regexp", "x", "replace", "y", "after", "MARK"), "x\nMARK\ny\n",
			"1 replacements made"},
		{"before", "x\nMARK\nx\n", args("regexp", "x", "replace", "y", "before", "MARK"), "y\nMARK\nx\n",
			"1 replacements made"},
		{"between", "x\nA\nx\nB\nx\n", args("regexp", "x", "replace", "y", "after", "A", "before", "B"), "x\nA\ny\nB\nx\n",
			"1 replacements made"},
		{"no section", "x\n", args("regexp", "x", "replace", "y", "after", "A"), "x\n",
			"Pattern for before/after params did not match the given file: A(?P<subsection>.*)"},
		{"lookbehind", "ab cb\n", args("regexp", "(?<=a)b", "replace", `[\g<0>]`), "a[b] cb\n", "1 replacements made"},
		{"empty matches", "axb", args("regexp", "x*", "replace", "-"), "-a--b-", "4 replacements made"},
		{"letters of Unicode", "é=1\n", args("regexp", `\w`, "replace", "x"), "x=x\n", "2 replacements made"},
		{"condition", "<a> b>\n", args("regexp", `(<)?\b(\w)(?(1)>)`, "replace", `\2`), "a b>\n", "2 replacements made"},
		{"lookahead and umlauts", "äöü äöx\n", args("regexp", "ö(?=x)", "replace", "Ö"), "äöü äÖx\n", "1 replacements made"},
		{"named groups count in order", "xyz\n", args("regexp", `(?P<a>x)(y)(?P<b>.)(?!q)`, "replace", `\3\2\1\g<b>`),
			"zyxz\n", "1 replacements made"},
		{"end of text", "a\n", args("regexp", `\n\Z`, "replace", "!\\n"), "a!\n", "1 replacements made"},
	})
}

func TestEditErrors(t *testing.T) {
	dir := t.TempDir()
	f := write(t, dir+"/f", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n", 0o644)
	for _, c := range []struct {
		module string
		args   *value.Dict
		text   string
	}{
		{"lineinfile", args("path", dir+"/no", "line", "x"), "Destination " + dir + "/no does not exist !"},
		{"lineinfile", args("path", dir, "line", "x"), "Path " + dir + " is a directory !"},
		{"lineinfile", args("path", "/dev/null", "line", "x"), "is not a regular file"},
		{"lineinfile", args("path", f), "line is required with state=present"},
		{"lineinfile", args("path", f, "state", "absent"), "one of line, search_string, or regexp is required"},
		{"lineinfile", args("path", f, "line", "x", "backrefs", true), "regexp is required with backrefs=true"},
		{"lineinfile", args("path", f, "line", "x", "regexp", "", "search_string", ""),
			"mutually exclusive: regexp|search_string"},
		{"lineinfile", args("path", f, "line", "x", "insertafter", "a", "insertbefore", "b"),
			"mutually exclusive: insertbefore|insertafter"},
		{"lineinfile", args("path", f, "line", "x", "regexp", "("), `the regular expression "(" is not valid`},
		{"lineinfile", args("path", f, "line", `\3`, "regexp", "(a)", "backrefs", true), "invalid group reference 3"},
		{"lineinfile", args("path", f, "line", `\g<x>`, "regexp", "(a)", "backrefs", true), `unknown group name 'x'`},
		{"lineinfile", args("path", f, "line", `\gx`, "regexp", "(a)", "backrefs", true), "missing <"},
		{"lineinfile", args("path", f+"/x", "line", "x", "create", true), "create folder " + f},
		{"lineinfile", args("path", f, "line", "x", "validate", "false %s"), "failed to validate: rc:1"},
		{"blockinfile", args("path", dir+"/no", "block", "x"), "Path " + dir + "/no does not exist !"},
		{"blockinfile", args("path", f, "block", "x", "insertafter", "("), "is not valid"},
		{"blockinfile", args("path", f, "block", "x", "insertafter", "a", "insertbefore", "b"), "mutually exclusive"},
		{"replace", args("path", dir+"/no", "regexp", "x"), "Path " + dir + "/no does not exist !"},
		{"replace", args("path", f, "regexp", "x", "encoding", "latin-1"), "only utf-8 is"},
		{"replace", args("path", f, "regexp", "["), "is not valid"},
		{"replace", args("path", f, "regexp", "nowhere", "replace", `\q`),
			`the replacement "\\q" is not valid: bad escape \q at position 0`},
		{"replace", args("path", f, "regexp", "(?<=a*)b"), "look-behind requires fixed-width pattern"},
		{"replace", args("path", f, "regexp", "(?P=nope)"), "is not valid"},
		{"replace", args("path", f, "regexp", "x", "after", "["), "is not valid"},
	} {
		moduletest.Fails(t, c.text, spec(t, c.module), c.args, moduletest.Options{})
	}
}

func TestEditsTellAFolderFromAMissingFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"lineinfile", "blockinfile", "replace"} {
		for path, rc := range map[string]int{dir: 256, dir + "/no": 257} {
			a := map[string]*value.Dict{
				"lineinfile":  args("path", path, "line", "x"),
				"blockinfile": args("path", path, "block", "x"),
				"replace":     args("path", path, "regexp", "x"),
			}[name]
			r, err := moduletest.Try(t, spec(t, name), a, moduletest.Options{})
			if err == nil || !value.Equal(r.Data, value.NewDict("rc", rc)) {
				t.Errorf("%s of %s: %v %v, want rc %d", name, path, r.Data, err, rc)
			}
		}
	}
}

func TestEditCreatesAndBacksUp(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		o := moduletest.Options{Conn: conn, Diff: true}
		for _, name := range oddNames {
			if name == "$HOME" {
				continue
			}
			p := dir + "/" + name
			r, _ := moduletest.RunTwice(t, spec(t, "lineinfile"), args("path", p, "line", "one", "create", true, "mode", "0600"),
				o)
			moduletest.Want(t, r, "backup", "", "msg", "line added")
			if mode := modeOf(t, p); mode.Perm() != 0o600 {
				t.Errorf("%s has mode %s", p, mode)
			}
			backs := !strings.Contains(name, "\n") // Put prints the backup's path on one line
			r, _ = moduletest.RunTwice(t, spec(t, "blockinfile"), args("path", p, "block", "two", "backup", backs), o)
			if r.Diff[0].Before != "one\n" || r.Diff[0].BeforeHeader != p+" (content)" {
				t.Errorf("diff is %+v", r.Diff)
			}
			if backs && read(t, r.Data.String("backup_file")) != "one\n" {
				t.Errorf("the backup of %q holds something else", p)
			}
			r, _ = moduletest.RunTwice(t, spec(t, "replace"), args("path", p, "regexp", "two", "replace", "2", "mode", "0640"),
				o)
			if !strings.HasSuffix(r.Msg, "replacements made and ownership, perms or SE linux context changed") ||
				len(r.Diff) != 2 {
				t.Errorf("msg is %q, diff %+v", r.Msg, r.Diff)
			}
			if got := read(t, p); got != "one\n# BEGIN ANSIBLE MANAGED BLOCK\n2\n# END ANSIBLE MANAGED BLOCK\n" {
				t.Errorf("%q holds %q", name, got)
			}
		}
		r := moduletest.Run(t, spec(t, "lineinfile"), args("path", dir+"/none", "line", "x", "state", "absent"), o)
		if r.Changed || r.Msg != "file not present" {
			t.Errorf("result is %+v", r)
		}
		r = moduletest.Run(t, spec(t, "blockinfile"), args("path", dir+"/none", "state", "absent"), o)
		if r.Changed {
			t.Errorf("result is %+v", r)
		}
		r, _ = moduletest.RunTwice(t, spec(t, "blockinfile"), args("path", dir+"/made", "block", "x", "create", true), o)
		if r.Msg != "File created" {
			t.Errorf("msg is %q", r.Msg)
		}
		noLeftovers(t, dir)
	})
}

func TestEditFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	target := write(t, dir+"/target", "a\n", 0o600)
	if err := os.Symlink("target", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	moduletest.RunTwice(t, spec(t, "lineinfile"), args("path", dir+"/link", "line", "b"), moduletest.Options{})
	if read(t, target) != "a\nb\n" || modeOf(t, dir+"/link")&os.ModeSymlink == 0 {
		t.Error("the link was not followed")
	}
}

// meddler changes a file between a module's read and write.
type meddler struct {
	connector.Connector
	meddle func()
}

func (m *meddler) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	if !c.Probe {
		m.meddle()
	}
	return m.Connector.Run(ctx, c)
}

func TestEditRefusesWhatChangedMeanwhile(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		dir := t.TempDir()
		for _, name := range []string{"plain", "it's %s"} {
			p := write(t, dir+"/"+name, "a\n", 0o644)
			o := moduletest.Options{Conn: &meddler{conn, func() { write(t, p, "somebody else\n", 0o644) }}}
			moduletest.Fails(t, "changed on the host while it was being edited", spec(t, "lineinfile"),
				args("path", p, "line", "b"), o)
			if got := read(t, p); got != "somebody else\n" {
				t.Errorf("the file holds %q", got)
			}
			created := dir + "/" + name + ".new"
			o = moduletest.Options{Conn: &meddler{conn, func() { write(t, created, "somebody else\n", 0o644) }}}
			moduletest.Fails(t, "changed on the host while", spec(t, "lineinfile"),
				args("path", created, "line", "b", "create", true), o)
		}
		noLeftovers(t, dir)
	})
}

func TestEditRoundTrips(t *testing.T) {
	p := write(t, t.TempDir()+"/f", "a\n", 0o644)
	for _, trips := range []int{2, 1} {
		conn := moduletest.Count(nil)
		moduletest.Run(t, spec(t, "lineinfile"), args("path", p, "line", "secret-line", "mode", "0600"),
			moduletest.Options{Conn: conn})
		if got := len(conn.Commands()); got != trips {
			t.Errorf("%d round trips, not %d", got, trips)
		}
		if strings.Contains(strings.Join(conn.Lines(), ""), "secret-line") {
			t.Error("content stands in a command line")
		}
	}
}

package file

import (
	"os"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/expr"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestTemplate(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		src, dir := t.TempDir(), t.TempDir()
		write(t, src+"/templates/it's.j2", "# {{ ansible_managed }}\n{% for h in hosts %}\n- {{ h }}\n{% endfor %}\n{{ template_path }}\n", 0o755)
		o := moduletest.Options{Conn: conn, Dir: src, Diff: true, Vars: expr.Names{"hosts": []any{"n1", "n2"}}}
		r, _ := moduletest.RunTwice(t, spec(t, "template"), args("src", "it's.j2", "dest", dir+"/out", "mode", "preserve"), o)
		text := "# Ansible managed\n- n1\n- n2\nit's.j2\n"
		if got := read(t, dir+"/out"); got != text {
			t.Errorf("rendered %q", got)
		}
		moduletest.Want(t, r, "dest", dir+"/out", "mode", "0755", "size", len(text), "checksum", sha1Of(t, text))
		if r.Diff[0].After != text || r.Diff[0].AfterHeader != src+"/templates/it's.j2" {
			t.Errorf("diff is %+v", r.Diff)
		}
		r, _ = moduletest.RunTwice(t, spec(t, "template"), args("src", "it's.j2", "dest", dir+"/"), o)
		moduletest.Want(t, r, "dest", dir+"/it's.j2")
	})
}

func TestTemplateNames(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	p := write(t, src+"/t.j2", "{{ template_fullpath }}|{{ template_host }}|{{ template_uid }}|{{ template_run_date.year }}|{{ ansible_managed }}|{{ x }}", 0o644)
	o := moduletest.Options{Dir: src, Vars: expr.Names{"ansible_managed": "ours", "x": 1},
		Now: func() time.Time { return time.Unix(1600000000, 0).UTC() }}
	moduletest.Run(t, spec(t, "template"), args("src", "t.j2", "dest", dir+"/out"), o)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(read(t, dir+"/out"), "|")
	if got[0] != p || got[1] != host || got[2] == "" || got[3] != "2020" || got[4] != "ours" || got[5] != "1" {
		t.Errorf("rendered %q", got)
	}
}

func TestTemplateOptions(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	o := moduletest.Options{Dir: src, Vars: expr.Names{"x": "X"}}
	for _, c := range []struct {
		text string
		args *value.Dict
		want string
	}{
		{"a\n{{ x }}\n", args("newline_sequence", `\r\n`), "a\r\nX\r\n"},
		{"{% if x %}\ny\n{% endif %}\n", args("trim_blocks", false), "\ny\n"},
		{"  {% if x %}\ny\n  {% endif %}\n", args("lstrip_blocks", true), "y\n"},
		{"[[ x ]] {{ x }}\n", args("variable_start_string", "[[", "variable_end_string", "]]"), "X {{ x }}\n"},
		{"<% if x %>\ny\n<% endif %>\n", args("block_start_string", "<%", "block_end_string", "%>"), "y\n"},
	} {
		write(t, src+"/t.j2", c.text, 0o644)
		a := c.args.Copy()
		a.Merge(args("src", "t.j2", "dest", dir+"/out"))
		moduletest.Run(t, spec(t, "template"), a, o)
		if got := read(t, dir+"/out"); got != c.want {
			t.Errorf("%q with %s rendered %q, not %q", c.text, value.Repr(c.args), got, c.want)
		}
	}
}

func TestTemplateEncodings(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/t.j2", "{{ 'ü' }}€", 0o644)
	for name, want := range map[string]string{
		"utf-8": "ü€", "windows-1252": "\xfc\x80", "cp1252": "\xfc\x80", "ISO-8859-15": "\xfc\xa4",
		"utf-16": "\xff\xfe\xfc\x00\xac\x20", "utf-16-be": "\x00\xfc\x20\xac",
	} {
		moduletest.RunTwice(t, spec(t, "template"), args("src", "t.j2", "dest", dir+"/"+name, "output_encoding", name),
			moduletest.Options{Dir: src})
		if got := read(t, dir+"/"+name); got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
}

func TestTemplateErrors(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/bad.j2", "one\n{{ nope }}\n", 0o644)
	write(t, src+"/euro.j2", "€\n", 0o644)
	write(t, src+"/d/x", "", 0o644)
	o := moduletest.Options{Dir: src}
	for _, c := range []struct {
		args *value.Dict
		text string
	}{
		{args("src", "bad.j2"), "'nope' is undefined"},
		{args("src", "no.j2"), "Could not find or access 'no.j2'"},
		{args("src", "d"), "is a folder"},
		{args("src", "euro.j2", "output_encoding", "latin-1"), "contains a character that latin-1 cannot represent"},
		{args("src", "euro.j2", "output_encoding", "klingon"), "output_encoding: unknown encoding klingon"},
		{args("src", "bad.j2", "newline_sequence", "x"), "newline_sequence needs to be one of"},
	} {
		c.args.Set("dest", dir+"/out")
		moduletest.Fails(t, c.text, spec(t, "template"), c.args, o)
	}
}

func TestAssemble(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		src, dir := t.TempDir(), t.TempDir()
		for _, base := range []string{src + "/files/parts", dir + "/parts"} {
			write(t, base+"/10-it's", "a", 0o644)
			write(t, base+"/20 b", "b\n", 0o644)
			write(t, base+"/.hidden", "h\n", 0o644)
			write(t, base+"/sub/x", "no\n", 0o644)
		}
		o := moduletest.Options{Conn: conn, Dir: src}
		dest := dir + "/out"
		r, _ := moduletest.RunTwice(t, spec(t, "assemble"), args("src", dir+"/parts", "dest", dest, "mode", "0600"), o)
		moduletest.Want(t, r, "dest", dest, "src", dir+"/parts", "mode", "0600", "checksum", sha1Of(t, "h\na\nb\n"))
		moduletest.RunTwice(t, spec(t, "assemble"),
			args("src", "parts", "dest", dest, "remote_src", false, "ignore_hidden", true, "delimiter", `-- \t`), o)
		if got := read(t, dest); got != "a\n-- \t\nb\n" {
			t.Errorf("assembled %q", got)
		}
		moduletest.RunTwice(t, spec(t, "assemble"), args("src", dir+"/parts", "dest", dest, "regexp", "^2", "backup", true),
			o)
		if got := read(t, dest); got != "b\n" {
			t.Errorf("assembled %q", got)
		}
		moduletest.Fails(t, "does not exist", spec(t, "assemble"), args("src", dir+"/no", "dest", dest), o)
		moduletest.Fails(t, "is not a directory", spec(t, "assemble"), args("src", dest, "dest", dest), o)
		moduletest.Fails(t, "does not exist (create it", spec(t, "assemble"), args("src", dir+"/parts", "dest", dir+"/no/x"),
			o)
		moduletest.Fails(t, "is not valid", spec(t, "assemble"), args("src", dir+"/parts", "dest", dest, "regexp", "("), o)
	})
}

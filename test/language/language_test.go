package language

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/shlex"
	"golang.org/x/tools/txtar"

	"kubekey/pkg/cli"
)

// testCase is a txtar archive. The lines before its first file say what is
// expected; each begins with a word:
//
//	args   further arguments of `kk run site.yml`; `exec` instead gives the whole command line
//	exit   the exit code, default 0
//	out    a regular expression that standard output matches, line by line
//	no     one that it does not match
//	err    one that standard error matches
//	noerr  one that it does not match
//	#      a comment
//
// A file "stdout" is the whole standard output. Without a file "hosts" or an
// -i in args the hosts are h1, h2 and h3; all are this machine.
type testCase struct {
	args                []string
	exec                []string
	exit                int
	out, no, err, noerr []string
	files               []txtar.File
}

func parse(t *testing.T, path string) *testCase {
	t.Helper()
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &testCase{files: a.Files}
	for _, line := range strings.Split(string(a.Comment), "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch strings.TrimSuffix(word, ":") {
		case "", "#":
		case "args":
			c.args = words(t, rest)
		case "exec":
			c.exec = words(t, rest)
		case "exit":
			if c.exit, err = strconv.Atoi(rest); err != nil {
				t.Fatal(err)
			}
		case "out":
			c.out = append(c.out, rest)
		case "no":
			c.no = append(c.no, rest)
		case "err":
			c.err = append(c.err, rest)
		case "noerr":
			c.noerr = append(c.noerr, rest)
		default:
			t.Fatalf("%s: unknown word %q", path, word)
		}
	}
	return c
}

func words(t *testing.T, s string) []string {
	t.Helper()
	out, err := shlex.Split(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *testCase) has(name string) bool {
	for _, f := range c.files {
		if f.Name == name || strings.HasPrefix(f.Name, name+"/") {
			return true
		}
	}
	return false
}

func (c *testCase) command() []string {
	if len(c.exec) > 0 {
		return c.exec
	}
	out := append([]string{"run", "site.yml", "--connection", "local"}, c.args...)
	for _, a := range c.args {
		if a == "-i" {
			return out
		}
	}
	if c.has("hosts") {
		return append(out, "-i", "hosts")
	}
	return append(out, "-i", "h1,h2,h3,")
}

func TestLanguage(t *testing.T) {
	root, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".txt" {
			return err
		}
		name, _ := filepath.Rel(root, strings.TrimSuffix(path, ".txt"))
		t.Run(name, func(t *testing.T) { run(t, path) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, path string) {
	c := parse(t, path)
	dir := t.TempDir()
	for _, f := range c.files {
		write(t, filepath.Join(dir, f.Name), f.Data)
	}
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("KK_WORKDIR", filepath.Join(dir, "work"))
	var out, errs bytes.Buffer
	code := cli.Main(context.Background(), c.command(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, nil)
	if code != c.exit {
		t.Errorf("exit %d, want %d", code, c.exit)
	}
	stdout, stderr := plain(out.String(), dir), plain(errs.String(), dir)
	expect(t, "standard output", stdout, c.out, true)
	expect(t, "standard output", stdout, c.no, false)
	expect(t, "standard error", stderr, c.err, true)
	expect(t, "standard error", stderr, c.noerr, false)
	for _, f := range c.files {
		if f.Name == "stdout" {
			if diff := cmp.Diff(strings.TrimRight(string(f.Data), "\n"), strings.TrimRight(stdout, "\n")); diff != "" {
				t.Errorf("standard output (-want +got):\n%s", diff)
			}
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", stdout, stderr)
	}
}

// plain replaces the case's folder by DIR.
func plain(text, dir string) string { return strings.ReplaceAll(text, dir, "DIR") }

func expect(t *testing.T, what, text string, patterns []string, want bool) {
	t.Helper()
	for _, p := range patterns {
		re, err := regexp.Compile("(?m)" + p)
		if err != nil {
			t.Fatal(err)
		}
		if re.MatchString(text) != want {
			t.Errorf("%s: match of %q is not %v", what, p, want)
		}
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	mode := os.FileMode(0o644)
	if bytes.HasPrefix(data, []byte("#!")) {
		mode = 0o755
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

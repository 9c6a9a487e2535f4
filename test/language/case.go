package language

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/shlex"
	"golang.org/x/tools/txtar"
)

// Case is a txtar archive. It begins with comments that say which rows of
// rows.yaml it shows, and how:
//
//	# play/order, inventory/patterns: what it shows of them
//
// The lines up to its first file say what is expected; each begins with a word:
//
//	args   further arguments of `kk run site.yml`; `exec` instead gives the whole command line
//	exit   the exit code, default 0
//	out    a regular expression that standard output matches, line by line
//	no     one that it does not match
//	err    one that standard error matches
//	noerr  one that it does not match
//	ssh    the case runs on hosts over SSH, too; its hosts are h1, h2 and h3. "ssh only" is for there alone
//	peer   it is the same with Ansible, as far as exit code and standard output are asked for
//	#      a comment
//
// A file "stdout" is the whole standard output. Without a file "hosts" or an
// -i in args the hosts are h1, h2 and h3; all are this machine, unless the case
// runs over SSH.
type Case struct {
	SSH, OnlySSH, Peer bool

	rows                []string
	args                []string
	exec                []string
	exit                int
	out, no, err, noerr []string
	files               []txtar.File
}

// Cases is the files of all cases below a folder testdata, by their names.
func Cases(testdata string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(testdata, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".txt" {
			name, _ := filepath.Rel(testdata, strings.TrimSuffix(path, ".txt"))
			files[name] = path
		}
		return err
	})
	return files, err
}

var rowsLine = regexp.MustCompile(`^# ([a-z]+/[\w-]+(?:, [a-z]+/[\w-]+)*): \S`)

// Read reads a case.
func Read(path string) (*Case, error) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		return nil, err
	}
	c := &Case{files: a.Files}
	for _, line := range strings.Split(string(a.Comment), "\n") {
		if m := rowsLine.FindStringSubmatch(line); m != nil {
			c.rows = append(c.rows, strings.Split(m[1], ", ")...)
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err := c.expect(strings.TrimSuffix(word, ":"), strings.TrimSpace(rest)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return c, nil
}

func (c *Case) expect(word, rest string) (err error) {
	switch word {
	case "", "#":
	case "args":
		c.args, err = shlex.Split(rest)
	case "exec":
		c.exec, err = shlex.Split(rest)
	case "exit":
		c.exit, err = strconv.Atoi(rest)
	case "out":
		c.out = append(c.out, rest)
	case "no":
		c.no = append(c.no, rest)
	case "err":
		c.err = append(c.err, rest)
	case "noerr":
		c.noerr = append(c.noerr, rest)
	case "ssh":
		c.SSH, c.OnlySSH = true, rest == "only"
	case "peer":
		c.Peer = true
	default:
		return fmt.Errorf("unknown word %q", word)
	}
	return err
}

func (c *Case) has(name string) bool {
	return slices.ContainsFunc(c.files, func(f txtar.File) bool {
		return f.Name == name || strings.HasPrefix(f.Name, name+"/")
	})
}

// Target is what runs cases: kk, or Ansible.
type Target struct {
	// Run runs the program with arguments in a folder.
	Run func(dir string, args ...string) (code int, stdout, stderr string)
	// Inventory says how the hosts are reached over SSH; without it they are
	// this machine.
	Inventory string
	Ansible   bool
}

// command is the arguments of the program.
func (c *Case) command(on Target) []string {
	args := c.exec
	if len(args) == 0 {
		args = slices.Concat([]string{"run", "site.yml"}, c.args, c.hosts(on.Inventory))
	}
	if on.Ansible {
		return args[1:]
	}
	return args
}

// hosts is the arguments that say which hosts there are.
func (c *Case) hosts(inventory string) []string {
	var args []string
	switch {
	case slices.Contains(c.args, "-i"):
	case c.has("hosts"):
		args = []string{"-i", "hosts"}
	default:
		args = []string{"-i", "h1,h2,h3,"}
	}
	if inventory == "" {
		return append(args, "--connection", "local")
	}
	return append(args, "-i", inventory)
}

// Run runs the case in a folder of its own.
func (c *Case) Run(t *testing.T, on Target) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range c.files {
		write(t, filepath.Join(dir, f.Name), f.Data)
	}
	code, stdout, stderr := on.Run(dir, c.command(on)...)
	if code != c.exit {
		t.Errorf("exit %d, want %d", code, c.exit)
	}
	stdout, stderr = strings.ReplaceAll(stdout, dir, "DIR"), strings.ReplaceAll(stderr, dir, "DIR")
	match(t, "standard output", stdout, c.out, true)
	match(t, "standard output", stdout, c.no, false)
	if !on.Ansible {
		match(t, "standard error", stderr, c.err, true)
		match(t, "standard error", stderr, c.noerr, false)
		c.whole(t, stdout)
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", stdout, stderr)
	}
}

// whole compares standard output with the case's file of that name.
func (c *Case) whole(t *testing.T, stdout string) {
	t.Helper()
	for _, f := range c.files {
		if f.Name != "stdout" {
			continue
		}
		if diff := cmp.Diff(strings.TrimRight(string(f.Data), "\n"), strings.TrimRight(stdout, "\n")); diff != "" {
			t.Errorf("standard output (-want +got):\n%s", diff)
		}
	}
}

func match(t *testing.T, what, text string, patterns []string, want bool) {
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

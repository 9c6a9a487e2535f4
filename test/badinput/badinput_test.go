package badinput

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"kubekey/builtin"
	"kubekey/pkg/cli"
)

var update = flag.Bool("update", false, "write what kk says into the cases")

// guard runs before the broken playbook of a case: it must not come to that,
// since everything is checked before anything runs.
const guard = "- hosts: localhost\n  gather_facts: false\n  tasks:\n    - command: touch touched\n"

// header is what stands above the files of a case.
type header struct {
	args []string // default: run guard.yml site.yml
	exit int      // default: 4
}

func TestCases(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatal("no cases", err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range cases {
		path := filepath.Join(here, name)
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { runCase(t, path) })
	}
}

func runCase(t *testing.T, path string) {
	ar, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := parseHeader(string(ar.Comment))
	if err != nil {
		t.Fatal(err)
	}
	want, last := "", len(ar.Files)-1
	if last >= 0 && ar.Files[last].Name == "want" {
		want, ar.Files = string(ar.Files[last].Data), ar.Files[:last]
	}
	files := map[string]string{}
	for _, f := range ar.Files {
		files[f.Name] = string(f.Data)
	}
	code, said := runKK(t, files, h.args)
	if code != h.exit {
		t.Errorf("exit %d, want %d", code, h.exit)
	}
	if *update {
		ar.Files = append(ar.Files, txtar.File{Name: "want", Data: []byte(said)})
		if err := os.WriteFile(path, txtar.Format(ar), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("what kk says (-want +got):\n%s", diff)
	}
}

func parseHeader(text string) (header, error) {
	h := header{args: []string{"run", "guard.yml", "site.yml"}, exit: 4}
	for _, line := range strings.Split(text, "\n") {
		key, v, _ := strings.Cut(line, ": ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case key == "args":
			h.args = strings.Fields(v)
		case key == "exit":
			n, err := strconv.Atoi(v)
			if err != nil {
				return h, err
			}
			h.exit = n
		default:
			return h, fmt.Errorf("header line %q: want args:, exit: or a comment", line)
		}
	}
	return h, nil
}

// runKK writes the files to a folder, runs kk there, and returns its exit code
// and what it wrote to standard error. No task may have run.
func runKK(t *testing.T, files map[string]string, args []string) (code int, said string) {
	t.Helper()
	temp := t.TempDir()
	dir := filepath.Join(temp, "work")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("HOME", filepath.Join(dir, ".home"))
	t.Setenv("KK_WORKDIR", filepath.Join(dir, ".kk"))
	t.Setenv("ANSIBLE_ROLES_PATH", filepath.Join(dir, "no-roles"))
	t.Setenv("NO_COLOR", "1")
	write(t, "guard.yml", guard)
	for name, text := range files {
		write(t, name, text)
	}
	var out, errs bytes.Buffer
	code = cli.Main(context.Background(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs},
		builtin.FS())
	if _, err := os.Stat("touched"); err == nil {
		t.Error("a task ran, though the input is bad")
	}
	if out.Len() > 0 && code == 4 {
		t.Errorf("standard output should be empty, has: %s", &out)
	}
	return code, strings.ReplaceAll(errs.String(), temp, "$TMP")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

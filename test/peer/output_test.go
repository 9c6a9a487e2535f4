package peer

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kubekey/test/lab"

	"github.com/google/go-cmp/cmp"
	"github.com/google/shlex"
	"golang.org/x/tools/txtar"
)

// outputCase is a txtar archive of testdata/output. The lines before its first
// file are comments, and "args ...": the arguments of one more comparison.
type outputCase struct {
	args  [][]string
	files []txtar.File
}

// TestOutputIsThatOfAnsible compares what is printed, byte by byte but for
// what depends on the time, on the interpreter and on the order of a Python set.
func TestOutputIsThatOfAnsible(t *testing.T) {
	ansible, kk := programs(t)
	known := newMemory(t, ansible, here(t))
	cases, err := filepath.Glob("testdata/output/*.txt")
	if err != nil || len(cases) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range cases {
		c := readOutputCase(t, file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range c.args {
			name := strings.TrimSuffix(filepath.Base(file), ".txt") + " " + strings.Join(args, " ")
			t.Run(name, func(t *testing.T) {
				theirs := known.said(t, func() printed { return c.print(t, ansible.name, append([]string{"-f", "1"}, args...)) },
					"output", string(text), name)
				ours := c.print(t, kk.name, append([]string{"run", "-o", "ansible", "-f", "1"}, args...))
				if theirs.Code != ours.Code {
					t.Errorf("exit code %d here, %d in Ansible", ours.Code, theirs.Code)
				}
				if diff := cmp.Diff(comparable(theirs.Out), comparable(ours.Out)); diff != "" {
					t.Errorf("-ansible +kk\n%s", diff)
				}
			})
		}
	}
}

func buildKK(t *testing.T) string {
	t.Helper()
	kk := filepath.Join(t.TempDir(), "kk")
	if err := lab.BuildKK(kk); err != nil {
		t.Fatal(err)
	}
	return kk
}

func readOutputCase(t *testing.T, file string) outputCase {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := outputCase{files: a.Files}
	for _, line := range strings.Split(string(a.Comment), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "", "#":
		case "args":
			args, err := shlex.Split(rest)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			c.args = append(c.args, args)
		default:
			t.Fatalf("%s: unknown word %q", file, word)
		}
	}
	if len(c.args) == 0 {
		c.args = [][]string{{}}
	}
	return c
}

// print runs a program on the case.
func (c outputCase) print(t *testing.T, program string, args []string) printed {
	t.Helper()
	dir := t.TempDir()
	var input []byte
	for _, f := range c.files {
		if f.Name == "stdin" {
			input = f.Data
			continue
		}
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, append(args, "-i", "hosts", "site.yml")...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
	cmd.Env = append(os.Environ(), "HOME="+dir, "ANSIBLE_REMOTE_TMP="+filepath.Join(dir, "remote"), "ANSIBLE_LOCAL_TEMP="+
		filepath.Join(dir, "local"), "ANSIBLE_ASYNC_DIR="+filepath.Join(dir, "async"),
		"ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3", "ANSIBLE_NOCOLOR=true", "KK_WORKDIR="+filepath.Join(dir, "kk"))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if t.Failed() || cmd.ProcessState.ExitCode() > 4 {
		t.Logf("%s: %s", filepath.Base(program), errs.String())
	}
	return printed{Code: cmd.ProcessState.ExitCode(), Out: strings.ReplaceAll(out.String(), dir, "DIR")}
}

// Of what is printed only this may differ.
var (
	config = regexp.MustCompile(`(?m)^(Using .* as config file|No config file found; using defaults)\n`)
	stamps = regexp.MustCompile(`"(delta|start|end|ansible_job_id|results_file)": "[^"]*"|jid=\S+`)
	// newer than the Ansible that is compared with
	condition = regexp.MustCompile(`"false_condition": "[^"]*", `)
	polls     = regexp.MustCompile(`(?m)(^ASYNC POLL on \S+: .*\n)+`)         // how many there are depends on the time
	hosts     = regexp.MustCompile(`(?m)(    hosts \(\d+\):)((\n      .*)+)`) // in no order
)

func comparable(text string) []string {
	text = config.ReplaceAllString(text, "")
	text = condition.ReplaceAllString(text, "")
	text = stamps.ReplaceAllString(text, "STAMP")
	text = polls.ReplaceAllString(text, "ASYNC POLL\n")
	text = hosts.ReplaceAllStringFunc(text, func(s string) string {
		lines := strings.Split(s, "\n")
		slices.Sort(lines[1:])
		return strings.Join(lines, "\n")
	})
	return strings.Split(text, "\n")
}

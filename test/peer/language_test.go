package peer

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/test/language"
)

// TestLanguageIsThatOfAnsible runs the cases of test/language that say so with
// ansible-playbook: what kk is held to there is what Ansible does.
func TestLanguageIsThatOfAnsible(t *testing.T) {
	ansible, _ := programs(t)
	known := newMemory(t, ansible, here(t))
	files, err := language.Cases("../language/testdata")
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range files {
		c, err := language.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		ok, err := filepath.Match(*pattern, filepath.Base(name))
		if err != nil {
			t.Fatal(err)
		}
		if !c.Peer || !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c.Run(t, language.Target{Ansible: true, Run: func(dir string, args ...string) (int, string, string) {
				said := known.said(t, func() printed { return ansible.exec(t, dir, args) }, "language", string(text),
					strings.ReplaceAll(strings.Join(args, " "), dir, "DIR"))
				return said.Code, said.Out, said.Errors
			}})
		})
	}
}

// exec runs the program in a folder that is its home, too.
func (p program) exec(t *testing.T, dir string, args []string) printed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.name, append(p.args, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), p.env...), "HOME="+dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	here := strings.NewReplacer(dir, "DIR")
	return printed{cmd.ProcessState.ExitCode(), here.Replace(out.String()), here.Replace(errs.String())}
}

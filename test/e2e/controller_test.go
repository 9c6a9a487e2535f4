package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"kubekey/test/lab"
)

// binary builds kk once for all tests and returns its path.
var binary = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../bin/kk-e2e")
	if err != nil {
		return "", err
	}
	return path, lab.BuildKK(path)
})

// outcome is how a run of kk ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// exits fails the test unless kk ended with the code.
func (o outcome) exits(t *testing.T, code int) {
	t.Helper()
	if o.code != code {
		t.Fatalf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", o.code, code, o.stdout, o.stderr)
	}
}

// recap fails the test unless the host's line in the recap has the counts,
// each written as "changed=0".
func (o outcome) recap(t *testing.T, host string, counts ...string) {
	t.Helper()
	_, recap, _ := strings.Cut(o.stdout, "PLAY RECAP")
	for line := range strings.Lines(recap) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != host {
			continue
		}
		for _, count := range counts {
			if !slices.Contains(fields, count) {
				t.Errorf("recap of %s: %q, want %s", host, line, count)
			}
		}
		return
	}
	t.Errorf("%s is not in the recap\nstdout:\n%s\nstderr:\n%s", host, o.stdout, o.stderr)
}

// controller is a machine that kk runs on: a home folder whose known_hosts has
// the lab's hosts, and a working folder.
type controller struct {
	lab  *lab.Lab
	home string
	work string
}

func newController(t *testing.T) *controller {
	t.Helper()
	c := &controller{lab: needHosts(t), home: t.TempDir(), work: t.TempDir()}
	known, err := os.ReadFile(c.lab.KnownHosts())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(c.home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.home, ".ssh/known_hosts"), known, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// write makes a file in the working folder and returns its path.
func (c *controller) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(c.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// play writes a playbook and runs it on the lab's hosts.
func (c *controller) play(t *testing.T, playbook string, args ...string) outcome {
	t.Helper()
	args = append([]string{"run", c.write(t, "site.yaml", playbook), "-i", c.lab.Inventory()}, args...)
	return c.kk(t, args...)
}

// kk runs the binary in the working folder.
func (c *controller) kk(t *testing.T, args ...string) outcome {
	t.Helper()
	cmd := c.command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run kk: %v", err)
	}
	return outcome{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// command is a run of the binary that the caller starts.
func (c *controller) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = c.work
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.home}
	return cmd
}

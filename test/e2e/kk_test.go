package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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
	build := exec.Command("go", "build", "-trimpath", "-o", path, "kubekey/cmd/kk")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New("build kk: " + err.Error() + "\n" + string(out))
	}
	return path, nil
})

// outcome is how a run of kk ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// controller is a machine that kk runs on: a home folder whose known_hosts has
// the lab's hosts, and a working folder.
type controller struct {
	lab  *lab.Lab
	home string
	work string
	env  []string // beyond PATH and HOME
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

// kk runs the binary in the working folder. The first word of args is the
// command; the lab's inventory is added to it with -i.
func (c *controller) kk(t *testing.T, args ...string) outcome {
	t.Helper()
	args = append(args, "-i", c.lab.Inventory())
	return c.bare(t, args...)
}

// bare is kk without an inventory.
func (c *controller) bare(t *testing.T, args ...string) outcome {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = c.work
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.home}, c.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run kk: %v", err)
	}
	return outcome{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

package hostscript

import (
	"os"
	"os/exec"
	"testing"
)

// The reader of a script may be gone before it answers: its folder is removed all the same.
func TestScratchGoesWithoutReader(t *testing.T) {
	dir := t.TempDir()
	script := "(" + library + "\nquiet true\nsleep 0.3\nsay a 1\nsay b 2\nsleep 0.1\nsay c 3\n) | exec true; wait"
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", err, out)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 0 {
		t.Errorf("%s is still there", left[0].Name())
	}
}

package hostscript

import (
	"os"
	"os/exec"
	"testing"
)

// Who runs a script may be gone before it answers: its folder goes all the same.
func TestScratchGoesWithoutReader(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", "("+library+"\nquiet true\nsleep 0.3\nsay a 1\nsay b 2\nsleep 0.1\nsay c 3\n) | exec true; wait")
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

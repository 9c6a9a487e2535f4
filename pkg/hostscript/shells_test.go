package hostscript

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"testing"
)

// Hosts have dash, bash or busybox as their shell.
func TestScriptsAreReadByEveryShell(t *testing.T) {
	var files []string
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".sh" {
			files = append(files, name)
		}
		return err
	})
	if err != nil || len(files) < 40 {
		t.Fatalf("found %d scripts, %v", len(files), err)
	}
	for _, sh := range [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		if _, err := exec.LookPath(sh[0]); err != nil {
			t.Logf("%s is not installed here", sh[0])
			continue
		}
		for _, f := range files {
			if out, err := exec.Command(sh[0], append(sh[1:], "-n", f)...).CombinedOutput(); err != nil {
				t.Errorf("%s does not read %s: %s", sh[0], f, out)
			}
		}
	}
}

package lab

import (
	"fmt"
	"os"
	"os/exec"
)

// BuildKK builds kk as it is released, but for its version, into a file.
func BuildKK(path string) error {
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "kubekey/cmd/kk")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build kk: %w\n%s", err, out)
	}
	return nil
}

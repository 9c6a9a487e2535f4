package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// readPassword reads the first line of a file, or of what it prints when it
// is executable.
func readPassword(ctx context.Context, file string) (string, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	var text []byte
	if info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
		if text, err = exec.CommandContext(ctx, abs).Output(); err != nil {
			return "", fmt.Errorf("run the password file %s: %w", file, err)
		}
	} else if text, err = os.ReadFile(file); err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimRight(line, "\r"); line == "" {
		return "", fmt.Errorf("the password file %s has no password in its first line", file)
	}
	return line, nil
}

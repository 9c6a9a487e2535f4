package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"kubekey/pkg/source"
)

// readPassword reads the first line of a file, or of its output when the file is executable.
func (a *app) readPassword(ctx context.Context, file string) (string, error) {
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
		if text, err = a.passwordProgram(exec.Command(abs)).Output(ctx); err != nil {
			return "", fmt.Errorf("run the password file %s: %w", file, err)
		}
	} else if text, err = a.tree.Raw().Read(file, source.MaxSecret); err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimRight(line, "\r"); line == "" {
		return "", fmt.Errorf("the password file %s has no password on its first line", file)
	}
	return line, nil
}

// passwordProgram returns a program that prints a password. It has no time limit if standard input is a terminal,
// because it may prompt the user.
func (a *app) passwordProgram(cmd *exec.Cmd) source.Program {
	p := source.Program{Cmd: cmd, Max: source.MaxSecret}
	if !isTerminal(a.In) {
		p.Limit = a.inputLimit()
	}
	return p
}

// inputLimit is the time limit of programs whose output kk reads as input.
func (a *app) inputLimit() time.Duration { return time.Duration(a.settings.InputTimeout) * time.Second }

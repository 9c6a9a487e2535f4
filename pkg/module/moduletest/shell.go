package moduletest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"

	"kubekey/pkg/connector"
)

// Shell is a connector to this machine's /bin/sh.
func Shell() connector.Connector { return ShellOf("/bin/sh") }

// ShellOf is a connector to another POSIX shell of this machine, given with
// its arguments before -c: ShellOf("busybox", "sh").
func ShellOf(argv ...string) connector.Connector { return localShell{argv} }

type localShell struct{ argv []string }

func (s localShell) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	args := append(append([]string{}, s.argv[1:]...), "-c", c.Line)
	cmd := exec.CommandContext(ctx, s.argv[0], args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.Env = os.Environ()
	for k, v := range c.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if ctx.Err() != nil {
		return connector.Exit{}, ctx.Err()
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return connector.Exit{}, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return connector.Exit{Code: 128 + int(status.Signal()), Signal: status.Signal().String()}, nil
	}
	return connector.Exit{Code: exit.ExitCode()}, nil
}

func (localShell) Close() error { return nil }

// Package local runs commands on the machine that kk itself runs on.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"kubekey/pkg/connector"
)

// grace is the time between TERM and KILL for a cancelled command, and how long children
// of an exited command can keep its outputs open.
const grace = 2 * time.Second

// Host is the local machine. The zero value is ready; use New.
type Host struct{}

// New returns the connector of the local machine.
func New() *Host { return &Host{} }

var _ connector.Connector = (*Host)(nil)

// Close does nothing: there is no connection.
func (*Host) Close() error { return nil }

// Run implements connector.Connector. The command has a process group of its
// own; cancelling ctx sends it TERM, and KILL two seconds later.
func (*Host) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	if err := ctx.Err(); err != nil {
		return connector.Exit{}, err
	}
	line, stdin, err := connector.WithEnv(c)
	if err != nil {
		return connector.Exit{}, err
	}
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = grace
	if c.TTY {
		return runTTY(ctx, cmd, c)
	}
	if err := start(cmd, stdin); err != nil {
		return connector.Exit{}, fmt.Errorf("start /bin/sh: %w", err)
	}
	return wait(ctx, cmd)
}

// start starts the command. Waiting for its exit does not wait for pending input.
func start(cmd *exec.Cmd, stdin io.Reader) error {
	if stdin == nil {
		return cmd.Start()
	}
	cmd.Stdin = nil
	to, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		// A command that stops reading its input has not failed.
		_, _ = io.Copy(to, stdin)
		_ = to.Close()
	}()
	return nil
}

// wait waits for the command to exit, or kills its process group when ctx ends.
func wait(ctx context.Context, cmd *exec.Cmd) (connector.Exit, error) {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return exitOf(err)
	case <-ctx.Done():
	}
	killGroup(cmd.Process.Pid)
	<-done
	return connector.Exit{}, ctx.Err()
}

// killGroup sends TERM to a process group, and KILL to what remains of it after the grace
// period.
func killGroup(pgid int) {
	// A group that no longer exists is the desired result, and one of another user is killed
	// by Become: neither is an error here.
	_ = syscall.Kill(-pgid, syscall.SIGTERM)
	const step = 20 * time.Millisecond
	for waited := time.Duration(0); waited < grace; waited += step {
		if errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) {
			return
		}
		time.Sleep(step)
	}
	_ = syscall.Kill(-pgid, syscall.SIGKILL)
}

func exitOf(err error) (connector.Exit, error) {
	var failed *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		// ErrWaitDelay: the command succeeded and left a child that keeps its outputs open.
		return connector.Exit{}, nil
	case !errors.As(err, &failed):
		return connector.Exit{}, fmt.Errorf("run /bin/sh: %w", err)
	}
	status, ok := failed.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return connector.Exit{Code: 128 + int(status.Signal()), Signal: signalName(status.Signal())}, nil
	}
	return connector.Exit{Code: failed.ExitCode()}, nil
}

// signalName is the name of a signal without SIG, "" for an unusual one.
func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGHUP:
		return "HUP"
	case syscall.SIGINT:
		return "INT"
	case syscall.SIGQUIT:
		return "QUIT"
	case syscall.SIGABRT:
		return "ABRT"
	case syscall.SIGKILL:
		return "KILL"
	case syscall.SIGSEGV:
		return "SEGV"
	case syscall.SIGPIPE:
		return "PIPE"
	case syscall.SIGALRM:
		return "ALRM"
	case syscall.SIGTERM:
		return "TERM"
	}
	return fmt.Sprintf("%d", int(s))
}

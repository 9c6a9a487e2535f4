package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Program is a program on the control node whose output is an input of kk.
type Program struct {
	Cmd *exec.Cmd // without a context; standard error is captured if it is not set
	Max int       // maximum size of the output in bytes
	// Limit is the time limit; 0 means none.
	Limit time.Duration
}

// ProgramError reports a program that failed to print its output.
type ProgramError struct {
	Err    error
	Stderr string // only the beginning
}

func (e *ProgramError) Error() string { return e.Err.Error() }

func (e *ProgramError) Unwrap() error { return e.Err }

// maxComplaint is the maximum size of captured standard error in bytes.
const maxComplaint = 64 << 10

// Output runs the program and returns its output. If it prints too much, takes too long, or ctx ends, it is killed
// together with its child processes.
func (p Program) Output(ctx context.Context) ([]byte, error) {
	if p.Limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, p.Limit,
			fmt.Errorf("it did not end within %s", p.Limit))
		defer cancel()
		ctx = limited
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	out := &bounded{max: p.Max, full: func() { fail(printed(p.Max)) }}
	complaint := &bounded{max: maxComplaint, full: func() {}}
	p.Cmd.Stdout = out
	if p.Cmd.Stderr == nil {
		p.Cmd.Stderr = complaint
	}
	err := runGroup(ctx, p.Cmd)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, &ProgramError{Err: err, Stderr: strings.TrimSpace(string(complaint.kept))}
	}
	return out.kept, nil
}

func printed(max int) error { return fmt.Errorf("it printed more than %d MiB", max>>20) }

// bounded keeps the beginning of the data, and calls full if there is more.
type bounded struct {
	kept []byte
	max  int
	full func()
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.max-len(b.kept))
	b.kept = append(b.kept, p[:n]...)
	if n < len(p) {
		b.full()
	}
	return len(p), nil
}

// runGroup runs a command in its own process group, which is killed when ctx ends. A command with a terminal stays
// in kk's process group: from another group it cannot prompt, and the terminal's interrupt reaches it anyway.
func runGroup(ctx context.Context, cmd *exec.Cmd) error {
	alone := !hasTerminal()
	if alone {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	cmd.WaitDelay = time.Second
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		pid := cmd.Process.Pid
		if alone {
			pid = -pid
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may already have exited
		err = <-done
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // it succeeded, but a child still has its output open
	}
	return err
}

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

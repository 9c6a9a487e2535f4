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

// Program is a program of the control node that prints an input.
type Program struct {
	Cmd *exec.Cmd // without a context; standard error is kept when it goes nowhere
	Max int       // the most bytes that it may print
	// Limit is how long it may take; 0 is as long as it wants.
	Limit time.Duration
}

// ProgramError is a program that did not print what was asked of it.
type ProgramError struct {
	Err    error
	Stderr string // the beginning of it
}

func (e *ProgramError) Error() string { return e.Err.Error() }

func (e *ProgramError) Unwrap() error { return e.Err }

// maxComplaint bounds what is kept of standard error.
const maxComplaint = 64 << 10

// Output runs the program and returns what it printed. When it prints too much,
// takes too long, or ctx ends, it is ended with all that it started.
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

// bounded keeps the beginning of what is written, and calls full when there is more.
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

// runGroup runs a command in a process group of its own, which ends with ctx. A
// command with a terminal stays in kk's group: another one could not ask there,
// and the terminal's interrupt reaches it anyway.
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
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		err = <-done
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // it ended well, and left a child that holds its output
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

package connector

import (
	"context"
	"fmt"
	"sync"
)

// Limits on the output of kk's own commands, which is kept in memory as a whole. A broken
// or malicious host may print without end.
const (
	MaxAnswer = 16 << 20
	// MaxLargeAnswer is for answers with content of the host: a file, objects of a cluster.
	MaxLargeAnswer = 96 << 20
)

// maxComplaint is how many bytes of the end of an error output are kept.
const maxComplaint = 32 << 10

// Output is what a command printed, and its exit status.
type Output struct {
	Exit
	Stdout []byte
	Stderr string // only the end of a long one
}

// TooMuchError reports that a host's answer exceeded the limit.
type TooMuchError struct{ Max int }

func (e *TooMuchError) Error() string {
	return fmt.Sprintf("the host's answer is larger than %d MiB", e.Max>>20)
}

// Collect runs one of kk's own commands and returns what it printed. A command that prints
// more than most bytes is killed, and the error is a *TooMuchError. Collect sets both outputs of cmd.
func Collect(ctx context.Context, c Connector, cmd Command, most int) (Output, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, errs := &answer{most: most, stop: cancel}, &tail{max: maxComplaint}
	cmd.Stdout, cmd.Stderr = out, errs
	exit, err := c.Run(ctx, cmd)
	text, over := out.text()
	if over {
		return Output{}, &TooMuchError{most}
	}
	return Output{Exit: exit, Stdout: text, Stderr: string(errs.text)}, err
}

// answer keeps an output up to a limit, and stops the command beyond it.
type answer struct {
	most int
	stop func()

	mu   sync.Mutex // a command that is being killed may still print
	got  []byte
	over bool
}

func (a *answer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over = a.over || len(a.got)+len(p) > a.most; a.over {
		a.got = nil
		a.stop()
		return len(p), nil
	}
	a.got = append(a.got, p...)
	return len(p), nil
}

func (a *answer) text() (text []byte, over bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.got, a.over
}

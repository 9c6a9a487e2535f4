package connector

import (
	"context"
	"fmt"
	"sync"
)

// The most that a command of kk's own may answer: its output is held in memory as a
// whole. A host that is not what it should be may print without end.
const (
	MaxAnswer = 16 << 20
	// MaxLargeAnswer is for answers that may hold what the host keeps: a file, objects of a cluster.
	MaxLargeAnswer = 96 << 20
)

// maxComplaint is how much of the end of an error output is kept.
const maxComplaint = 32 << 10

// Output is what a command printed, and how it ended.
type Output struct {
	Exit
	Stdout []byte
	Stderr string // its end, where it is very long
}

// TooMuchError says that a host answered more than is held.
type TooMuchError struct{ Max int }

func (e *TooMuchError) Error() string {
	return fmt.Sprintf("the answer of the host is larger than %d MiB", e.Max>>20)
}

// Collect runs a command of kk's own, and returns what it printed. One that prints more
// than most is ended, and the error is a *TooMuchError. It sets both outputs of cmd.
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

// answer keeps an output up to a bound, and stops the command beyond it.
type answer struct {
	most int
	stop func()

	mu   sync.Mutex // a command that is ended may print still
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

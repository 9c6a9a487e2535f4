package module

import (
	"context"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/value"
)

// ResultOf creates a result from a script's answer: whether it changed the host, its message and its warnings. The
// pairs become the data.
func ResultOf(a hostscript.Answer, pairs ...any) Result {
	return Result{Changed: a.Changed(), Msg: a.Get("msg"), Warnings: a["warn"], Data: value.NewDict(pairs...)}
}

// Do runs a script that does a module's work, and creates the result from its answer. If the script fails, the
// result is empty, and the answer contains what was received before the failure.
func (c *Call) Do(ctx context.Context, s *hostscript.Script, pairs ...any) (Result, hostscript.Answer, error) {
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return Result{}, a, err
	}
	return ResultOf(a, pairs...), a, nil
}

// Probe runs a script that only reads.
func (c *Call) Probe(ctx context.Context, s *hostscript.Script) (hostscript.Answer, error) {
	s.Probe = true
	return s.Run(ctx, c.Conn, c.Check)
}

// Act runs the script that makes the changes of a result, with a text on its standard input. It does nothing if
// there are no changes, or in check mode. If the script keeps a backup, its path is added to the result.
func (c *Call) Act(ctx context.Context, r Result, s *hostscript.Script, text string) (Result, error) {
	if !r.Changed || c.Check {
		return r, nil
	}
	s.Stdin = strings.NewReader(text)
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err == nil && a.Has("backup") {
		r.Data.Set("backup_file", a.Get("backup"))
	}
	return r, err
}

// Show adds the difference between two states to a result with changes, if the call asks for a diff. The states are
// Dicts or texts.
func (c *Call) Show(r *Result, header string, before, after any) {
	if c.Diff && r.Changed {
		r.Diff = []event.Diff{{BeforeHeader: header, AfterHeader: header, Before: before, After: after}}
	}
}

// ShowStates is Show for states with one key each: key, before, after, and so on. Keys that the task does not set
// are skipped: their after is "" or a nil pointer.
func (c *Call) ShowStates(r *Result, header string, states ...any) {
	before, after := value.NewDict(), value.NewDict()
	for i := 0; i < len(states); i += 3 {
		want := states[i+2]
		if p, ok := want.(*bool); ok && p != nil {
			want = *p
		} else if ok || want == "" {
			continue
		}
		before.Set(states[i], states[i+1])
		after.Set(states[i], want)
	}
	c.Show(r, header, before, after)
}

// Printouts returns the exit status and the output of a program, from answers named rc, stdout and stderr.
func Printouts(a hostscript.Answer) *value.Dict {
	return value.NewDict("rc", a.Number("rc"), "stdout", Printed(a.Get("stdout")), "stderr", Printed(a.Get("stderr")))
}

// Lines splits a text into lines without their line breaks.
func Lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// JoinLines is the counterpart of Lines.
func JoinLines(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}

// Printed returns the output of a program with the final line break that $(...) removed.
func Printed(text string) string { return JoinLines(Lines(text)) }

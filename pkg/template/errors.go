package template

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flosch/pongo2/v6"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
)

// renderError is a failed rendering with its position. errors.As finds the *source.Diagnostic and everything in the
// cause's chain.
type renderError struct {
	diag  *source.Diagnostic
	cause error
	run   *run // the rendering that failed; nil for a pure expression
}

func (e *renderError) Error() string { return e.diag.Error() }

// Unwrap returns the diagnostic and the cause.
func (e *renderError) Unwrap() []error { return []error{e.diag, e.cause} }

// locate adds a position to err, unless the error already has a position in r. An error from another rendering (of
// a variable that this one reads) is a cause like any other: both positions are reported.
func locate(err error, at source.Pos, r *run) error {
	var inner *renderError
	if r != nil && errors.As(err, &inner) && inner.run == r {
		return inner
	}
	d := diagnose(err, at)
	if r != nil {
		d.Trace = append(d.Trace, trace(r.chain)...)
	}
	return &renderError{d, err, r}
}

// maxTrace limits the steps that an error shows from either end of its chain.
const maxTrace = 5

// trace returns the chain from the nearest step outwards, without the middle of a long chain.
func trace(chain []source.Frame) []source.Frame {
	out := slices.Clone(chain)
	slices.Reverse(out)
	if hidden := len(out) - 2*maxTrace; hidden > 0 {
		gap := source.Frame{What: fmt.Sprintf("%d more", hidden)}
		out = slices.Concat(out[:maxTrace], []source.Frame{gap}, out[len(out)-maxTrace:])
	}
	return out
}

// diagnose makes a new diagnostic from err. Those in err are not changed, since they can be shared.
func diagnose(err error, at source.Pos) *source.Diagnostic {
	var failed *expr.Error
	var known *source.Diagnostic
	switch {
	case errors.As(err, &failed):
		d := failed.Diagnostic()
		if !d.Pos.IsValid() {
			d.Pos = at
		}
		return d
	case errors.As(err, &known):
		d := *known
		d.Trace = slices.Clone(known.Trace)
		return &d
	case errors.Is(err, context.Canceled):
		return source.Errorf(at, "rendering was cancelled")
	}
	return source.Errorf(at, "%s", err.Error())
}

// unwrapPongo unwraps our error from pongo2's.
func unwrapPongo(err error) error {
	var p *pongo2.Error
	if errors.As(err, &p) && p.OrigError != nil {
		return p.OrigError
	}
	return err
}

// control is the error that break and continue use to reach their loop.
type control struct{ name string }

func (c *control) Error() string { return c.name + " outside a loop" }

// errMissing reports a template that none of the folders contains.
type errMissing struct {
	names []string
	dirs  []string
}

func (e *errMissing) Error() string {
	msg := "template " + quoteNames(e.names) + " not found"
	if len(e.dirs) == 0 {
		return msg
	}
	return msg + " in " + joinList(e.dirs)
}

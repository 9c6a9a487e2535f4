package template

import (
	"context"
	"errors"
	"slices"

	"github.com/flosch/pongo2/v6"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
)

// renderError is a failed rendering at its place. errors.As finds the
// *source.Diagnostic and everything in the cause's chain.
type renderError struct {
	diag  *source.Diagnostic
	cause error
}

func (e *renderError) Error() string { return e.diag.Error() }

// Unwrap returns the diagnostic and the cause.
func (e *renderError) Unwrap() []error { return []error{e.diag, e.cause} }

// locate places err at a position, unless it says itself where it happened.
func locate(err error, at source.Pos, chain []source.Frame) error {
	var inner *renderError
	if errors.As(err, &inner) {
		return inner
	}
	d := diagnose(err, at)
	d.Trace = slices.Clone(chain)
	slices.Reverse(d.Trace)
	return &renderError{d, err}
}

// diagnose makes a fresh diagnostic of err: those in it may be shared.
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
		return &d
	case errors.Is(err, context.Canceled):
		return source.Errorf(at, "rendering was cancelled")
	}
	return source.Errorf(at, "%s", err.Error())
}

// unwrapPongo takes our error out of pongo2's wrapping.
func unwrapPongo(err error) error {
	var p *pongo2.Error
	if errors.As(err, &p) && p.OrigError != nil {
		return p.OrigError
	}
	return err
}

// control is how break and continue travel to their loop.
type control struct{ name string }

func (c *control) Error() string { return c.name + " outside a loop" }

// errMissing is a template that is in none of the folders.
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

package expr

import (
	"errors"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Error is a failed evaluation with the position of the operand that failed. errors.As finds a *value.Undefined in
// it when a name was undefined.
type Error struct {
	Pos    source.Pos // can be the zero Pos
	Width  int        // runes of the failing operand on its line
	Source string     // the whole expression
	Err    error
}

// Error returns "file:line:col: message", or only the message when the expression has no file.
func (e *Error) Error() string {
	if at := e.Pos.String(); at != "" {
		return at + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Diagnostic returns the error as a diagnostic for users, with its hint as a separate field.
func (e *Error) Diagnostic() *source.Diagnostic {
	d := source.Errorf(e.Pos, "%s", e.Err.Error())
	d.Width = e.Width
	if u, ok := e.Err.(*value.Undefined); ok && u.Hint != "" {
		bare := *u
		bare.Hint = ""
		d.Summary, d.Help = bare.Error(), u.Hint
	}
	return d
}

// asUndefined returns the *value.Undefined in an error chain, nil when there is none.
func asUndefined(err error) *value.Undefined {
	var u *value.Undefined
	if errors.As(err, &u) {
		return u
	}
	return nil
}

// advance returns the position of byte offset off in src, whose first rune is at the position at.
func advance(at source.Pos, src string, off int) source.Pos {
	return source.Advance(at, src, off)
}

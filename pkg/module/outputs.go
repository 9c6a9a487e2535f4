package module

import (
	"io"

	"kubekey/pkg/redact"
)

// DefaultKeep is the default of Outputs.Keep.
const DefaultKeep = 1 << 20

// Outputs limits how much output of a command is kept in a result, and stores longer
// output elsewhere.
type Outputs struct {
	Keep    int // bytes of both outputs together; 0 is DefaultKeep
	Secrets *redact.Set
	// Open creates storage for an output, "stdout" or "stderr"; nil where there is none.
	Open func(stream string) Overflow
	Why  string // why there is none
}

// Overflow gets the whole of an output that a result holds the end of.
type Overflow interface {
	// Write never fails: what a host prints is read even if it cannot be kept.
	io.Writer
	// End returns its path, "" for none, the number of stored bytes, and why it is incomplete.
	End() (file string, kept int64, lost error)
}

// Bound is the bound of a call's outputs.
func (c *Call) Bound() Outputs {
	b := Outputs{Why: "the run has no journal"}
	if c.Outputs != nil {
		b = *c.Outputs
	}
	if b.Keep == 0 {
		b.Keep = DefaultKeep
	}
	return b
}

package module

import (
	"io"

	"kubekey/pkg/redact"
)

// DefaultKeep is what Outputs.Keep is when nothing says otherwise.
const DefaultKeep = 1 << 20

// Outputs says how much of what a command of a playbook prints a result holds, and where
// an output goes that is longer.
type Outputs struct {
	Keep    int // bytes of both outputs together; 0 is DefaultKeep
	Secrets *redact.Set
	// Open makes a place for an output, "stdout" or "stderr"; nil where there is none.
	Open func(stream string) Overflow
	Why  string // why there is none
}

// Overflow gets the whole of an output that a result holds the end of.
type Overflow interface {
	// Write never fails: what a host prints is read even if it cannot be kept.
	io.Writer
	// End says where it is, "" for nowhere, how many bytes of it, and why not all.
	End() (file string, kept int64, lost error)
}

// Bound is the bound of a call's outputs.
func (c *Call) Bound() Outputs {
	b := Outputs{Why: "there is no journal"}
	if c.Outputs != nil {
		b = *c.Outputs
	}
	if b.Keep == 0 {
		b.Keep = DefaultKeep
	}
	return b
}

package module

import (
	"io"

	"kubekey/pkg/redact"
)

// DefaultKeep is the default of Outputs.Keep.
const DefaultKeep = 1 << 20

// Outputs limits how much output of a command is kept in a result, and stores longer output elsewhere.
type Outputs struct {
	Keep    int // bytes of both outputs together; 0 means DefaultKeep
	Secrets *redact.Set
	// Open creates storage for an output, "stdout" or "stderr". The result is nil if there is no storage.
	Open func(stream string) Overflow
	Why  string // why there is no storage
}

// Overflow stores a complete output when the result only contains its end.
type Overflow interface {
	// Write never fails: the output of a host is read even if it cannot be stored.
	io.Writer
	// End returns the path ("" for none), the number of stored bytes, and why the output is incomplete.
	End() (file string, kept int64, lost error)
}

// Bound returns the limits for the outputs of a call.
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

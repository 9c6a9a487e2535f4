// Package relay brings blobs to many hosts over the links between these hosts.
//
// The control node schedules: it knows which host has what, and decides who fetches what from whom. A blob is
// moved as a whole and is known by its digest. The package has the schedule (Plan), what carries it out (Run), and
// the control node's end of the protocol that the program on a host speaks (Session). The host's end is
// relay/agent.
package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Blob is a sequence of bytes that is known by its digest.
type Blob struct {
	Digest string `json:"digest"` // sha256: and 64 lower-case hexadecimal digits
	Size   int64  `json:"size"`   // in bytes
}

// Hex returns the digits of the digest, which are the blob's file name on a host.
func (b Blob) Hex() string { return strings.TrimPrefix(b.Digest, digestPrefix) }

const digestPrefix = "sha256:"

// Check reports what is wrong with a blob that came from elsewhere.
func (b Blob) Check() error {
	hex, ok := strings.CutPrefix(b.Digest, digestPrefix)
	if !ok || len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		return fmt.Errorf("%.80q is not sha256: and 64 lower-case hexadecimal digits", b.Digest)
	}
	if b.Size < 0 {
		return fmt.Errorf("%s: the size %d is negative", b.Digest, b.Size)
	}
	return nil
}

// Source is a host that serves blobs.
type Source struct {
	Name    string `json:"name"`    // in its certificate
	Address string `json:"address"` // IP address and port
}

// Node is a host that receives blobs, and may serve them to others.
type Node interface {
	// Has returns which of the blobs the host has, with the right bytes.
	Has(ctx context.Context, blobs []Blob) ([]bool, error)
	// Fetch makes the host fetch a blob from another one.
	Fetch(ctx context.Context, b Blob, from Source) error
	// Send sends a blob from the control node.
	Send(ctx context.Context, b Blob) error
	// Source returns where others fetch blobs from the host. Without an address
	// it takes part in nothing but Send.
	Source() Source
}

// Fault is why a transfer failed: who has to be avoided afterwards.
type Fault string

// The faults. Every error that is no *TransferError is Failing: the receiving host cannot store the blob.
const (
	NoFault     Fault = ""
	Unreachable Fault = "unreachable" // the receiving host does not reach the source
	Slow        Fault = "slow"        // less came in time than from others
	Refused     Fault = "refused"     // the source does not have the blob, or does not serve it
	Wrong       Fault = "wrong"       // the bytes do not match the digest
	Failing     Fault = "failing"     // the receiving host cannot store the blob
	Lost        Fault = "lost"        // the connection to the receiving host is gone
)

// TransferError is the failure of a transfer.
type TransferError struct {
	Fault Fault
	Text  string
}

func (e *TransferError) Error() string { return e.Text }

// faultOf returns why a transfer failed.
func faultOf(err error) Fault {
	var t *TransferError
	switch {
	case err == nil:
		return NoFault
	case errors.As(err, &t):
		return t.Fault
	}
	return Failing
}

// Member is a host of a distribution, and the blobs that it needs.
type Member struct {
	Name  string // for messages
	Zone  string // hosts of one zone are close to each other
	Blobs []Blob
}

// Options of a distribution. The zero value has defaults.
type Options struct {
	// Sends is how many hosts the control node sends to at a time; default 2.
	Sends int
	// Direct makes the control node send everything itself.
	Direct bool
	// Patience is how long a transfer may take beyond four times what others took; default 30 seconds.
	Patience time.Duration
	// Notify receives what does not go as planned. It may be nil.
	Notify func(Event)
	// Progress receives the bytes that have arrived on all hosts. It may be nil.
	Progress func(done, total int64)
}

// Event is something that did not go as planned. Hosts are known by their names.
type Event struct {
	Kind  EventKind
	Host  string // the receiving host, or the one that the event is about
	From  string // the source; empty for the control node
	Blob  Blob
	Cause string // what was reported
}

// EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	// Avoided: Host does not fetch from From anymore.
	Avoided EventKind = "avoided"
	// NoSource: nobody fetches from Host anymore.
	NoSource EventKind = "no source"
	// ServedDirectly: Host gets everything else from the control node.
	ServedDirectly EventKind = "served directly"
	// GivenUp: Host gets nothing anymore.
	GivenUp EventKind = "given up"
)

// String describes the event in a sentence.
func (e Event) String() string {
	switch e.Kind {
	case Avoided:
		return fmt.Sprintf("%s does not fetch from %s anymore: %s", e.Host, e.From, e.Cause)
	case NoSource:
		return fmt.Sprintf("no host fetches from %s anymore: %s", e.Host, e.Cause)
	case ServedDirectly:
		return fmt.Sprintf("%s is served by the control node: %s", e.Host, e.Cause)
	}
	return fmt.Sprintf("%s is given up: %s", e.Host, e.Cause)
}

package ssh

import (
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// The library buffers 2 MiB from a host before anybody reads it. Fifty hosts that print
// faster than kk can process would fill a hundred. A throttle leaves in the network what the
// readers cannot keep up with.
const (
	// throttleCredit is how many bytes may arrive ahead of those processed.
	throttleCredit = 256 << 10
	// throttleTime bounds how long reading pauses: other replies arrive on the same connection.
	throttleTime = 100 * time.Millisecond
	// throttlePoll is how long a pause lasts when no output is being processed.
	throttlePoll = 5 * time.Millisecond
)

// throttle counts the bytes that arrived on a connection and those that were processed. The
// former is more, because of protocol overhead, so the count restarts whenever no output is
// being processed: then nothing waits.
type throttle struct {
	mu     sync.Mutex
	on     bool
	credit int
	busy   int // outputs that are being processed
	turns  int // how often busy changed
}

// release enables the throttle: the connection is one that commands run on.
func (b *throttle) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.on, b.credit = true, throttleCredit
}

// begin and end enclose the processing of n bytes of an output.
func (b *throttle) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy++
	b.turns++
}

func (b *throttle) end(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy--
	b.turns++
	b.credit = min(b.credit+n, throttleCredit)
}

// came subtracts received bytes from the credit.
func (b *throttle) came(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.credit -= n
}

// wait waits while there is no credit, up to throttleTime.
func (b *throttle) wait() {
	free, turns := b.look(-1)
	if free {
		return
	}
	for begun := time.Now(); !free && time.Since(begun) < throttleTime; {
		time.Sleep(throttlePoll)
		free, turns = b.look(turns)
	}
}

func (b *throttle) look(last int) (free bool, turns int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy == 0 && b.turns == last {
		b.credit = throttleCredit
	}
	return !b.on || b.credit > 0, b.turns
}

// throttledConn is a connection with a throttle.
type throttledConn struct {
	net.Conn
	throttle *throttle
}

func (c throttledConn) Read(p []byte) (int, error) {
	c.throttle.wait()
	n, err := c.Conn.Read(p)
	c.throttle.came(n)
	return n, err
}

// throttledClient is the client of such a connection.
type throttledClient struct {
	ssh.Conn
	throttle *throttle
}

// throttleOf is the throttle of a client's connection.
func throttleOf(client *ssh.Client) *throttle {
	if c, ok := client.Conn.(throttledClient); ok {
		return c.throttle
	}
	return &throttle{}
}

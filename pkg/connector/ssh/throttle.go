package ssh

import (
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// The library lets a host send 2 MiB before anybody reads them. Fifty hosts that print faster
// than that can be dealt with would fill a hundred. A throttle leaves in the network what is
// too much for those who read.
const (
	// throttleCredit is how many bytes may come before as many were dealt with.
	throttleCredit = 256 << 10
	// throttleTime bounds how long nothing is read: answers to other things come the same way.
	throttleTime = 100 * time.Millisecond
	// throttlePoll is how long nothing happens where nobody has anything to deal with.
	throttlePoll = 5 * time.Millisecond
)

// throttle counts what came over a connection against what was dealt with of it. The former
// is more, by what the protocol adds, so the count begins anew whenever nobody deals
// with anything: then nothing waits.
type throttle struct {
	mu     sync.Mutex
	on     bool
	credit int
	busy   int // outputs that are being dealt with
	turns  int // how often busy changed
}

// release lets the throttle do its work: the connection is one that commands run on.
func (b *throttle) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.on, b.credit = true, throttleCredit
}

// begin and end enclose what is done with n bytes of an output.
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

// came takes what came off the credit.
func (b *throttle) came(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.credit -= n
}

// wait waits while there is no credit, for a while.
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

package ssh

import (
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// The library lets a host send 2 MiB before anybody reads them. Fifty hosts that print faster
// than that can be dealt with would fill a hundred. A brake leaves in the network what is
// too much for those who read.
const (
	// brakeCredit is how many bytes may come before as many were dealt with.
	brakeCredit = 256 << 10
	// brakeTime bounds how long nothing is read: answers to other things come the same way.
	brakeTime = 100 * time.Millisecond
	// brakeLook is how long nothing happens where nobody has anything to deal with.
	brakeLook = 5 * time.Millisecond
)

// brake counts what came over a connection against what was dealt with of it. The former
// is more, by what the protocol adds, so the count begins anew whenever nobody deals
// with anything: then nothing waits.
type brake struct {
	mu     sync.Mutex
	on     bool
	credit int
	busy   int // outputs that are being dealt with
	turns  int // how often busy changed
}

// release lets the brake do its work: the connection is one that commands run on.
func (b *brake) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.on, b.credit = true, brakeCredit
}

// begin and end enclose what is done with n bytes of an output.
func (b *brake) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy++
	b.turns++
}

func (b *brake) end(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy--
	b.turns++
	b.credit = min(b.credit+n, brakeCredit)
}

// came takes what came off the credit.
func (b *brake) came(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.credit -= n
}

// wait waits while there is no credit, for a while.
func (b *brake) wait() {
	free, turns := b.look(-1)
	if free {
		return
	}
	for begun := time.Now(); !free && time.Since(begun) < brakeTime; {
		time.Sleep(brakeLook)
		free, turns = b.look(turns)
	}
}

func (b *brake) look(last int) (free bool, turns int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy == 0 && b.turns == last {
		b.credit = brakeCredit
	}
	return !b.on || b.credit > 0, b.turns
}

// brakedConn is a connection with a brake.
type brakedConn struct {
	net.Conn
	brake *brake
}

func (c brakedConn) Read(p []byte) (int, error) {
	c.brake.wait()
	n, err := c.Conn.Read(p)
	c.brake.came(n)
	return n, err
}

// brakedClient is the client of such a connection.
type brakedClient struct {
	ssh.Conn
	brake *brake
}

// brakeOf is the brake of a client's connection.
func brakeOf(client *ssh.Client) *brake {
	if c, ok := client.Conn.(brakedClient); ok {
		return c.brake
	}
	return &brake{}
}

package connectortest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Turns is a TCP proxy that counts round trips. It lets the two sides send in turns: data of
// one side is held back until that side has nothing more to send. A round trip is a client's
// turn that the server answered. On a slow machine the count can be too high, never too low.
type Turns struct {
	Addr string // where it listens

	mu   sync.Mutex
	n    int
	last time.Time // when something was sent
}

// How long a side is silent before its turn ends.
const (
	clientSilence = 40 * time.Millisecond
	serverSilence = 80 * time.Millisecond
)

// TurnProxy starts a proxy to addr that counts round trips. It is stopped at the end of the test.
func TurnProxy(t testing.TB, addr string) *Turns {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Turns{Addr: l.Addr().String(), last: time.Now()}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", addr)
			if err != nil {
				near.Close()
				continue
			}
			go p.join(near, far)
		}
	}()
	return p
}

// Count returns how many round trips there were so far.
func (p *Turns) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// WaitIdle waits until both sides have been silent for some turns.
func (p *Turns) WaitIdle() {
	for {
		p.mu.Lock()
		left := time.Until(p.last.Add(4 * (clientSilence + serverSilence)))
		p.mu.Unlock()
		if left <= 0 {
			return
		}
		time.Sleep(left)
	}
}

func (p *Turns) join(near, far net.Conn) {
	defer near.Close()
	defer far.Close()
	client, server := pieces(near), pieces(far)
	asked := false
	for {
		said, open := gather(client, clientSilence)
		if _, err := far.Write(said); err != nil || !open {
			return
		}
		spoke := len(said) > 0
		asked = asked || spoke
		said, open = gather(server, serverSilence)
		p.note(spoke || len(said) > 0, asked && len(said) > 0)
		asked = asked && len(said) == 0
		if _, err := near.Write(said); err != nil || !open {
			return
		}
	}
}

// note records two turns: whether anything was sent, and whether a request was answered.
func (p *Turns) note(spoke, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if spoke {
		p.last = time.Now()
	}
	if answered {
		p.n++
	}
}

// pieces reads until the connection ends.
func pieces(c net.Conn) <-chan []byte {
	out := make(chan []byte, 4096)
	go func() {
		defer close(out)
		for {
			buf := make([]byte, 32<<10)
			n, err := c.Read(buf)
			if n > 0 {
				out <- buf[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// gather collects chunks until none arrives for a while; open is false at the end.
func gather(from <-chan []byte, silence time.Duration) (said []byte, open bool) {
	for {
		select {
		case p, ok := <-from:
			if !ok {
				return said, false
			}
			said = append(said, p...)
		case <-time.After(silence):
			return said, true
		}
	}
}

package connectortest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is a TCP proxy that delays.
type Proxy struct {
	Addr string // where it listens

	mu    sync.Mutex
	to    string
	open  []net.Conn
	stall chan struct{} // closed: nothing is forwarded any more
}

// DelayProxy starts a proxy to addr that adds rtt to each round trip. It is stopped at the
// end of the test.
func DelayProxy(t testing.TB, addr string, rtt time.Duration) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), to: addr, stall: make(chan struct{})}
	t.Cleanup(func() {
		l.Close()
		p.Cut()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.join(c, rtt/2)
		}
	}()
	return p
}

// Cut drops every connection; the proxy keeps listening.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		c.Close()
	}
	p.open = nil
}

// Connections returns how many connections are or were open since the last Cut.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open) / 2
}

// Redirect forwards new connections to another address.
func (p *Proxy) Redirect(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = addr
}

// Stall stops forwarding and closes nothing, like a host without power.
func (p *Proxy) Stall() { close(p.stall) }

func (p *Proxy) join(near net.Conn, delay time.Duration) {
	p.mu.Lock()
	addr := p.to
	p.mu.Unlock()
	far, err := net.Dial("tcp", addr)
	if err != nil {
		near.Close()
		return
	}
	p.mu.Lock()
	p.open = append(p.open, near, far)
	p.mu.Unlock()
	go p.pump(far, near, delay)
	p.pump(near, far, delay)
}

// pump copies, and delivers each chunk delay after it arrived, without delaying the chunks
// behind it.
func (p *Proxy) pump(to, from net.Conn, delay time.Duration) {
	type piece struct {
		due  time.Time
		data []byte
	}
	pieces := make(chan piece, 4096)
	go func() {
		defer to.Close()
		for piece := range pieces {
			time.Sleep(time.Until(piece.due))
			if p.stalled() {
				continue
			}
			if _, err := to.Write(piece.data); err != nil {
				break
			}
		}
		for range pieces {
		}
	}()
	defer close(pieces)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			pieces <- piece{time.Now().Add(delay), append([]byte(nil), buf[:n]...)}
		}
		if err != nil {
			if err != io.EOF {
				to.Close()
			}
			return
		}
	}
}

func (p *Proxy) stalled() bool {
	select {
	case <-p.stall:
		return true
	default:
		return false
	}
}

package ssh

import (
	"net"
	"testing"
)

// fountain is a connection that supplies as much as is read.
type fountain struct{ net.Conn }

func (fountain) Read(p []byte) (int, error) { return len(p), nil }

// While an output is being processed, no more than the credit arrives. Then reading
// continues, and protocol overhead does not stop it for good.
func TestThrottle(t *testing.T) {
	b := &throttle{}
	c := throttledConn{fountain{}, b}
	p := make([]byte, 32<<10)
	read := func() bool {
		_, err := c.Read(p)
		free, _ := b.look(-1)
		return err == nil && free
	}
	for range 100 {
		if !read() {
			t.Fatal("it throttles where no command runs")
		}
	}
	b.release()
	b.begin()
	n := 0
	for read() {
		n += len(p)
	}
	if n > throttleCredit {
		t.Errorf("%d bytes arrived while nobody read them", n)
	}
	b.end(len(p))
	b.begin()
	b.end(len(p))
	if !read() {
		t.Error("processed output gives no credit")
	}
	for range 100 {
		if _, err := c.Read(p); err != nil {
			t.Fatal(err)
		}
	}
	b.wait()
	if free, _ := b.look(-1); !free {
		t.Error("no output is being processed, and nothing arrives")
	}
}

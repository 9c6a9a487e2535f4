package ssh

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
)

// fountain is a connection on which as much comes as is read.
type fountain struct{ net.Conn }

func (fountain) Read(p []byte) (int, error) { return len(p), nil }

// While somebody deals with an output, no more comes than the credit; then it goes on, and
// what the protocol adds to an output does not stop it for good.
func TestBrake(t *testing.T) {
	b := &brake{}
	c := brakedConn{fountain{}, b}
	p := make([]byte, 32<<10)
	read := func() bool {
		_, err := c.Read(p)
		free, _ := b.look(-1)
		return err == nil && free
	}
	for range 100 {
		if !read() {
			t.Fatal("it brakes where no command runs")
		}
	}
	b.release()
	b.begin()
	n := 0
	for read() {
		n += len(p)
	}
	if n > brakeCredit {
		t.Errorf("%d bytes came while nobody read them", n)
	}
	b.end(len(p))
	b.begin()
	b.end(len(p))
	if !read() {
		t.Error("what was dealt with gives no credit")
	}
	for range 100 {
		if _, err := c.Read(p); err != nil {
			t.Fatal(err)
		}
	}
	b.wait()
	if free, _ := b.look(-1); !free {
		t.Error("nobody has anything to deal with, and nothing comes")
	}
}

// slow is an output that is dealt with slowly at first.
type slow struct {
	got  atomic.Int64
	wait time.Duration
}

func (s *slow) Write(p []byte) (int, error) {
	if s.got.Add(int64(len(p))) < 1<<20 {
		time.Sleep(s.wait)
	}
	return len(p), nil
}

// An output that is read slowly is not held in memory, is whole in the end, and another
// command of the connection goes on meanwhile.
func TestSlowReader(t *testing.T) {
	h := dialSSHD(t, connectortest.StartSSHD(t))
	out := &slow{wait: 30 * time.Millisecond}
	done := make(chan error, 1)
	go func() {
		_, err := h.Run(context.Background(), connector.Command{Line: "head -c 20971520 /dev/zero", Stdout: out})
		done <- err
	}()
	for range 5 {
		if _, err := h.Run(context.Background(), connector.Command{Line: "echo", Stdout: io.Discard}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil || out.got.Load() != 20<<20 {
		t.Errorf("%d bytes came: %v", out.got.Load(), err)
	}
}

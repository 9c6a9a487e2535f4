package ssh_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
)

// slow is an output whose reader is slow at first.
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

// An output that is read slowly is not kept in memory, arrives complete, and does not delay
// other commands of the connection.
func TestSlowReader(t *testing.T) {
	h := connect(t, options(connectortest.StartSSHD(t)))
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
		t.Errorf("%d bytes arrived: %v", out.got.Load(), err)
	}
}

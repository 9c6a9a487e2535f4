package relay

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// newTestSession returns a session for blobs of zeros, and what the program on the host reads and writes.
func newTestSession(rate *Limiter) (s *Session, b Blob, in io.Reader, out *io.PipeWriter) {
	b = Blob{Digest: digestPrefix + strings.Repeat("0", 64), Size: 300 << 10}
	open := func(b Blob) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(make([]byte, b.Size))), nil }
	in, toProgram := io.Pipe()
	fromProgram, out := io.Pipe()
	s = NewSession("host", toProgram, fromProgram, open, rate)
	s.stall = 100 * time.Millisecond
	return s, b, in, out
}

// TestProgramThatHangs checks that a request ends when the program takes nothing of it, and when it takes everything
// but does not answer.
func TestProgramThatHangs(t *testing.T) {
	firstLine := func(in io.Reader) error { _, err := NewLineReader(in).ReadString('\n'); return err }
	everything := func(in io.Reader) error { _, err := io.Copy(io.Discard, in); return err }
	send := func(ctx context.Context, s *Session, b Blob) error { return s.Send(ctx, b) }
	for _, c := range []struct {
		name string
		take func(io.Reader) error
		ask  func(context.Context, *Session, Blob) error
	}{
		{"takes nothing", firstLine, send},
		{"does not answer", everything, send},
		{"fetches for ever", everything, func(ctx context.Context, s *Session, b Blob) error {
			go s.ping(10 * time.Millisecond)
			return s.Fetch(ctx, b, Source{})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, b, in, out := newTestSession(nil)
			taken := make(chan error, 1)
			go func() { taken <- c.take(in) }()
			t.Cleanup(func() {
				_ = out.Close() // never fails
				if err := <-taken; err != nil {
					t.Error(err)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			err := c.ask(ctx, s, b)
			if faultOf(err) != Lost || ctx.Err() != nil || !strings.Contains(err.Error(), "has not reacted for 100ms") {
				t.Errorf("it ended with %v, %v", err, ctx.Err())
			}
		})
	}
}

// TestSlowLimit checks that a program is not lost while the control node waits for its own limit.
func TestSlowLimit(t *testing.T) {
	s, b, in, out := newTestSession(NewLimiter(512 << 10))
	go func() {
		r := NewLineReader(in)
		q, err := ReadRequest(r)
		if err == nil {
			_, err = io.Copy(io.Discard, NewFrameReader(r))
		}
		if err == nil {
			err = WriteLine(out, Answer{ID: q.ID})
		}
		_ = out.CloseWithError(err) // never fails
	}()
	if err := s.Send(t.Context(), b); err != nil {
		t.Error(err)
	}
}

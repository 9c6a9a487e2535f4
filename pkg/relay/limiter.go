package relay

import (
	"context"
	"sync"
	"time"
)

// Limiter limits a rate in bytes per second, shared by all who wait for it. A nil Limiter does not limit.
type Limiter struct {
	rate float64
	mu   sync.Mutex
	next time.Time // when everything so far has passed at this rate
}

// NewLimiter returns a limiter; nil for a rate of 0.
func NewLimiter(rate int64) *Limiter {
	if rate <= 0 {
		return nil
	}
	return &Limiter{rate: float64(rate)}
}

// Wait waits until n bytes may pass.
func (l *Limiter) Wait(ctx context.Context, n int) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	if now := time.Now(); l.next.Before(now) {
		l.next = now
	}
	at := l.next
	l.next = at.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	l.mu.Unlock()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package module

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"kubekey/pkg/connector"
)

func TestParallel(t *testing.T) {
	var now, most, sum atomic.Int64
	var mu sync.Mutex
	Parallel(20, 3, func(i int) {
		n := now.Add(1)
		mu.Lock()
		most.Store(max(most.Load(), n))
		mu.Unlock()
		sum.Add(int64(i))
		now.Add(-1)
	})
	if sum.Load() != 190 || most.Load() > 3 {
		t.Errorf("sum %d, at most %d at once", sum.Load(), most.Load())
	}
}

// A panic is passed on after all other work has finished, with its original stack.
func TestParallelPassesPanicsOn(t *testing.T) {
	var done atomic.Int64
	defer func() {
		p, ok := recover().(*connector.PanicError)
		if !ok || p.Value != "odd" || !strings.Contains(p.Stack, "TestParallelPassesPanicsOn.func") || done.Load() != 3 {
			t.Errorf("recovered %v with %d done", p, done.Load())
		}
	}()
	Parallel(4, 2, func(i int) {
		if i == 1 {
			panic("odd")
		}
		done.Add(1)
	})
}

// Work that panics on one host has no value for other hosts: they call it again.
func TestSharePanics(t *testing.T) {
	s := &Share{}
	calls := 0
	work := func() (any, error) {
		if calls++; calls == 1 {
			panic("odd")
		}
		return calls, nil
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = s.Do("a", work)
		t.Error("the panic is not passed on")
	}()
	v, err := s.Do("a", work)
	if err != nil || v != 2 {
		t.Errorf("got %v, %v", v, err)
	}
}

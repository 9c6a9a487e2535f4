package module

import (
	"errors"
	"sync"
)

// Share does work once that many hosts of a run would do alike, such as
// reading a large file for its digest. A nil Share does it each time. Many
// goroutines may use it at once.
type Share struct {
	mu   sync.Mutex
	done map[string]*shared
}

type shared struct {
	once sync.Once
	v    any
	err  error
}

// maxShared bounds what is kept; beyond it everything is dropped, and computed again.
const maxShared = 4096

// Do returns what work returns, which is called once for a key. The value is
// shared: do not change it. What failed is tried again by the next who asks.
func (s *Share) Do(key string, work func() (any, error)) (any, error) {
	if s == nil {
		return work()
	}
	s.mu.Lock()
	if s.done == nil || len(s.done) >= maxShared {
		s.done = map[string]*shared{}
	}
	e := s.done[key]
	if e == nil {
		e = &shared{}
		s.done[key] = e
	}
	s.mu.Unlock()
	defer func() {
		if e.err != nil {
			s.drop(key, e)
		}
	}()
	e.once.Do(func() {
		e.err = errPanicked // stays if work does: who waits for it gets no value
		e.v, e.err = work()
	})
	return e.v, e.err
}

func (s *Share) drop(key string, e *shared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done[key] == e {
		delete(s.done, key)
	}
}

var errPanicked = errors.New("work shared by several hosts panicked on another host")

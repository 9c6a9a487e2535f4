package module

import (
	"errors"
	"sync"
)

// Share does work only once that is the same for many hosts of a run, such as computing the digest of a large file.
// A nil Share does it every time. Share is safe for concurrent use.
type Share struct {
	mu   sync.Mutex
	done map[string]*shared
}

type shared struct {
	once sync.Once
	v    any
	err  error
}

// maxShared is the maximum number of stored values. When it is reached, all are dropped and computed again.
const maxShared = 4096

// Do returns the result of work, which is called once per key. The value is shared and must not be modified. If
// work fails, the next call with the key tries again.
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
		e.err = errPanicked // is kept if work panics: callers that wait for it get no value
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

package module

import (
	"errors"
	"io"
	"sync"
)

// Share does work only once that is the same for many hosts of a run, such as computing the digest of a large file.
// A nil Share does it every time. Share is safe for concurrent use.
type Share struct {
	mu   sync.Mutex
	done map[string]*shared
	open []io.Closer // values to close when the run ends
}

type shared struct {
	once sync.Once
	v    any
	err  error
}

// maxShared is the maximum number of stored values. When it is reached, all are dropped and computed again.
const maxShared = 4096

// Do returns the result of work, which is called once per key. The value is shared and must not be modified. If
// work fails, the next call with the key tries again. A value that is an io.Closer is closed by Close: callers do not.
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
		if e.v, e.err = work(); e.err == nil {
			s.remember(e.v)
		}
	})
	return e.v, e.err
}

// remember keeps a value that must be closed, for Close.
func (s *Share) remember(v any) {
	if closer, ok := v.(io.Closer); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open = append(s.open, closer)
	}
}

// Close closes the values that are io.Closers, such as open files. It is called when the run ends.
func (s *Share) Close() error {
	s.mu.Lock()
	open := s.open
	s.open, s.done = nil, nil
	s.mu.Unlock()
	var problems []error
	for _, c := range open {
		problems = append(problems, c.Close())
	}
	return errors.Join(problems...)
}

func (s *Share) drop(key string, e *shared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done[key] == e {
		delete(s.done, key)
	}
}

var errPanicked = errors.New("work shared by several hosts panicked on another host")

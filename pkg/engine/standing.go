package engine

import (
	"slices"
	"sync"
)

// standing records the hosts that are out of the run. Workers read it through the magic variables while the goroutine
// of the run writes it.
type standing struct {
	mu     sync.RWMutex
	failed map[string]bool
	lost   map[string]bool // unreachable
	input  bool            // hosts failed because of what kk was given
}

func newStanding() *standing {
	return &standing{failed: map[string]bool{}, lost: map[string]bool{}}
}

func (s *standing) fail(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[host] = true
}

func (s *standing) lose(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[host] = true
}

// reject records that hosts fail because of what kk was given.
func (s *standing) reject() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.input = true
}

// forgive brings every host back into the run.
func (s *standing) forgive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.failed)
	clear(s.lost)
	s.input = false
}

// alive returns the hosts of a list that are still in the run.
func (s *standing) alive(hosts []string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return s.failed[h] || s.lost[h] })
}

// failedOf returns the hosts of a list that have failed.
func (s *standing) failedOf(hosts []string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return !s.failed[h] })
}

// code returns the exit code for the results so far.
func (s *standing) code() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case len(s.lost) > 0:
		return ExitUnreachable
	case len(s.failed) > 0 && s.input:
		return ExitInput
	case len(s.failed) > 0:
		return ExitFailed
	}
	return ExitOK
}

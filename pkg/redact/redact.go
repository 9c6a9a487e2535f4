// Package redact hides the secrets of a run in everything that is shown or
// written: screen, journal, errors.
package redact

import (
	"iter"
	"strings"
	"sync"
)

// Mask stands where a secret stood.
const Mask = "********"

// Secret is a string that prints as stars with every verb and encoder.
// Call Reveal to use it.
type Secret struct{ value string }

// NewSecret wraps a secret.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.value == "" }

func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return Mask
}

// GoString keeps %#v from showing the secret.
func (s Secret) GoString() string { return "redact.Secret(" + s.String() + ")" }

// MarshalText keeps encoders from showing the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// shortest is the least length that a secret, or a line of one, must have to be
// replaced in text: hiding every "1" would make the text useless and hide nothing.
const (
	shortest     = 4
	shortestLine = 6
)

// Set is the secrets of one run. It may be used by many goroutines at once.
// The zero value is ready.
type Set struct {
	mu    sync.RWMutex
	known map[string]bool
	find  *finder
}

// Add registers secrets. Each is hidden in all the forms that formsOf lists;
// lines of one that has several are hidden on their own too, since outputs are
// shown line by line. Words that are no secret (true, none) and the first and
// last lines of PEM files are not.
func (s *Set) Add(secrets ...string) {
	for _, secret := range secrets {
		s.mu.RLock()
		known := s.known[secret]
		s.mu.RUnlock()
		if !known {
			s.add(secret)
		}
	}
}

func (s *Set) add(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known, s.find = map[string]bool{}, &finder{}
	}
	s.known[secret] = true
	whole := strings.TrimSpace(secret)
	s.word(whole, shortest)
	if !strings.Contains(whole, "\n") {
		return
	}
	for line := range strings.SplitSeq(whole, "\n") {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
			s.word(line, shortestLine)
		}
	}
}

func (s *Set) word(secret string, least int) {
	if len(secret) < least || plainWord.MatchString(secret) {
		return
	}
	for _, f := range formsOf(secret) {
		s.find.add(f)
	}
}

// AddNamed registers those of the named values whose names say that they are secret.
func (s *Set) AddNamed(values iter.Seq2[string, string]) {
	for name, v := range values {
		if IsSecret(name, v) {
			s.Add(v)
		}
	}
}

// Text returns text with every known secret replaced by Mask; what several
// secrets cover together is replaced once. A nil set knows none.
func (s *Set) Text(text string) string {
	if s == nil {
		return text
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.find == nil {
		return text
	}
	return s.find.replace(text)
}

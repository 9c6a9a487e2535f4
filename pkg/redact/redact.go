// Package redact hides the secrets of a run in everything that is shown or
// written: screen, journal, errors.
package redact

import (
	"sort"
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

// shortest is the least length a secret must have to be replaced in text:
// hiding every "1" would make the text useless and hide nothing.
const shortest = 4

// Set is the secrets of one run. It may be used by many goroutines at once.
// The zero value is ready.
type Set struct {
	mu       sync.RWMutex
	known    map[string]bool
	replacer *strings.Replacer
}

// Add registers secrets. Each non-trivial line of one that has several is
// hidden on its own too, since outputs are shown line by line.
func (s *Set) Add(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]bool{}
	}
	before := len(s.known)
	for _, secret := range secrets {
		for _, part := range append(strings.Split(secret, "\n"), secret) {
			if part = strings.TrimSpace(part); len(part) >= shortest {
				s.known[part] = true
			}
		}
	}
	if len(s.known) != before {
		s.replacer = newReplacer(s.known)
	}
}

func newReplacer(known map[string]bool) *strings.Replacer {
	words := make([]string, 0, len(known))
	for w := range known {
		words = append(words, w)
	}
	// Longest first: a secret may be the beginning of another.
	sort.Slice(words, func(i, j int) bool {
		if len(words[i]) != len(words[j]) {
			return len(words[i]) > len(words[j])
		}
		return words[i] < words[j]
	})
	pairs := make([]string, 0, 2*len(words))
	for _, w := range words {
		pairs = append(pairs, w, Mask)
	}
	return strings.NewReplacer(pairs...)
}

// Text returns text with every known secret replaced by Mask.
func (s *Set) Text(text string) string {
	s.mu.RLock()
	r := s.replacer
	s.mu.RUnlock()
	if r == nil {
		return text
	}
	return r.Replace(text)
}

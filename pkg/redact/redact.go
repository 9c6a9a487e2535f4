// Package redact hides the secrets of a run in all output: screen, journal, errors.
package redact

import (
	"iter"
	"regexp"
	"strings"
	"sync"
)

// Mask replaces a secret.
const Mask = "********"

// Secret is a string that prints as stars with every verb and encoder. It is created by a Set,
// which hides it. Call Reveal to use it.
type Secret struct{ value string }

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

// GoString prevents %#v from showing the secret.
func (s Secret) GoString() string { return "redact.Secret(" + s.String() + ")" }

// MarshalText prevents encoders from showing the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// shortest is the minimum length of a secret, or of one of its lines, to be replaced in text. Masking every "1"
// would make the text useless and hide nothing.
const shortest = 4

// longest is the length from which the length of the shortest secret no longer matters.
const longest = 1 << 20

// Set contains the secrets of one run. It is safe for concurrent use. The zero value is ready to use.
type Set struct {
	mu      sync.RWMutex
	known   map[string]bool
	literal *finder // secrets unencoded and in base64
	reduced *finder // secrets after unescape
	blanks  bool    // a secret contains a blank, which is + in a query
	least   int     // length of the shortest secret in bytes, at most longest
	letters alphabet
}

// Secret registers a secret and returns it as a type that does not print it.
func (s *Set) Secret(text string) Secret {
	s.Add(text)
	return Secret{text}
}

// Add registers secrets. Each is hidden wherever Text finds it. The lines of a secret with several lines are also
// hidden individually, because output is shown line by line. Words that are not secret (true, none), the first and
// last lines of PEM files, and lines that only start a block (key:) are not.
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
		s.known, s.literal, s.reduced, s.least = map[string]bool{}, &finder{}, &finder{folds: true}, longest
	}
	s.known[secret] = true
	whole := strings.TrimSpace(secret)
	s.word(whole)
	if !strings.Contains(whole, "\n") {
		return
	}
	for line := range strings.SplitSeq(whole, "\n") {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") && !structure.MatchString(line) {
			s.word(line)
		}
	}
}

// structure matches a short line without information.
var structure = regexp.MustCompile(`^(?:[\w-]{0,4}:|\W*)$`)

func (s *Set) word(secret string) {
	if len(secret) < shortest || plainWord.MatchString(secret) {
		return
	}
	s.asItIs(secret)
	if blank := strings.ReplaceAll(secret, " ", "+"); blank != secret { // as in a query
		s.blanks = true
		s.asItIs(blank)
	}
	for _, p := range reduced(secret) {
		s.reduced.add(p)
	}
	s.least = min(s.least, len(secret))
	s.letters.add(secret)
}

// asItIs registers a text to be found unencoded and in base64.
func (s *Set) asItIs(text string) {
	s.literal.add(pattern{text: text, secret: text})
	for shift := range 3 {
		w := encodedInBase64(text, shift)
		for _, chars := range []string{w.text, strings.NewReplacer("+", "-", "/", "_").Replace(w.text)} {
			w.text = chars
			s.literal.add(w)
			w.text = folded(chars)
			s.reduced.add(w)
		}
	}
}

// AddNamed registers the values with secret names.
func (s *Set) AddNamed(values iter.Seq2[string, string]) {
	for name, v := range values {
		if IsSecret(name, v) {
			s.Add(v)
		}
	}
}

// Text returns text with every known secret replaced by Mask; overlapping secrets are replaced
// once. A secret is found unencoded, escaped for any language, in base64 and in hexadecimal digits,
// and in any nesting of these. A nil set has no secrets.
func (s *Set) Text(text string) string {
	if s == nil {
		return text
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.literal == nil || len(text) < shortest {
		return text
	}
	var found ranges
	r := reader{s: s}
	r.read(text, 0, found.add)
	return found.mask(text)
}

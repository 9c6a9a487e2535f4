package pyregex

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// set is a set of characters.
type set struct {
	ranges []rune // pairs of the first and the last character
	kinds  string // d D s S w W
	negate bool
}

func (s *set) add(low, high rune, kind byte) {
	if kind != 0 {
		s.kinds += string(rune(kind))
		return
	}
	s.ranges = append(s.ranges, low, high)
}

// has reports whether a character is in the set under the given flags.
func (s *set) has(r rune, flags Flags) bool {
	in := s.holds(r, flags)
	if !in && flags&IgnoreCase != 0 {
		in = slices.ContainsFunc(variants(r, flags), func(v rune) bool { return s.holds(v, flags) })
	}
	return in != s.negate
}

func (s *set) holds(r rune, flags Flags) bool {
	for i := 0; i < len(s.ranges); i += 2 {
		if s.ranges[i] <= r && r <= s.ranges[i+1] {
			return true
		}
	}
	for _, kind := range s.kinds {
		if isKind(r, unicode.ToLower(kind), flags) == unicode.IsLower(kind) {
			return true
		}
	}
	return false
}

// isKind reports whether a character is a digit (d), a blank (s), or part of a word (w).
func isKind(r, kind rune, flags Flags) bool {
	if flags&ASCII != 0 && (r >= utf8.RuneSelf || kind == 's' && r >= 0x1c && r <= 0x1f) {
		return false
	}
	switch kind {
	case 'd':
		return unicode.IsDigit(r)
	case 's':
		return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f
	}
	return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
}

// variants returns the other cases of a character.
func variants(r rune, flags Flags) []rune {
	if flags&ASCII != 0 && r >= utf8.RuneSelf {
		return nil
	}
	var out []rune
	for v := unicode.SimpleFold(r); v != r; v = unicode.SimpleFold(v) {
		if flags&ASCII == 0 || v < utf8.RuneSelf {
			out = append(out, v)
		}
	}
	const letterI = "iIİı" // Python treats the Turkish letters as case variants of i
	if flags&ASCII == 0 && strings.ContainsRune(letterI, r) {
		return []rune(letterI)
	}
	return out
}

// same compares two characters under the given flags.
func same(a, b rune, flags Flags) bool {
	return a == b || flags&IgnoreCase != 0 && slices.Contains(variants(a, flags), b)
}

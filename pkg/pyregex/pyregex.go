// Package pyregex implements Python's re, with Python's results and error messages: the regular expressions and
// replacements that playbooks use.
//
// Patterns that Go's standard library interprets in the same way run there, in linear time. Other patterns, such as
// those with lookaround and back references, use backtracking with a time limit.
package pyregex

import (
	"strings"
	"time"
)

// Flags are the flags of Python's re, and the kind of search.
type Flags uint16

const (
	IgnoreCase Flags = 1 << iota
	Multiline
	DotAll
	Verbose
	ASCII
	AtStart // match: only at the start of the text
	Whole   // fullmatch: only the whole text

	unicodeFlag
	localeFlag
)

const (
	typeFlags   = ASCII | unicodeFlag | localeFlag
	flagLetters = "imsxauL"
)

func flagOf(letter string) Flags {
	all := []Flags{IgnoreCase, Multiline, DotAll, Verbose, ASCII, unicodeFlag, localeFlag}
	return all[max(0, strings.Index(flagLetters, letter))]
}

// Regexp is a compiled pattern. It is safe for concurrent use.
type Regexp struct {
	flags  Flags
	limit  time.Duration
	names  map[string]int
	order  []string // the names of groups by number, "" for groups without a name
	linear *linear
	run    step
	loops  int
	prefix string
	empty  bool // can match an empty text
}

// Compile compiles a pattern. The limit is the maximum time of one search that needs backtracking. The error is
// Python's, without the pattern.
func Compile(pattern string, flags Flags, limit time.Duration) (*Regexp, error) {
	p, n, err := parse(pattern, flags)
	if err != nil {
		return nil, err
	}
	re := &Regexp{flags: flags, limit: limit, names: p.names, order: make([]string, len(p.widths)), empty: n.least == 0}
	for name, group := range p.names {
		re.order[group] = name
	}
	c := &compiler{}
	re.run, re.prefix = c.compile(n, found), prefix(n)
	re.loops = c.loops
	re.linear = newLinear(n, flags, re.Groups())
	return re, nil
}

// Groups returns the number of groups in the pattern.
func (re *Regexp) Groups() int { return len(re.order) - 1 }

// Name returns the name of a group, "" if it has none.
func (re *Regexp) Name(group int) string { return re.order[group] }

// Match has the positions of a match and its groups in bytes: pairs of start and end, -1 for a group that did not
// take part.
type Match []int

// Has reports whether a group took part in the match. Group 0 is the match.
func (m Match) Has(group int) bool { return m[2*group] >= 0 }

// Text returns the text that a group matched, "" if it took no part.
func (m Match) Text(text string, group int) string {
	if !m.Has(group) {
		return ""
	}
	return text[m[2*group]:m[2*group+1]]
}

// Find returns the first match, nil if there is none.
func (re *Regexp) Find(text string) (Match, error) {
	if re.linear.fits(text) {
		return re.linear.re.FindStringSubmatchIndex(text), nil
	}
	return re.search(text, 0, false)
}

// Matches reports whether there is a match.
func (re *Regexp) Matches(text string) (bool, error) {
	m, err := re.Find(text)
	return m != nil, err
}

// FindAll returns the matches from left to right, at most n of them; 0 means no limit.
func (re *Regexp) FindAll(text string, n int) ([]Match, error) {
	var all []Match
	if !re.empty && re.linear.fits(text) {
		if n <= 0 {
			n = -1
		}
		for _, m := range re.linear.re.FindAllStringSubmatchIndex(text, n) {
			all = append(all, m)
		}
		return all, nil
	}
	from, advance := 0, false
	for n <= 0 || len(all) < n {
		m, err := re.search(text, from, advance)
		if err != nil || m == nil {
			return all, err
		}
		all = append(all, m)
		from, advance = m[1], m[0] == m[1]
	}
	return all, nil
}

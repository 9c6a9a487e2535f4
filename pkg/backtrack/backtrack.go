// Package backtrack runs regular expressions that the standard library cannot:
// with lookaround and back references, within a bound on the time.
package backtrack

import (
	"time"

	"github.com/dlclark/regexp2"
)

// Regexp is a compiled expression. Many goroutines may use it at once.
type Regexp struct{ re *regexp2.Regexp }

// Compile reads an expression of which one match may take limit.
func Compile(text string, options regexp2.RegexOptions, limit time.Duration) (*Regexp, error) {
	re, err := regexp2.Compile(text, options)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = limit
	return &Regexp{re}, nil
}

// Find returns the first match, nil when there is none. An error says that the limit was reached.
func (r *Regexp) Find(text string) (*regexp2.Match, error) {
	return again(func() (*regexp2.Match, error) { return r.re.FindStringMatch(text) })
}

// Next returns the match after one, as Find does.
func (r *Regexp) Next(after *regexp2.Match) (*regexp2.Match, error) {
	return again(func() (*regexp2.Match, error) { return r.re.FindNextMatch(after) })
}

// again gives a match that ran out of time a second chance. regexp2 measures time by a
// clock that stands still while nobody matches: of several goroutines that wake it at
// once, one may still have read the old time, and its match ends when it has only begun.
func again(match func() (*regexp2.Match, error)) (*regexp2.Match, error) {
	m, err := match()
	if err != nil {
		m, err = match()
	}
	return m, err
}

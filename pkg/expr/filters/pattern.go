package filters

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"kubekey/pkg/expr"
	"kubekey/pkg/pyregex"
)

// matchTime limits the time of one match that needs backtracking.
const matchTime = time.Second

// maxPatterns limits the number of cached patterns.
const maxPatterns = 512

// Patterns caches compiled patterns. It is safe for concurrent use.
type Patterns struct {
	mu   sync.Mutex
	kept map[patternKey]*pyregex.Regexp
}

type patternKey struct {
	text  string
	flags pyregex.Flags
}

// NewPatterns returns an empty cache.
func NewPatterns() *Patterns { return &Patterns{kept: map[patternKey]*pyregex.Regexp{}} }

// Get compiles a pattern, or returns it from the cache.
func (ps *Patterns) Get(text string, flags pyregex.Flags) (*pyregex.Regexp, error) {
	key := patternKey{text, flags}
	ps.mu.Lock()
	re, ok := ps.kept[key]
	ps.mu.Unlock()
	if ok {
		return re, nil
	}
	re, err := pyregex.Compile(text, flags, matchTime)
	if err != nil {
		return nil, badPattern(text, err)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ps.kept) >= maxPatterns {
		clear(ps.kept)
	}
	ps.kept[key] = re
	return re, nil
}

func badPattern(text string, err error) error {
	return fmt.Errorf("bad pattern %q: %w", expr.Shorten(text), err)
}

// PatternFlags returns the flags for the arguments of filters and tests.
func PatternFlags(p *expr.Bound) pyregex.Flags {
	var flags pyregex.Flags
	if p.Flag("ignorecase", false) {
		flags |= pyregex.IgnoreCase
	}
	if p.Flag("multiline", false) {
		flags |= pyregex.Multiline
	}
	return flags
}

// Subject returns the text of a value in which a pattern is searched.
func Subject(v any) (string, error) {
	s, err := expr.Text(v)
	return strings.ToValidUTF8(s, "\uFFFD"), err
}

package filters

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"kubekey/pkg/expr"
	"kubekey/pkg/pyregex"
)

// matchTime bounds one match of a pattern that backtracks.
const matchTime = time.Second

// maxPatterns bounds how many compiled patterns are kept.
const maxPatterns = 512

// Patterns keeps compiled patterns; many goroutines may use it at once.
type Patterns struct {
	mu   sync.Mutex
	kept map[patternKey]*pyregex.Regexp
}

type patternKey struct {
	text  string
	flags pyregex.Flags
}

// NewPatterns keeps none yet.
func NewPatterns() *Patterns { return &Patterns{kept: map[patternKey]*pyregex.Regexp{}} }

// Get compiles a pattern, or returns the one that was compiled before.
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

// PatternFlags are those that filters and tests have as arguments.
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

// Subject is the text of a value that a pattern is looked for in.
func Subject(v any) (string, error) {
	s, err := expr.Text(v)
	return strings.ToValidUTF8(s, "\uFFFD"), err
}

package expr

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"kubekey/pkg/backtrack"
)

// matchTime bounds one match of a pattern that may backtrack.
const matchTime = time.Second

// maxPatterns bounds how many compiled patterns are kept.
const maxPatterns = 512

// matchFlags are the flags of Python's re that filters pass on.
type matchFlags struct{ ignoreCase, multiline bool }

// patterns keeps compiled patterns; many goroutines may use it at once.
type patterns struct {
	mu   sync.Mutex
	kept map[patternKey]*matcher
}

type patternKey struct {
	text  string
	flags matchFlags
}

func newPatterns() *patterns { return &patterns{kept: map[patternKey]*matcher{}} }

func (ps *patterns) get(text string, flags matchFlags) (*matcher, error) {
	key := patternKey{text, flags}
	ps.mu.Lock()
	m, ok := ps.kept[key]
	ps.mu.Unlock()
	if ok {
		return m, nil
	}
	m, err := newMatcher(text, flags)
	if err != nil {
		return nil, fmt.Errorf("bad pattern %q: %w", truncateText(text), err)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ps.kept) >= maxPatterns {
		clear(ps.kept)
	}
	ps.kept[key] = m
	return m, nil
}

// matcher is a compiled pattern with Python's meaning. Go's engine serves
// when it accepts the pattern and agrees with Python on it; the other engine
// knows lookaround and backreferences, takes the empty match right after
// another match, and lets $ match before a last newline.
type matcher struct {
	fast   *regexp.Regexp // nil when only the other engine will do
	full   *backtrack.Regexp
	dollar bool // $ may mean "before a last newline"
	groups int
	names  map[string]int
}

func newMatcher(text string, flags matchFlags) (*matcher, error) {
	t := translate(text)
	m := &matcher{names: t.names, groups: t.groups, dollar: strings.Contains(text, "$") && !flags.multiline}
	mode, options := "", regexp2.None
	if flags.ignoreCase {
		mode += "(?i)"
		options |= regexp2.IgnoreCase
	}
	if flags.multiline {
		mode += "(?m)"
		options |= regexp2.Multiline
	}
	var fastErr, err error
	if m.fast, fastErr = regexp.Compile(mode + t.text); fastErr == nil && matchesEmpty(mode+t.text) {
		m.fast = nil
	}
	if m.full, err = backtrack.Compile(t.text, options, matchTime); err == nil {
		return m, nil
	}
	if fastErr != nil {
		return nil, fastErr
	}
	m.fast, err = regexp.Compile(mode + t.text)
	m.full = nil
	return m, err
}

// translation is a pattern without what only Python writes: groups are
// numbered from the left, whether they have a name or not.
type translation struct {
	text   string
	groups int
	names  map[string]int
}

func translate(text string) translation {
	t := translation{names: map[string]int{}}
	var b strings.Builder
	inClass := false
	for i := 0; i < len(text); {
		out, size := text[i:i+1], 1
		switch {
		case text[i] == '\\' && i+1 < len(text):
			out, size = text[i:i+2], 2
			if out == `\Z` && !inClass {
				out = `\z`
			}
		case inClass:
			inClass = text[i] != ']'
		case text[i] == '[':
			inClass = true
			size += classStart(text[i+1:])
			out = text[i : i+size]
		case text[i] == '(':
			out, size = t.open(text[i:])
		}
		b.WriteString(out)
		i += size
	}
	t.text = b.String()
	return t
}

// classStart is the length of what after [ cannot end the class: ^ and ].
func classStart(s string) int {
	n := 0
	if strings.HasPrefix(s, "^") {
		n++
	}
	if strings.HasPrefix(s[n:], "]") {
		n++
	}
	return n
}

// open reads a parenthesis and the kind of group it opens.
func (t *translation) open(s string) (out string, size int) {
	if name, ok := between(s, "(?P=", ")"); ok {
		return fmt.Sprintf(`(?:\%d)`, t.names[name]), len(name) + 5
	}
	name, ok := between(s, "(?P<", ">")
	switch {
	case ok:
		t.groups++
		t.names[name] = t.groups
		return "(", len(name) + 5
	case !strings.HasPrefix(s, "(?"):
		t.groups++
	}
	return "(", 1
}

func between(s, before, after string) (string, bool) {
	rest, ok := strings.CutPrefix(s, before)
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, after)
	return name, ok
}

// matchesEmpty reports whether the pattern can match an empty text somewhere.
func matchesEmpty(text string) bool {
	re, err := syntax.Parse(text, syntax.Perl)
	return err == nil && minLength(re) == 0
}

func minLength(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return minLength(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min * minLength(re.Sub[0])
	case syntax.OpConcat:
		n := 0
		for _, sub := range re.Sub {
			n += minLength(sub)
		}
		return n
	case syntax.OpAlternate:
		n := minLength(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			n = min(n, minLength(sub))
		}
		return n
	}
	return 0
}

// match is start and end of the whole and of each group, in bytes; -1 for a
// group that took no part.
type match []int

func (m match) start() int     { return m[0] }
func (m match) end() int       { return m[1] }
func (m match) has(g int) bool { return 2*g < len(m) && m[2*g] >= 0 }

func (m match) group(s string, g int) string {
	if !m.has(g) {
		return ""
	}
	return s[m[2*g]:m[2*g+1]]
}

// all finds matches from left to right, at most limit unless that is 0. The
// text must be valid UTF-8.
func (m *matcher) all(s string, limit int) ([]match, error) {
	if limit <= 0 {
		limit = maxItems
	}
	if m.full == nil || m.fast != nil && !(m.dollar && strings.HasSuffix(s, "\n")) {
		var out []match
		for _, f := range m.fast.FindAllStringSubmatchIndex(s, limit) {
			out = append(out, f)
		}
		return out, nil
	}
	return m.allFull(s, limit)
}

func (m *matcher) allFull(s string, limit int) ([]match, error) {
	found, err := m.full.Find(s)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, nil
	}
	offsets := runeOffsets(s)
	var out []match
	for found != nil && len(out) < limit {
		out = append(out, indexes(found, offsets, m.groups))
		if found, err = m.full.Next(found); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func indexes(found *regexp2.Match, offsets []int, groups int) match {
	out := make(match, 0, 2*groups+2)
	for g := range groups + 1 {
		group := found.GroupByNumber(g)
		if group == nil || len(group.Captures) == 0 {
			out = append(out, -1, -1)
			continue
		}
		out = append(out, offsets[group.Index], offsets[group.Index+group.Length])
	}
	return out
}

// runeOffsets is the byte offset of each rune, and the length.
func runeOffsets(s string) []int {
	out := make([]int, 0, utf8.RuneCountInString(s)+1)
	for i := range s {
		out = append(out, i)
	}
	return append(out, len(s))
}

// subject is the text of a value that a pattern is looked for in.
func subject(v any) (string, error) {
	s, err := plainText(v)
	return strings.ToValidUTF8(s, "\uFFFD"), err
}

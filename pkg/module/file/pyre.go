package file

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"kubekey/pkg/backtrack"
)

// matchLimit is how long a pattern that backtracks may take on one text.
const matchLimit = 5 * time.Second

// pattern is a regular expression as Python's re has it. RE2 runs it where it
// can, in linear time; lookaround and backreferences need regexp2.
type pattern struct {
	source string
	fast   *regexp.Regexp
	slow   *backtrack.Regexp
	names  map[string]int
}

// compilePattern compiles a Python pattern; flags are of RE2: "m", "s".
func compilePattern(source, flags string) (*pattern, error) {
	translated := translate(source)
	p := &pattern{source: source, names: map[string]int{}}
	prefix := ""
	if flags != "" {
		prefix = "(?" + flags + ")"
	}
	fast, err := regexp.Compile(prefix + translated)
	if err == nil {
		p.fast = fast
		for i, n := range fast.SubexpNames() {
			if n != "" {
				p.names[n] = i
			}
		}
		return p, nil
	}
	return p, p.compileSlow(translated, flags)
}

func (p *pattern) compileSlow(translated, flags string) error {
	options := regexp2.RegexOptions(regexp2.None)
	if strings.Contains(flags, "m") {
		options |= regexp2.Multiline
	}
	if strings.Contains(flags, "s") {
		options |= regexp2.Singleline
	}
	slow, err := backtrack.Compile(p.numbered(translated), options, matchLimit)
	if err != nil {
		return fmt.Errorf("the regular expression %q is not valid: %w", p.source, err)
	}
	p.slow = slow
	return nil
}

var groupStart = regexp.MustCompile(`^\(\?P(?:<(\w+)>|=(\w+)\))`)

// numbered rewrites named groups as plain ones and keeps their numbers: regexp2
// counts named groups after all others, Python in the order of the pattern.
func (p *pattern) numbered(s string) string {
	var b strings.Builder
	groups, class := 0, false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			b.WriteByte(s[i])
			i++
		case s[i] == '[' || s[i] == ']':
			class = s[i] == '['
		case s[i] != '(' || class:
		case !strings.HasPrefix(s[i:], "(?"):
			groups++
		default:
			m := groupStart.FindStringSubmatch(s[i:])
			if m == nil {
				break
			}
			i += len(m[0]) - 1
			if n := p.names[m[2]]; n > 0 {
				fmt.Fprintf(&b, `(?:\%d)`, n)
				continue
			}
			if m[1] == "" {
				b.WriteString(`\k<` + m[2] + ">") // which regexp2 refuses, by its name
				continue
			}
			groups++
			p.names[m[1]] = groups
			b.WriteByte('(')
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// translate rewrites what Python spells differently from RE2: \Z, and {,n}.
func translate(s string) string {
	var b strings.Builder
	class := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			if s[i] == 'Z' && !class {
				b.WriteString(`\z`)
				continue
			}
			b.WriteByte('\\')
			b.WriteByte(s[i])
			continue
		case s[i] == '[' && !class:
			class = true
			b.WriteByte('[')
			if i+1 < len(s) && s[i+1] == '^' {
				i++
				b.WriteByte('^')
			}
			if i+1 < len(s) && s[i+1] == ']' { // the first ] is itself
				i++
				b.WriteString(`\]`)
			}
			continue
		case s[i] == '[':
			if i+1 >= len(s) || s[i+1] != ':' {
				b.WriteByte('\\')
			}
		case s[i] == ']':
			class = false
		case s[i] == '{' && !class && strings.HasPrefix(s[i:], "{,"):
			b.WriteString("{0")
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// match is the place of a match and of its groups, in bytes: pairs, -1 for a
// group that took no part.
type match []int

// find returns the first match, nil when there is none.
func (p *pattern) find(text string) (match, error) {
	if p.fast != nil {
		return p.fast.FindStringSubmatchIndex(text), nil
	}
	m, err := p.slow.Find(text)
	if err != nil {
		return nil, p.slowError(err)
	}
	if m == nil {
		return nil, nil
	}
	return offsets(m, newRunes(text)), nil
}

// findAll returns every match.
func (p *pattern) findAll(text string) ([]match, error) {
	var all []match
	if p.fast != nil {
		for _, m := range p.fast.FindAllStringSubmatchIndex(text, -1) {
			all = append(all, m)
		}
		return all, nil
	}
	runes := newRunes(text)
	m, err := p.slow.Find(text)
	for ; err == nil && m != nil; m, err = p.slow.Next(m) {
		all = append(all, offsets(m, runes))
	}
	if err != nil {
		return nil, p.slowError(err)
	}
	return all, nil
}

func (p *pattern) slowError(err error) error {
	return fmt.Errorf("match %q: %w (a pattern without lookaround and backreferences is faster)", p.source, err)
}

// runes turns offsets in runes into offsets in bytes.
type runes []int

func newRunes(text string) runes {
	out := make(runes, 0, utf8.RuneCountInString(text)+1)
	for i := range text {
		out = append(out, i)
	}
	return append(out, len(text))
}

func offsets(m *regexp2.Match, r runes) match {
	var out match
	for _, g := range m.Groups() {
		if len(g.Captures) == 0 {
			out = append(out, -1, -1)
			continue
		}
		out = append(out, r[g.Index], r[g.Index+g.Length])
	}
	return out
}

// expand fills a replacement as Python's Match.expand does: \1, \g<1>,
// \g<name>, and the escapes of characters. A group that took no part is empty.
func (p *pattern) expand(template, text string, m match) (string, error) {
	var b strings.Builder
	for i := 0; i < len(template); i++ {
		if template[i] != '\\' || i+1 == len(template) {
			b.WriteByte(template[i])
			continue
		}
		i++
		used, err := p.escape(&b, template[i:], text, m)
		if err != nil {
			return "", err
		}
		i += used - 1
	}
	return b.String(), nil
}

// escape writes what the escape at the start of rest (behind the backslash)
// stands for, and returns how many bytes it takes.
func (p *pattern) escape(b *strings.Builder, rest, text string, m match) (int, error) {
	switch ch := rest[0]; {
	case ch == '0':
		b.WriteByte(0)
		return 1, nil
	case ch >= '1' && ch <= '9':
		n := 1
		if len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9' {
			n = 2
		}
		return n, p.group(b, number(rest[:n]), rest[:n], text, m)
	case ch == 'g':
		name, _, closed := strings.Cut(strings.TrimPrefix(rest[1:], "<"), ">")
		if !closed || !strings.HasPrefix(rest[1:], "<") {
			return 0, fmt.Errorf(`missing group name in the replacement: write \g<1> or \g<name>`)
		}
		i, known := p.names[name]
		if !known {
			if i = number(name); i == 0 && name != "0" {
				return 0, fmt.Errorf("the pattern %q has no group %q", p.source, name)
			}
		}
		return len(name) + 3, p.group(b, i, name, text, m)
	}
	special := map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'a': "\a", 'f': "\f", 'v': "\v", '\\': `\`}
	if s, ok := special[rest[0]]; ok {
		b.WriteString(s)
		return 1, nil
	}
	b.WriteString(`\` + rest[:1])
	return 1, nil
}

func (p *pattern) group(b *strings.Builder, i int, name, text string, m match) error {
	if 2*i+1 >= len(m) {
		return fmt.Errorf("invalid group reference %s: the pattern %q has %d", name, p.source, len(m)/2-1)
	}
	if m[2*i] >= 0 {
		b.WriteString(text[m[2*i]:m[2*i+1]])
	}
	return nil
}

// replaceAll replaces every match in text, and counts them.
func (p *pattern) replaceAll(text, template string) (string, int, error) {
	all, err := p.findAll(text)
	if err != nil || len(all) == 0 {
		return text, 0, err
	}
	var b strings.Builder
	last := 0
	for _, m := range all {
		s, err := p.expand(template, text, m)
		if err != nil {
			return "", 0, err
		}
		b.WriteString(text[last:m[0]] + s)
		last = m[1]
	}
	return b.String() + text[last:], len(all), nil
}

package pyregex

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Template is the replacement for matches: text with \1 and \g<name>.
type Template struct{ parts []part }

// part is a text followed by a group; group is -1 for none.
type part struct {
	text  string
	group int
}

// Template parses a replacement for matches of the pattern. The error is Python's.
func (re *Regexp) Template(text string) (*Template, error) {
	s := newSource(text)
	t := &Template{}
	var b strings.Builder
	group := func(n, offset int, name string) {
		if n > re.Groups() {
			s.fail(offset, "invalid group reference %s", name)
		}
		t.parts = append(t.parts, part{b.String(), n})
		b.Reset()
	}
	for s.next != "" {
		switch this := s.get(); {
		case this[0] != '\\':
			b.WriteString(this)
		case this == `\g`:
			n, name := re.groupOf(&s)
			group(n, utf8.RuneCountInString(name)+1, name)
		case this == `\0`:
			b.WriteRune(s.octal(this+s.while(2, octal)) & 0xff)
		case strings.Contains(digits, this[1:]):
			number, isOctal := s.number(this)
			if isOctal {
				b.WriteRune(s.octal(number))
				continue
			}
			group(atoi(number[1:]), len(number)-1, number[1:])
		case this == `\b`:
			b.WriteByte('\b')
		case simpleEscape(this) >= 0:
			b.WriteRune(simpleEscape(this))
		default:
			if c := rune(this[1]); c < utf8.RuneSelf && unicode.IsLetter(c) {
				s.fail(2, "bad escape %s", this)
			}
			b.WriteString(this)
		}
	}
	t.parts = append(t.parts, part{b.String(), -1})
	return t, s.err
}

// groupOf reads <1> or <name>.
func (re *Regexp) groupOf(s *source) (group int, name string) {
	if !s.accept("<") {
		s.fail(0, "missing <")
		return 0, ""
	}
	name = s.until(">", "group name")
	group, known := re.names[name]
	switch {
	case known:
	case isIdentifier(name):
		s.stop(fmt.Errorf("unknown group name %s", quote(name)))
	case strings.Trim(name, digits) != "":
		s.fail(utf8.RuneCountInString(name)+1, "bad character in group name %s", quote(name))
	default:
		group = atoi(name)
	}
	return group, name
}

// Group returns the number of a group by its name or number.
func (re *Regexp) Group(name string) (int, error) {
	if n, ok := re.names[name]; ok {
		return n, nil
	}
	if strings.Trim(name, digits) == "" && atoi(name) <= re.Groups() {
		return atoi(name), nil
	}
	return 0, fmt.Errorf("no such group: %s", name)
}

// Expand returns the template with the groups of a match inserted.
func (t *Template) Expand(text string, m Match) string {
	var b strings.Builder
	t.expand(&b, text, m)
	return b.String()
}

func (t *Template) expand(b *strings.Builder, text string, m Match) {
	for _, p := range t.parts {
		b.WriteString(p.text)
		if p.group >= 0 {
			b.WriteString(m.Text(text, p.group))
		}
	}
}

// Replace returns the text with its matches replaced. The bool is false if the result has more than limit bytes.
func (t *Template) Replace(text string, matches []Match, limit int) (string, bool) {
	var b strings.Builder
	last := 0
	for _, m := range matches {
		b.WriteString(text[last:m[0]])
		if t.expand(&b, text, m); b.Len() > limit {
			return "", false
		}
		last = m[1]
	}
	b.WriteString(text[last:])
	return b.String(), true
}

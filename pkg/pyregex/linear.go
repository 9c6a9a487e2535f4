package pyregex

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// linear is a pattern compiled by the standard library, which matches in linear time.
type linear struct {
	re    *regexp.Regexp
	ascii bool // only for ASCII texts: other texts have more letters, digits and case pairs
	ended bool // only for texts that do not end with a line end: $ matches before it, too
}

// newLinear returns nil for a pattern that the standard library does not support or interprets differently.
func newLinear(n *node, flags Flags, groups int) *linear {
	l := &linear{}
	var b strings.Builder
	if flags&(AtStart|Whole) != 0 {
		b.WriteString(`\A`)
	}
	b.WriteString("(?:")
	if !l.write(&b, n) {
		return nil
	}
	b.WriteString(")")
	if flags&Whole != 0 {
		b.WriteString(`\z`)
	}
	var err error
	if l.re, err = regexp.Compile(b.String()); err != nil || l.re.NumSubexp() != groups {
		return nil
	}
	return l
}

// fits reports whether the standard library returns the same as Python for a text.
func (l *linear) fits(text string) bool {
	if l == nil || l.ended && strings.HasSuffix(text, "\n") {
		return false
	}
	return !l.ascii || strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

func (l *linear) write(b *strings.Builder, n *node) bool {
	switch n.op {
	case opChar:
		return l.members(b, n, set{ranges: []rune{n.char, n.char}})
	case opSet:
		return l.members(b, n, n.set)
	case opAt:
		return l.at(b, n)
	case opSeq:
		return l.join(b, n, "(?:", "")
	case opBranch:
		return l.join(b, n, "(?:", "|")
	case opGroup:
		return l.join(b, n, "(", "")
	case opRepeat:
		if n.subs[0].least == 0 { // captures of empty iterations differ
			return false
		}
		if !l.join(b, n, "(?:", "") {
			return false
		}
		switch {
		case n.max == unbounded:
			fmt.Fprintf(b, "{%d,}", n.min)
		default:
			fmt.Fprintf(b, "{%d,%d}", n.min, n.max)
		}
		if n.lazy {
			b.WriteString("?")
		}
		return true
	}
	return false
}

func (l *linear) join(b *strings.Builder, n *node, open, between string) bool {
	b.WriteString(open)
	for i, sub := range n.subs {
		if i > 0 {
			b.WriteString(between)
		}
		if !l.write(b, sub) {
			return false
		}
	}
	b.WriteString(")")
	return true
}

func (l *linear) at(b *strings.Builder, n *node) bool {
	lines := n.flags&Multiline != 0
	switch {
	case n.char == '^' && lines, n.char == '$' && lines:
		fmt.Fprintf(b, "(?m:%c)", n.char)
	case n.char == '^', n.char == 'A':
		b.WriteString(`\A`)
	case n.char == '$', n.char == 'Z':
		l.ended = l.ended || n.char == '$'
		b.WriteString(`\z`)
	case n.char == 'b':
		l.ascii = l.ascii || n.flags&ASCII == 0
		b.WriteString(`\b`)
	default:
		return false
	}
	return true
}

// kind returns the characters of a class letter in ASCII, plus the Unicode blanks without the ASCII flag.
func kind(letter rune, flags Flags) string {
	blanks, others := `\t-\r\x1c-\x20`, `\x00-\x08\x0e-\x1b\x21-`
	if flags&ASCII != 0 {
		blanks, others = `\t-\r\x20`, `\x00-\x08\x0e-\x1f\x21-`
	}
	last := `\x{10FFFF}`
	if flags&IgnoreCase != 0 {
		last = `\x7f` // the text is ASCII, but other cases of higher characters can be ASCII letters
	}
	switch letter {
	case 'd':
		return `0-9`
	case 's':
		return blanks
	case 'w':
		return `0-9A-Z_a-z`
	case 'D':
		return `\x00-/:-` + last
	case 'S':
		return others + last
	}
	return "\\x00-/:-@\\[-\\^`{-" + last
}

// members writes a set of characters.
func (l *linear) members(b *strings.Builder, n *node, s set) bool {
	fold := n.flags&IgnoreCase != 0
	l.ascii = l.ascii || fold || s.kinds != "" && n.flags&ASCII == 0
	if len(s.ranges) == 0 && s.kinds == "" {
		b.WriteString("(?s:.)")
		return true
	}
	open := "["
	if fold {
		open = "(?i:["
	}
	b.WriteString(open)
	if s.negate {
		b.WriteString("^")
	}
	for i, r := range s.ranges {
		if !utf8.ValidRune(r) || fold && r > unicode.MaxASCII {
			return false
		}
		if i%2 == 1 {
			b.WriteString("-")
		}
		fmt.Fprintf(b, `\x{%X}`, r)
	}
	for _, letter := range s.kinds {
		b.WriteString(kind(letter, n.flags))
	}
	if b.WriteString("]"); fold {
		b.WriteString(")")
	}
	return true
}

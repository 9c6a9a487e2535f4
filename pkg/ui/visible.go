package ui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// isText reports whether a rune only draws a character. The others make a
// terminal do something, or make a line look like another one, and are shown
// as escapes: C0, DEL and C1; line separators; and all that has no width of its
// own, such as bidirectional controls, zero-width characters and tags. Joiners
// are among them, at the price of some emoji and ligatures: the names of hosts
// and tasks must not differ in what nobody can see. Combining marks and variation
// selectors change how the character before them looks, and stay.
func isText(r rune) bool {
	switch {
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return false
	case r < 0xad:
		return true
	}
	return !unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point) ||
		unicode.Is(unicode.Prepended_Concatenation_Mark, r) // Arabic number signs, which are drawn
}

// The characters of layout that a text may have.
const (
	blockLayout  = "\n\t"
	inlineLayout = "\t"
)

// visible returns a text of lines in which all that is no text is escaped.
func visible(s string) string { return escape(s, blockLayout, people) }

// Inline is a text as it stands within a line: line ends are escaped too.
func Inline(s string) string { return escape(s, inlineLayout, people) }

// hanging is the indent of lines that go on with the first one.
const hanging = "  "

// continued indents the lines after the first, unless they are indented, so
// that none of them looks like a line of its own.
func continued(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i > 0 && line != "" && line[0] != ' ' && line[0] != '\t' {
			lines[i] = hanging + line
		}
	}
	return strings.Join(lines, "\n")
}

// speller writes what stands for a rune. A byte that is no UTF-8 comes as
// its value, with valid false.
type speller func(b *strings.Builder, r rune, valid bool)

func escape(s, layout string, spell speller) string {
	plain := 0
	for plain < len(s) && s[plain] >= ' ' && s[plain] < 0x7f {
		plain++
	}
	if plain == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:plain])
	for rest := s[plain:]; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			spell(&b, rune(rest[0]), false)
		case isText(r) || strings.ContainsRune(layout, r):
			b.WriteString(rest[:size])
		default:
			spell(&b, r, true)
		}
		rest = rest[size:]
	}
	return b.String()
}

// people spells a rune as programmers know it.
func people(b *strings.Builder, r rune, valid bool) {
	switch {
	case !valid:
		fmt.Fprintf(b, `\x%02x`, r)
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\r':
		b.WriteString(`\r`)
	case r < 0x80:
		fmt.Fprintf(b, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// inJSON spells a rune in a string of JSON, which then says the same. What is
// no UTF-8 has no place in JSON.
func inJSON(b *strings.Builder, r rune, valid bool) {
	switch high, low := utf16.EncodeRune(r); {
	case !valid:
		b.WriteString(`\ufffd`)
	case r > 0xffff:
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

package ui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// isText reports whether a rune only draws a character. Other runes control a terminal, or make a
// line look like another one, and are shown as escapes: C0, DEL and C1; line separators; and
// everything without a width of its own, such as bidirectional controls, zero-width characters
// and tags. That includes joiners, at the expense of some emoji and ligatures: names of hosts and
// tasks must not differ invisibly. Combining marks and variation selectors change the preceding
// character, and are kept.
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

// The layout characters that a text may contain.
const (
	blockLayout  = "\n\t"
	inlineLayout = "\t"
)

// visible returns a text with everything in it that is not text escaped.
func visible(s string) string { return escape(s, blockLayout, people) }

// Inline is a text within a line: line ends are escaped too.
func Inline(s string) string { return escape(s, inlineLayout, people) }

// hanging is the indent of continuation lines.
const hanging = "  "

// continued indents the lines after the first, unless they are indented already, so that none of
// them looks like a separate message.
func continued(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i > 0 && line != "" && line[0] != ' ' && line[0] != '\t' {
			lines[i] = hanging + line
		}
	}
	return strings.Join(lines, "\n")
}

// speller writes the escape for a rune. A byte that is not UTF-8 is passed as its value, with
// valid false.
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

// people writes a rune in the escape notation of programming languages.
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

// inJSON writes a rune as an escape in a JSON string, with the same meaning. Invalid UTF-8 cannot
// be represented in JSON.
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

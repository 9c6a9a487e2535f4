package ui

import (
	"strings"
	"unicode"
)

// runeWidth is how many terminal columns a rune occupies.
func runeWidth(r rune) int {
	switch {
	case r < ' ' || r >= 0x7f && r < 0xa0 || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case isWide(r):
		return 2
	}
	return 1
}

func isWide(r rune) bool {
	switch {
	case r < 0x1100:
		return false
	case r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf && r != 0x303f, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1f6ff, r >= 0x1f900 && r <= 0x1f9ff, r >= 0x20000 &&
			r <= 0x3fffd:
		return true
	}
	return false
}

func textWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// fit truncates a line to at most width columns.
func fit(s string, width int) string {
	var b strings.Builder
	left := width
	for _, r := range s {
		if r == '\t' {
			r = ' '
		}
		if left -= runeWidth(r); left < 0 {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// wrap breaks text at blanks into lines of at most width columns, leaving room for a hanging
// indent after the first; a longer word is broken.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	room := func() int {
		if len(lines) > 0 {
			return width - len(hanging)
		}
		return width
	}
	for _, word := range strings.Fields(text) {
		for textWidth(word) > room() {
			if line != "" {
				lines = append(lines, line)
				line = ""
			}
			head := fit(word, room())
			if head == "" || len(head) >= len(word) {
				break
			}
			lines = append(lines, head)
			word = word[len(head):]
		}
		switch {
		case line == "":
			line = word
		case textWidth(line)+1+textWidth(word) <= room():
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

package source

import "strings"

// behindQuote is the result of openIn for text after a closing quote.
const behindQuote = byte('.')

// openIn finds a quote or a bracket that a line of YAML opens and does not close. It also finds text after a
// closing quote, and a value with an invalid first character. It returns the character and its offset, or 0.
func openIn(line string) (byte, int) {
	var open []int // offsets of brackets
	begins := true // a value can begin here
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == ' ' || c == '\t':
			continue
		case c == '#' && (i == 0 || line[i-1] == ' '):
			i = len(line)
			continue
		case begins && (c == '"' || c == '\''):
			end := closing(line, i)
			if end < 0 {
				return c, i
			}
			i = end
			if at := textBehind(line, end+1, len(open) > 0); at > 0 {
				return behindQuote, at
			}
		case (begins || len(open) > 0) && (c == '[' || c == '{'):
			open = append(open, i)
		case len(open) > 0 && (c == ']' || c == '}'):
			open = open[:len(open)-1]
		case begins && strings.IndexByte("@`%", c) >= 0, begins && (c == '*' || c == '&') && !named(line[i+1:]):
			return c, i
		}
		begins = beginsAfter(line, i, len(open) > 0)
	}
	if len(open) > 0 {
		return line[open[len(open)-1]], open[len(open)-1]
	}
	return 0, 0
}

// beginsAfter reports whether a value can begin after byte i.
func beginsAfter(line string, i int, flow bool) bool {
	blank := i+1 == len(line) || line[i+1] == ' '
	switch line[i] {
	case ':':
		return blank || flow
	case '-':
		return blank && strings.Trim(line[:i], " -") == ""
	case '[', '{', ',':
		return flow
	}
	return false
}

func named(rest string) bool {
	return rest != "" && strings.IndexByte(" *&,]}", rest[0]) < 0
}

// closing returns the offset of the quote that closes the quote at i, or -1 if it is not on this line.
func closing(line string, i int) int {
	quote := line[i]
	for j := i + 1; j < len(line); j++ {
		switch {
		case quote == '"' && line[j] == '\\':
			j++
		case line[j] != quote:
		case quote == '\'' && j+1 < len(line) && line[j+1] == quote:
			j++
		default:
			return j
		}
	}
	return -1
}

// textBehind returns the offset of invalid text after a closing quote, or 0 if there is none.
func textBehind(line string, i int, flow bool) int {
	rest := strings.TrimLeft(line[i:], " \t")
	if rest == "" || rest[0] == '#' || rest[0] == ':' || flow && strings.IndexByte(",]}", rest[0]) >= 0 {
		return 0
	}
	return len(line) - len(rest)
}

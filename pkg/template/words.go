package template

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is one token of a tag's arguments. Tags need no finer tokens.
type word struct {
	text     string // an identifier, an operator or bracket, or a whole string
	from, to int    // offsets in the arguments
	depth    int    // number of brackets around it; for a bracket: those outside it
	name     bool   // an identifier
}

// splitWords splits a tag's arguments. The scanner has already checked strings and brackets.
func splitWords(args string) []word {
	var out []word
	depth := 0
	for i := 0; i < len(args); {
		c := args[i]
		n := nameLen(args[i:])
		switch {
		case c < utf8.RuneSelf && unicode.IsSpace(rune(c)):
			i++
			continue
		case n > 0:
			out = append(out, word{args[i : i+n], i, i + n, depth, true})
		case c == '\'' || c == '"':
			n = len(args) - i
			if end := skipString(args, i); end > 0 {
				n = end - i
			}
			out = append(out, word{args[i : i+n], i, i + n, depth, false})
		case c >= '0' && c <= '9':
			n = numberLen(args[i:])
			out = append(out, word{args[i : i+n], i, i + n, depth, false})
		default:
			n = markLen(args[i:])
			if strings.IndexByte(")]}", c) >= 0 {
				depth = max(0, depth-1)
			}
			out = append(out, word{args[i : i+n], i, i + n, depth, false})
			if strings.IndexByte("([{", c) >= 0 {
				depth++
			}
		}
		i += n
	}
	return out
}

// numberLen accepts digits, dots and letters. The expression compiler checks the details.
func numberLen(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool {
		return r != '.' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if n < 0 {
		return len(s)
	}
	return n
}

// markLen keeps comparison operators with an equals sign in one piece.
func markLen(s string) int {
	if len(s) > 1 && s[1] == '=' && strings.IndexByte("=!<>", s[0]) >= 0 {
		return 2
	}
	return 1
}

// find returns the index of the first word at depth 0 with that text, -1 for none.
func find(words []word, text string) int {
	for i, w := range words {
		if w.depth == 0 && w.text == text {
			return i
		}
	}
	return -1
}

// splitCommas splits words at the commas at depth 0. A trailing comma adds nothing.
func splitCommas(words []word) [][]word {
	var out [][]word
	for len(words) > 0 {
		i := find(words, ",")
		if i < 0 {
			return append(out, words)
		}
		out = append(out, words[:i])
		words = words[i+1:]
	}
	return out
}

// ends reports whether words end in the given names, and returns the words before them.
func ends(words []word, names ...string) ([]word, bool) {
	n := len(words) - len(names)
	if n < 0 {
		return words, false
	}
	for i, name := range names {
		if w := words[n+i]; !w.name || w.depth != 0 || w.text != name {
			return words, false
		}
	}
	return words[:n], true
}

// trimContext removes `with context` or `without context` from the end.
func trimContext(words []word, with bool) ([]word, bool) {
	if rest, ok := ends(words, "without", "context"); ok {
		return rest, false
	}
	if rest, ok := ends(words, "with", "context"); ok {
		return rest, true
	}
	return words, with
}

func quoteNames(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return joinList(quoted)
}

func joinList(items []string) string { return strings.Join(items, ", ") }

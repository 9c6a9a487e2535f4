package playbook

import (
	"errors"
	"strings"
)

// Word is one word of a module's text: `key=value`, or a plain word (Key "").
// At and ValueAt are the bytes of the text where the word and its value begin.
type Word struct {
	Key, Value  string
	At, ValueAt int
}

// blanks separate words.
const blanks = " \t\r\n"

// SplitWords splits `k=v k2="a b" rest` at blanks that are neither quoted nor
// inside {{ }} or {% %}. Quotes around a whole value are dropped.
func SplitWords(text string) ([]Word, error) {
	var out []Word
	for rest := strings.TrimLeft(text, blanks); rest != ""; {
		word, tail, err := nextWord(rest)
		if err != nil {
			return nil, err
		}
		out = append(out, parseWord(word, len(text)-len(rest)))
		rest = strings.TrimLeft(tail, blanks)
	}
	return out, nil
}

var errQuote = errors.New("a quote or a {{ is not closed")

func nextWord(s string) (word, rest string, err error) {
	var quote byte
	depth := 0
	for i := 0; i < len(s); i++ {
		two := ""
		if i+1 < len(s) {
			two = s[i : i+2]
		}
		switch c := s[i]; {
		case quote != 0:
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
		case two == "{{" || two == "{%":
			depth++
			i++
		case depth > 0 && (two == "}}" || two == "%}"):
			depth--
			i++
		case c == '\'' || c == '"':
			quote = c
		case depth == 0 && strings.IndexByte(blanks, c) >= 0:
			return s[:i], s[i:], nil
		}
	}
	if quote != 0 || depth > 0 {
		return "", "", errQuote
	}
	return s, "", nil
}

func parseWord(w string, at int) Word {
	k, v, ok := strings.Cut(w, "=")
	if !ok || !IsIdentifier(k) {
		return Word{Value: w, At: at, ValueAt: at}
	}
	word := Word{Key: k, Value: unquote(v), At: at, ValueAt: at + len(k) + 1}
	if word.Value != v {
		word.ValueAt++ // behind the quote
	}
	return word
}

func unquote(s string) string {
	if len(s) < 2 || s[0] != s[len(s)-1] || (s[0] != '\'' && s[0] != '"') {
		return s
	}
	inner := s[1 : len(s)-1]
	if strings.IndexByte(inner, s[0]) >= 0 && !strings.Contains(inner, `\`+s[:1]) {
		return s
	}
	return strings.ReplaceAll(inner, `\`+s[:1], s[:1])
}

// TakeWords cuts the k=v words whose key is known out of a text, and returns
// them and the rest as it was.
func TakeWords(text string, known func(key string) bool) (rest string, words []Word) {
	var kept strings.Builder
	for left := text; left != ""; {
		blank := left[:len(left)-len(strings.TrimLeft(left, blanks))]
		word, tail, err := nextWord(left[len(blank):])
		if err != nil { // an unclosed quote is the shell's to judge
			kept.WriteString(left)
			break
		}
		if w := parseWord(word, len(text)-len(left)+len(blank)); w.Key != "" && known(w.Key) {
			words = append(words, w)
		} else {
			kept.WriteString(blank + word)
		}
		left = tail
	}
	return strings.Trim(kept.String(), blanks), words
}

package playbook

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
)

// Word is one argument in the text of a module: `key=value`, or plain text with an empty Key. At and ValueAt are the
// byte offsets at which the argument and its value begin.
type Word struct {
	Key, Value  string
	At, ValueAt int
}

// blanks separate arguments.
const blanks = " \t\r\n"

// SplitWords splits `k=v k2="a b" rest` at blanks that are neither quoted nor inside {{ }} or
// {% %}. Escapes in a value are decoded, and quotes around it removed.
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
		case c == '\\' && i+1 < len(s) && strings.IndexByte(`'"`, s[i+1]) >= 0:
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
	word := Word{Key: k, Value: unescape(v), At: at, ValueAt: at + len(k) + 1}
	if n := len(word.Value); n > 1 && word.Value[0] == word.Value[n-1] && (word.Value[0] == '\'' || word.Value[0] == '"') {
		word.Value = word.Value[1 : n-1]
		word.ValueAt++ // after the quote
	}
	return word
}

// unescape decodes the escapes that Ansible decodes in every k=v: the escapes of Python that are a letter, a quote, a
// backslash or a number in hexadecimal digits. Others are kept, including \N{NAME}.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		if at := strings.IndexByte(`\'"abfnrtv`, s[i+1]); at >= 0 {
			out.WriteByte("\\'\"\a\b\f\n\r\t\v"[at])
			i++
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i+1]]
		if end := i + 2 + digits; digits > 0 && end <= len(s) {
			if n, err := strconv.ParseUint(s[i+2:end], 16, 32); err == nil && n <= unicode.MaxRune {
				out.WriteRune(rune(n))
				i = end - 1
				continue
			}
		}
		out.WriteByte('\\')
	}
	return out.String()
}

// ExtractWords removes the k=v arguments with a known key from a text. It returns them and the unchanged rest, except
// that a line that ends in a backslash is joined with the next. Newlines at the end are kept: they belong to a
// command.
func ExtractWords(text string, known func(key string) bool) (rest string, words []Word) {
	var kept strings.Builder
	for left := text; left != ""; {
		blank := left[:len(left)-len(strings.TrimLeft(left, blanks))]
		word, tail, err := nextWord(left[len(blank):])
		if err != nil { // the shell reports an unclosed quote
			kept.WriteString(left)
			break
		}
		switch w := parseWord(word, len(text)-len(left)+len(blank)); {
		case w.Key != "" && known(w.Key):
			words = append(words, w)
			if strings.Trim(tail, blanks) == "" {
				tail = ""
			}
		case word == `\` && strings.HasPrefix(tail, "\n"):
			if kept.WriteString(blank); len(blank) > 0 && strings.HasPrefix(tail[1:], " ") {
				tail = tail[1:]
			}
			tail = tail[1:]
		default:
			kept.WriteString(blank + word)
		}
		left = tail
	}
	return strings.TrimLeft(kept.String(), blanks), words
}

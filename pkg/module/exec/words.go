package exec

import (
	"errors"
	"strings"

	"kubekey/pkg/shell"
)

var (
	errNoClosingQuote = errors.New("no closing quotation")
	errNoEscaped      = errors.New("no escaped character after the last backslash")
)

// splitWords splits a text into words as a POSIX shell does, without expansion; # has
// no special meaning.
func splitWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	in := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n', '\r':
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		case '\\':
			if i++; i == len(s) {
				return nil, errNoEscaped
			}
			word.WriteByte(s[i])
			in = true
		case '\'', '"':
			n, err := quoted(&word, s[i:])
			if err != nil {
				return nil, err
			}
			i += n - 1
			in = true
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// quoted reads the quoted text that s starts with and returns its length.
func quoted(word *strings.Builder, s string) (int, error) {
	quote := s[0]
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return i + 1, nil
		case quote == '"' && s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			fallthrough
		default:
			word.WriteByte(s[i])
		}
	}
	return 0, errNoClosingQuote
}

// Expandable returns a shell word for s in which the host's shell expands a
// leading ~ and variables, but nothing else; an unset variable is kept
// as written. With glob, * ? and simple [sets] match files as well.
func Expandable(s string, glob bool) string {
	var b strings.Builder
	s = tilde(&b, s)
	literal := 0
	flush := func(end int) {
		if end > literal {
			b.WriteString(shell.Quote(s[literal:end]))
		}
	}
	for i := 0; i < len(s); {
		n := 0
		text := ""
		if name, length := variable(s[i:]); length > 0 {
			n, text = length, `"${`+name+`-\`+escaped(s[i:i+length])+`}"`
		} else if glob {
			n = globLength(s[i:])
			text = s[i : i+n]
		}
		if n == 0 {
			i++
			continue
		}
		flush(i)
		b.WriteString(text)
		i += n
		literal = i
	}
	flush(len(s))
	if b.Len() == 0 {
		return "''"
	}
	return b.String()
}

// escaped escapes ${NAME} for use as a default inside "${NAME-...}".
func escaped(reference string) string { return strings.ReplaceAll(reference, "}", `\}`) }

// tilde writes a leading ~ or ~user so that the shell expands it, and returns the rest.
func tilde(b *strings.Builder, s string) string {
	if !strings.HasPrefix(s, "~") {
		return s
	}
	user, rest, slash := strings.Cut(s[1:], "/")
	if strings.Trim(user, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" {
		return s
	}
	b.WriteString("~" + user)
	if slash {
		b.WriteByte('/')
	}
	return rest
}

// variable reads $NAME or ${NAME} at the start of s.
func variable(s string) (name string, length int) {
	if len(s) < 2 || s[0] != '$' {
		return "", 0
	}
	start := 1
	if s[1] == '{' {
		start = 2
	}
	end := start
	for end < len(s) && isNameByte(s[end], end == start) {
		end++
	}
	name = s[start:end]
	switch {
	case name == "":
		return "", 0
	case start == 1:
		return name, end
	case end < len(s) && s[end] == '}':
		return name, end + 1
	}
	return "", 0
}

func isNameByte(c byte, first bool) bool {
	switch {
	case c == '_', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		return true
	}
	return !first && '0' <= c && c <= '9'
}

// globLength is the length of the glob character or set that s starts with.
func globLength(s string) int {
	switch s[0] {
	case '*', '?':
		return 1
	case '[':
		end := strings.IndexByte(s, ']')
		if end > 1 && strings.Trim(s[1:end], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-!") == "" {
			return end + 1
		}
	}
	return 0
}

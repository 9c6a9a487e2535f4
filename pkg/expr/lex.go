package expr

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokName             // text is the name; keywords are names as well
	tokNumber           // value is an int or float64
	tokString           // value is the decoded string
	tokOp               // text is the operator
)

type token struct {
	kind     tokenKind
	text     string
	value    any
	pos, end int // byte offsets in the source
}

// describe names the token for a message.
func (t token) describe() string {
	switch t.kind {
	case tokEnd:
		return "end of the expression"
	case tokString:
		return "a string"
	}
	return "'" + t.text + "'"
}

// syntaxError is a problem at a byte offset of the source.
type syntaxError struct {
	pos, width int
	msg, help  string
}

func (e *syntaxError) Error() string { return e.msg }

// operators, longest first.
var operators = [...]string{
	"**", "//", "==", "!=", "<=", ">=",
	"+", "-", "*", "/", "%", "~", "<", ">", "=", "|", ".", ",", ":", "(", ")", "[", "]", "{", "}",
}

type lexer struct {
	src    string
	lit    Literals
	tokens []token
}

// lex splits a source into tokens; the last one is tokEnd.
func lex(src string, lit Literals) ([]token, *syntaxError) {
	l := &lexer{src: src, lit: lit, tokens: make([]token, 0, len(src)/3+2)}
	for i := 0; i < len(src); {
		if isSpace(src[i]) {
			i++
			continue
		}
		end, err := l.next(i)
		if err != nil {
			return nil, err
		}
		i = end
	}
	l.add(token{kind: tokEnd, pos: len(src), end: len(src)})
	return l.tokens, nil
}

func (l *lexer) add(t token) { l.tokens = append(l.tokens, t) }

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// next adds the token at offset i and returns its end.
func (l *lexer) next(i int) (int, *syntaxError) {
	switch c := l.src[i]; {
	case c == '\'' || c == '"':
		return l.str(i)
	case isDigit(c):
		return l.number(i)
	}
	if end := l.nameEnd(i); end > i {
		l.add(token{kind: tokName, text: l.src[i:end], pos: i, end: end})
		return end, nil
	}
	for _, op := range operators {
		if strings.HasPrefix(l.src[i:], op) {
			l.add(token{kind: tokOp, text: op, pos: i, end: i + len(op)})
			return i + len(op), nil
		}
	}
	return 0, l.strange(i)
}

func (l *lexer) strange(i int) *syntaxError {
	r, _ := utf8.DecodeRuneInString(l.src[i:])
	e := &syntaxError{pos: i, width: 1, msg: fmt.Sprintf("unexpected character %q", r)}
	switch r {
	case '&':
		e.help = "write 'and'"
	case '!':
		e.help = "write 'not'"
	case '“', '”', '‘', '’':
		e.help = "write straight quotes"
	case '$':
		e.help = "names stand without a dollar sign"
	}
	return e
}

func (l *lexer) nameEnd(i int) int {
	end := i
	for end < len(l.src) {
		r, size := utf8.DecodeRuneInString(l.src[end:])
		ok := r == '_' || unicode.IsLetter(r) || end > i && unicode.IsDigit(r)
		if !ok || r == utf8.RuneError {
			break
		}
		end += size
	}
	return end
}

// number scans an int (also 0x, 0o, 0b) or a float, with _ between digits. After a dot (`a.0.1`) only an int is
// possible.
func (l *lexer) number(i int) (int, *syntaxError) {
	if l.src[i] == '0' && i+1 < len(l.src) && strings.IndexByte("xXoObB", l.src[i+1]) >= 0 {
		return l.integer(i, l.digits(i+2, isAlnum))
	}
	end := l.digits(i, isDigit)
	if n := len(l.tokens); n > 0 && l.tokens[n-1].text == "." && l.tokens[n-1].kind == tokOp {
		return l.integer(i, end)
	}
	whole := end
	if end+1 < len(l.src) && l.src[end] == '.' && isDigit(l.src[end+1]) {
		end = l.digits(end+1, isDigit)
	}
	end = l.exponent(end)
	if end == whole {
		return l.integer(i, end)
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(l.src[i:end], "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, l.badNumber(i, end)
	}
	l.add(token{kind: tokNumber, text: l.src[i:end], value: f, pos: i, end: end})
	return end, nil
}

func isAlnum(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (l *lexer) exponent(end int) int {
	if end >= len(l.src) || l.src[end] != 'e' && l.src[end] != 'E' {
		return end
	}
	i := end + 1
	if i < len(l.src) && (l.src[i] == '+' || l.src[i] == '-') {
		i++
	}
	if i >= len(l.src) || !isDigit(l.src[i]) {
		return end
	}
	return l.digits(i, isDigit)
}

func (l *lexer) digits(i int, ok func(byte) bool) int {
	for i < len(l.src) && (ok(l.src[i]) || l.src[i] == '_' && i+1 < len(l.src) && ok(l.src[i+1])) {
		i++
	}
	return i
}

func (l *lexer) integer(i, end int) (int, *syntaxError) {
	text := strings.ReplaceAll(l.src[i:end], "_", "")
	if len(text) > 1 && text[0] == '0' && isDigit(text[1]) {
		if strings.Trim(text, "0") != "" {
			return 0, &syntaxError{i, end - i, "a number cannot start with 0", "write a string ('" + text +
				"') or an octal number (0o" + strings.TrimLeft(text, "0") + ")"}
		}
		text = "0"
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return 0, l.badNumber(i, end)
	}
	l.add(token{kind: tokNumber, text: l.src[i:end], value: int(n), pos: i, end: end})
	return end, nil
}

func (l *lexer) badNumber(i, end int) *syntaxError {
	return &syntaxError{i, end - i, "'" + l.src[i:end] + "' is no number that fits 64 bits", ""}
}

func (l *lexer) str(i int) (int, *syntaxError) {
	quote := l.src[i]
	escapes := false
	for end := i + 1; end < len(l.src); end++ {
		switch l.src[end] {
		case '\\':
			escapes = true
			end++
		case quote:
			text := l.src[i+1 : end]
			if escapes {
				text = l.unescape(text)
			}
			l.add(token{kind: tokString, text: l.src[i : end+1], value: text, pos: i, end: end + 1})
			return end + 1, nil
		}
	}
	return 0, &syntaxError{i, 1, "this string does not end", "add a " + string(quote)}
}

func (l *lexer) unescape(s string) string {
	if l.lit == Raw {
		return strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `\"`, `"`).Replace(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		i += 1 + escape(&b, s[i+1:])
	}
	return b.String()
}

// simpleEscapes are Python's one-letter escapes.
const simpleEscapes = "n\nt\tr\ra\ab\bf\fv\v\\\\''\"\""

// escape writes the character for the escape at the start of s, which follows a backslash, and returns the bytes
// that it read. An unknown escape keeps its backslash, as in Python.
func escape(b *strings.Builder, s string) int {
	for i := 0; i < len(simpleEscapes); i += 2 {
		if simpleEscapes[i] == s[0] {
			b.WriteByte(simpleEscapes[i+1])
			return 1
		}
	}
	switch c := s[0]; {
	case c == '\n':
		return 1
	case c == 'x':
		return codeEscape(b, s, 1, 2, 16)
	case c == 'u':
		return codeEscape(b, s, 1, 4, 16)
	case c == 'U':
		return codeEscape(b, s, 1, 8, 16)
	case c >= '0' && c <= '7':
		n := 1
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			n++
		}
		return codeEscape(b, s, 0, n, 8)
	}
	b.WriteByte('\\')
	return 0
}

func codeEscape(b *strings.Builder, s string, skip, width, base int) int {
	if len(s) >= skip+width {
		if n, err := strconv.ParseUint(s[skip:skip+width], base, 32); err == nil {
			b.WriteRune(rune(min(n, unicode.MaxRune+1)))
			return skip + width
		}
	}
	b.WriteByte('\\')
	return 0
}

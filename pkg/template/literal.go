package template

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"kubekey/pkg/value"
)

var (
	errNoLiteral      = errors.New("not a literal")
	errLiteralTooDeep = errors.New("literal nests too deep")
)

// maxLiteralDepth bounds how deep lists and dicts of a literal nest.
const maxLiteralDepth = 100

// parseLiteral reads a Python or JSON literal: strings, numbers, True/true,
// None/null, lists, tuples, dicts. It evaluates nothing: the text may hold
// data, and data is never run.
func parseLiteral(s string) (any, error) {
	p := &literalParser{s: s}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.skip(); p.i < len(p.s) {
		return nil, errNoLiteral
	}
	return v, nil
}

type literalParser struct {
	s string
	i int
}

func (p *literalParser) skip() {
	for p.i < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.i]) >= 0 {
		p.i++
	}
}

// accept skips blanks and takes c if it is next.
func (p *literalParser) accept(c byte) bool {
	p.skip()
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *literalParser) value(depth int) (any, error) {
	if depth > maxLiteralDepth {
		return nil, errLiteralTooDeep
	}
	p.skip()
	if p.i >= len(p.s) {
		return nil, errNoLiteral
	}
	switch p.s[p.i] {
	case '[':
		p.i++
		return p.list(']', depth)
	case '(':
		p.i++
		return p.tuple(depth)
	case '{':
		p.i++
		return p.dict(depth)
	case '\'', '"':
		return p.strings()
	}
	return p.word()
}

func (p *literalParser) list(end byte, depth int) (any, error) {
	out := []any{}
	for !p.accept(end) {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		if p.accept(',') {
			continue
		}
		if !p.accept(end) {
			return nil, errNoLiteral
		}
		break
	}
	return out, nil
}

// tuple reads behind "(": a tuple is a list, but a value in parentheses is itself.
func (p *literalParser) tuple(depth int) (any, error) {
	start := p.i
	v, err := p.value(depth + 1)
	if err == nil && p.accept(')') {
		return v, nil
	}
	p.i = start
	return p.list(')', depth)
}

func (p *literalParser) dict(depth int) (any, error) {
	out := value.NewDict()
	for !p.accept('}') {
		k, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		switch k.(type) {
		case []any, *value.Dict:
			return nil, errNoLiteral
		}
		if !p.accept(':') {
			return nil, errNoLiteral
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out.Set(k, v)
		if p.accept(',') {
			continue
		}
		if !p.accept('}') {
			return nil, errNoLiteral
		}
		break
	}
	return out, nil
}

// strings reads one string, or several that stand side by side.
func (p *literalParser) strings() (any, error) {
	var b strings.Builder
	for p.i < len(p.s) && (p.s[p.i] == '\'' || p.s[p.i] == '"') {
		if err := p.str(&b); err != nil {
			return nil, err
		}
		p.skip()
	}
	return b.String(), nil
}

func (p *literalParser) str(b *strings.Builder) error {
	quote := p.s[p.i]
	for p.i++; p.i < len(p.s); p.i++ {
		switch c := p.s[p.i]; c {
		case quote:
			p.i++
			return nil
		case '\n':
			return errNoLiteral
		case '\\':
			if err := p.escape(b); err != nil {
				return err
			}
		default:
			b.WriteByte(c)
		}
	}
	return errNoLiteral
}

// escape reads the escape at p.i and leaves p.i at its last byte.
func (p *literalParser) escape(b *strings.Builder) error {
	if p.i++; p.i >= len(p.s) {
		return errNoLiteral
	}
	c := p.s[p.i]
	if i := strings.IndexByte(`nrtabfv0\'"/`, c); i >= 0 {
		b.WriteByte("\n\r\t\a\b\f\v\x00\\'\"/"[i])
		return nil
	}
	size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if size == 0 {
		b.WriteByte('\\') // Python keeps an escape that it does not know
		b.WriteByte(c)
		return nil
	}
	if p.i+size >= len(p.s) {
		return errNoLiteral
	}
	n, err := strconv.ParseUint(p.s[p.i+1:p.i+1+size], 16, 32)
	if err != nil || n > utf8.MaxRune {
		return errNoLiteral
	}
	b.WriteRune(rune(n))
	p.i += size
	return nil
}

// word reads a constant or a number.
func (p *literalParser) word() (any, error) {
	start := p.i
	for p.i < len(p.s) && strings.IndexByte(" \t\r\n,:]})", p.s[p.i]) < 0 {
		p.i++
	}
	switch word := p.s[start:p.i]; word {
	case "True", "true":
		return true, nil
	case "False", "false":
		return false, nil
	case "None", "null":
		return nil, nil
	default:
		return parseNumber(word)
	}
}

func parseNumber(word string) (any, error) {
	digits := strings.TrimLeft(word, "+-")
	if digits == "" || len(word)-len(digits) > 1 || digits[0] != '.' && (digits[0] < '0' || digits[0] > '9') {
		return nil, errNoLiteral
	}
	if n, err := strconv.Atoi(word); err == nil && (digits == "0" || digits[0] != '0') {
		return n, nil
	}
	if strings.Trim(digits, "0123456789.eE+-") != "" || !strings.ContainsAny(digits, ".eE") {
		return nil, errNoLiteral
	}
	f, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return nil, errNoLiteral
	}
	return f, nil
}

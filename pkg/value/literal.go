package value

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

var errNoLiteral = errors.New("not a Python literal")

// maxLiteralDepth is how deep brackets nest in Python.
const maxLiteralDepth = 200

// LiteralNames are the names that a literal may contain.
type LiteralNames map[string]any

// PythonNames are those of ast.literal_eval.
func PythonNames() LiteralNames { return LiteralNames{"True": true, "False": false, "None": nil} }

// JSONNames are those of Python and of JSON, as Ansible evaluates what templates yield.
func JSONNames() LiteralNames {
	return LiteralNames{"True": true, "False": false, "None": nil, "true": true, "false": false, "null": nil}
}

// FromLiteral reads a Python literal as ast.literal_eval does. Tuples and sets become lists. It
// evaluates nothing: the text may hold data, and data is never run. Bytes, complex and very large
// numbers, named characters and tuples as keys are rejected, since values cannot represent them.
func FromLiteral(text string, names LiteralNames) (any, error) {
	p := &literalParser{text: strings.TrimLeft(text, " \t"), names: names}
	if strings.Contains(text, "\x00") {
		return nil, errNoLiteral
	}
	p.skip()
	v := p.value()
	if p.lineSkip(); p.next(',') {
		v = p.rest([]any{v}, 0)
	}
	if p.lineSkip(); p.lineEnds() {
		p.skip()
	}
	if p.at < len(p.text) {
		p.err = errNoLiteral
	}
	if p.err != nil {
		return nil, p.err
	}
	return v, nil
}

// literalParser is at a byte of a text. After an error it is at the end.
type literalParser struct {
	text  string
	at    int
	depth int
	names LiteralNames
	err   error
}

func (p *literalParser) fail() any {
	p.err, p.at = errNoLiteral, len(p.text)
	return nil
}

// skip consumes blanks, newlines and comments, as allowed inside brackets.
func (p *literalParser) skip() {
	for p.lineSkip(); p.at < len(p.text) && (p.text[p.at] == '\n' || p.text[p.at] == '\r'); p.lineSkip() {
		p.at++
	}
}

// lineSkip consumes the same within a line.
func (p *literalParser) lineSkip() {
	for p.at < len(p.text) {
		switch rest := p.text[p.at:]; {
		case strings.IndexByte(" \t\f", rest[0]) >= 0:
			p.at++
		case strings.HasPrefix(rest, "\\\n") && len(rest) > 2:
			p.at += 2
		case rest[0] == '#':
			if i := strings.IndexAny(rest, "\r\n"); i >= 0 {
				p.at += i
				return
			}
			p.at = len(p.text)
		default:
			return
		}
	}
}

func (p *literalParser) lineEnds() bool {
	return p.at == len(p.text) || p.text[p.at] == '\n' || p.text[p.at] == '\r'
}

// next consumes c if it comes next.
func (p *literalParser) next(c byte) bool {
	if p.at == len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++
	return true
}

func (p *literalParser) value() any {
	if p.depth > maxLiteralDepth || p.at == len(p.text) {
		return p.fail()
	}
	switch c := p.text[p.at]; {
	case strings.IndexByte("[({", c) >= 0:
		p.at++
		p.depth++
		defer func() { p.depth-- }()
		return p.brackets(c)
	case c == '+' || c == '-':
		return p.signed()
	case c == '.' || c >= '0' && c <= '9':
		return p.number("")
	case stringStart.MatchString(p.text[p.at:]):
		return p.strings()
	}
	name := identifier.FindString(p.text[p.at:])
	p.at += len(name)
	if v, known := p.names[name]; known {
		return v
	}
	if name == "set" && emptyCall.MatchString(p.text[p.at:]) {
		p.at += len(emptyCall.FindString(p.text[p.at:]))
		return []any{}
	}
	return p.fail()
}

var (
	identifier  = regexp.MustCompile(`^[A-Za-z_][0-9A-Za-z_]*`)
	emptyCall   = regexp.MustCompile(`^[ \t]*\([ \t\r\n]*\)`)
	stringStart = regexp.MustCompile(`^[rRuU]?['"]`)
)

// brackets reads behind the first bracket.
func (p *literalParser) brackets(open byte) any {
	end := map[byte]byte{'[': ']', '(': ')', '{': '}'}[open]
	if p.skip(); p.next(end) {
		if open == '{' {
			return NewDict()
		}
		return []any{}
	}
	first := p.value()
	p.skip()
	switch {
	case open == '{' && p.next(':'):
		return p.dict(first)
	case p.next(end):
		if open == '(' {
			return first // in parentheses, and no tuple
		}
		return p.collected([]any{first}, open)
	case p.next(','):
		return p.collected(p.rest([]any{first}, end), open)
	}
	return p.fail()
}

// collected is a list, or a set, which has nothing twice.
func (p *literalParser) collected(list []any, open byte) any {
	if open != '{' {
		return list
	}
	set := NewDict()
	for _, v := range list {
		p.set(set, v, nil)
	}
	out := []any{}
	for k := range set.All() {
		out = append(out, k)
	}
	return out
}

// rest reads what follows a comma, up to the bracket end; 0 is the end of the text.
func (p *literalParser) rest(list []any, end byte) []any {
	for {
		skip := p.skip
		if end == 0 {
			skip = p.lineSkip
		}
		skip()
		if end == 0 && p.lineEnds() || end != 0 && p.next(end) {
			return list
		}
		list = append(list, p.value())
		if skip(); p.next(',') {
			continue
		}
		if end != 0 && !p.next(end) {
			p.fail()
		}
		return list
	}
}

// dict reads behind the colon of the first key.
func (p *literalParser) dict(key any) any {
	out := NewDict()
	for p.err == nil {
		p.skip()
		p.set(out, key, p.value())
		p.skip()
		comma := p.next(',')
		if p.skip(); p.next('}') {
			return out
		}
		if !comma {
			break
		}
		key = p.value()
		if p.skip(); !p.next(':') {
			break
		}
	}
	return p.fail()
}

func (p *literalParser) set(d *Dict, key, v any) {
	switch key.(type) {
	case []any, *Dict:
		p.fail()
	default:
		d.Set(key, v)
	}
}

// signed reads a number behind its sign.
func (p *literalParser) signed() any {
	sign := p.text[p.at : p.at+1]
	p.at++
	p.skip()
	parens := 0
	for ; p.next('('); parens++ {
		p.skip()
	}
	v := p.number(sign)
	for ; parens > 0; parens-- {
		if p.skip(); !p.next(')') {
			return p.fail()
		}
	}
	return v
}

const someDigits = `[0-9](?:_?[0-9])*`

var (
	floatForm = regexp.MustCompile(
		`^(?:(?:(?:` + someDigits + `)?\.` + someDigits + `|` + someDigits + `\.)(?:[eE][+-]?` + someDigits + `)?|` +
			someDigits + `[eE][+-]?` + someDigits + `)`)
	wordGoesOn = regexp.MustCompile(`^[.\pL\pN_]`)
	intForm    = regexp.MustCompile(
		`^(?:0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|[1-9](?:_?[0-9])*|0(?:_?0)*)`)
)

func (p *literalParser) number(sign string) any {
	rest := p.text[p.at:]
	word := floatForm.FindString(rest)
	isInt := word == ""
	if isInt {
		word = intForm.FindString(rest)
	}
	p.at += len(word)
	if word == "" || wordGoesOn.MatchString(rest[len(word):]) {
		return p.fail()
	}
	if isInt {
		n, err := strconv.ParseInt(sign+word, 0, 64)
		if err != nil {
			return p.fail()
		}
		return int(n)
	}
	f, _ := strconv.ParseFloat(sign+strings.ReplaceAll(word, "_", ""), 64) // out of range is infinity
	return f
}

// strings reads one string, or several adjacent ones.
func (p *literalParser) strings() any {
	var b strings.Builder
	for p.err == nil && stringStart.MatchString(p.text[p.at:]) {
		c := p.text[p.at]
		if c != '\'' && c != '"' {
			p.at++
		}
		p.quoted(&b, c == 'r' || c == 'R')
		if p.depth > 0 {
			p.skip()
			continue
		}
		p.lineSkip()
	}
	return b.String()
}

func (p *literalParser) quoted(b *strings.Builder, raw bool) {
	quote := p.text[p.at : p.at+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(p.text[p.at:], triple) {
		quote = triple
	}
	p.at += len(quote)
	for p.at < len(p.text) {
		switch rest := p.text[p.at:]; {
		case strings.HasPrefix(rest, quote):
			p.at += len(quote)
			return
		case rest[0] == '\\' && raw && len(rest) > 1:
			b.WriteString(rest[:2])
			p.at += 2
		case rest[0] == '\\':
			p.escape(b)
		case len(quote) == 1 && (rest[0] == '\n' || rest[0] == '\r'):
			p.fail()
			return
		default:
			b.WriteByte(rest[0])
			p.at++
		}
	}
	p.fail()
}

var octalDigits = regexp.MustCompile(`^[0-7]{1,3}`)

// escape reads an escape sequence.
func (p *literalParser) escape(b *strings.Builder) {
	rest := p.text[p.at+1:]
	if rest == "" {
		p.fail()
		return
	}
	if i := strings.IndexByte(`abfnrtv\'"`, rest[0]); i >= 0 {
		b.WriteByte("\a\b\f\n\r\t\v\\'\""[i])
		p.at += 2
		return
	}
	if number := octalDigits.FindString(rest); number != "" {
		n, _ := strconv.ParseUint(number, 8, 16)
		b.WriteRune(rune(n))
		p.at += 1 + len(number)
		return
	}
	switch rest[0] {
	case 'x', 'u', 'U':
		b.WriteRune(p.hex())
	case '\n':
		p.at += 2
	case 'N':
		p.fail()
	default: // Python keeps unknown escapes
		b.WriteString(p.text[p.at : p.at+2])
		p.at += 2
	}
}

// hex reads \x41, \u0041, \U00000041, and the surrogate pairs of JSON.
func (p *literalParser) hex() rune {
	r := p.hexDigits()
	if utf16.IsSurrogate(r) && strings.HasPrefix(p.text[p.at:], `\u`) {
		r = utf16.DecodeRune(r, p.hexDigits())
	}
	if r == utf8.RuneError || !utf8.ValidRune(r) {
		p.fail()
	}
	return r
}

func (p *literalParser) hexDigits() rune {
	size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[p.text[p.at+1]]
	digits := p.text[p.at+2:]
	if len(digits) < size {
		p.fail()
		return 0
	}
	n, err := strconv.ParseUint(digits[:size], 16, 32)
	if err != nil || n > unicode.MaxRune {
		p.fail()
		return 0
	}
	p.at += 2 + size
	return rune(n)
}

package inventory

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"kubekey/pkg/value"
)

// typed reads a value of an INI inventory as Ansible does: a Python literal
// is what it says, anything else is text.
func typed(text string) any {
	p := literal{text: text}
	v, ok := p.tuple()
	if !ok {
		return text
	}
	return v
}

// maxLiteralDepth bounds nested literals; deeper ones are text.
const maxLiteralDepth = 50

// literal parses Python literals: numbers, strings, True, False, None, lists,
// tuples, sets and dicts.
type literal struct {
	text  string
	pos   int
	depth int
}

// tuple parses the whole text: a literal, or several with commas between.
func (p *literal) tuple() (any, bool) {
	v, ok := p.value()
	if !ok {
		return nil, false
	}
	p.space()
	if !p.eat(',') {
		return v, p.done()
	}
	list := []any{v}
	for !p.done() {
		if v, ok = p.value(); !ok {
			return nil, false
		}
		list = append(list, v)
		if p.space(); !p.eat(',') {
			break
		}
	}
	return list, p.done()
}

// done reports whether only blanks or a comment are left.
func (p *literal) done() bool {
	p.space()
	return p.pos == len(p.text) || p.text[p.pos] == '#'
}

func (p *literal) space() {
	for p.pos < len(p.text) && strings.IndexByte(" \t", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *literal) eat(c byte) bool {
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *literal) value() (any, bool) {
	if p.depth++; p.depth > maxLiteralDepth {
		return nil, false
	}
	defer func() { p.depth-- }()
	p.space()
	if p.pos == len(p.text) {
		return nil, false
	}
	switch c := p.text[p.pos]; c {
	case '[':
		p.pos++
		return p.list(']')
	case '(':
		p.pos++
		return p.parens()
	case '{':
		p.pos++
		return p.braces()
	case '\'', '"':
		return p.quoted()
	}
	return p.word()
}

func (p *literal) list(end byte) (any, bool) {
	out := []any{}
	for {
		if p.space(); p.eat(end) {
			return out, true
		}
		v, ok := p.value()
		if !ok {
			return nil, false
		}
		out = append(out, v)
		if p.space(); !p.eat(',') {
			return out, p.eat(end)
		}
	}
}

// parens is a tuple, or a value in parentheses.
func (p *literal) parens() (any, bool) {
	start := p.pos
	v, ok := p.list(')')
	list, _ := v.([]any)
	if ok && len(list) == 1 && !strings.HasSuffix(strings.TrimRight(p.text[start:p.pos-1], " \t"), ",") {
		return list[0], true
	}
	return v, ok
}

// braces is a dict, or a set, which becomes a list.
func (p *literal) braces() (any, bool) {
	out := value.NewDict()
	if p.space(); p.eat('}') {
		return out, true
	}
	for first := true; ; first = false {
		if p.space(); !first && p.eat('}') {
			return out, true
		}
		start := p.pos
		key, ok := p.value()
		if !ok {
			return nil, false
		}
		if p.space(); !p.eat(':') {
			p.pos = start
			return p.set(first)
		}
		v, ok := p.value()
		if !ok || !hashable(key) {
			return nil, false
		}
		out.Set(key, v)
		if p.space(); !p.eat(',') {
			return out, p.eat('}')
		}
	}
}

func (p *literal) set(first bool) (any, bool) {
	if !first {
		return nil, false
	}
	return p.list('}')
}

func hashable(key any) bool {
	switch key.(type) {
	case []any, *value.Dict:
		return false
	}
	return true
}

// word is a number or a name that Python knows.
func (p *literal) word() (any, bool) {
	start := p.pos
	for p.pos < len(p.text) && strings.IndexByte(" \t,:]})([{'\"#", p.text[p.pos]) < 0 {
		p.pos++
	}
	switch w := p.text[start:p.pos]; w {
	case "True":
		return true, true
	case "False":
		return false, true
	case "None":
		return nil, true
	default:
		return pythonNumber(w)
	}
}

func pythonNumber(w string) (any, bool) {
	digits := strings.TrimLeft(w, "+-")
	if digits == "" || len(w)-len(digits) > 1 || !(digits[0] >= '0' && digits[0] <= '9' || digits[0] == '.') {
		return nil, false
	}
	if strings.HasPrefix(digits, "0") && strings.Trim(digits, "0123456789_") == "" && strings.Trim(digits, "0_") != "" {
		return nil, false // 0644 is no number in Python
	}
	if i, err := strconv.ParseInt(w, 0, 64); err == nil {
		return int(i), true
	}
	if strings.ContainsAny(digits, "xXpP") {
		return nil, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(w, "_", ""), 64)
	return f, err == nil
}

// escapeLetters and escapeValues are Python's one-letter escapes, in step.
const (
	escapeLetters = `ntr\'"0abfv`
	escapeValues  = "\n\t\r\\'\"\x00\a\b\f\v"
)

func (p *literal) quoted() (any, bool) {
	quote := p.text[p.pos]
	p.pos++
	var b strings.Builder
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		p.pos++
		switch {
		case c == quote:
			return b.String(), true
		case c == '\\' && p.pos < len(p.text):
			p.escape(&b)
		default:
			b.WriteByte(c)
		}
	}
	return nil, false
}

func (p *literal) escape(b *strings.Builder) {
	c := p.text[p.pos]
	p.pos++
	if i := strings.IndexByte(escapeLetters, c); i >= 0 {
		b.WriteByte(escapeValues[i])
		return
	}
	if size := hexDigits(c); size > 0 && p.pos+size <= len(p.text) {
		if n, err := strconv.ParseUint(p.text[p.pos:p.pos+size], 16, 32); err == nil && utf8.ValidRune(rune(n)) {
			b.WriteRune(rune(n))
			p.pos += size
			return
		}
	}
	b.WriteByte('\\')
	b.WriteByte(c)
}

// hexDigits is how many digits the escape takes, 0 when it is none.
func hexDigits(c byte) int {
	switch c {
	case 'x':
		return 2
	case 'u':
		return 4
	case 'U':
		return 8
	}
	return 0
}

package expr

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"kubekey/pkg/value"
)

// FormatPercent is Python's format % args. A list is several arguments, a dict provides %(name)s, anything else is
// a single argument.
func FormatPercent(format string, args any) (string, error) {
	p := &percent{format: format}
	switch a := args.(type) {
	case []any:
		p.args, p.tuple = a, true
	case *value.Dict:
		p.dict, p.args = a, []any{a}
	default:
		p.args = []any{a}
	}
	if err := p.run(); err != nil {
		return "", err
	}
	if p.next < len(p.args) && p.dict == nil {
		return "", errors.New("not all arguments converted during string formatting")
	}
	return p.out.String(), nil
}

type percent struct {
	format string
	i      int
	args   []any
	next   int
	tuple  bool
	dict   *value.Dict
	out    strings.Builder
}

// verb is one %-directive.
type verb struct {
	minus, plus, blank, zero, sharp bool
	width, prec                     int // prec is -1 when not given
	letter                          byte
}

func (p *percent) run() error {
	for p.i < len(p.format) {
		c := p.format[p.i]
		p.i++
		if c != '%' {
			p.out.WriteByte(c)
			continue
		}
		if err := p.directive(); err != nil {
			return err
		}
		if p.out.Len() > MaxSize {
			return ErrTooBig
		}
	}
	return nil
}

var errIncomplete = errors.New("incomplete format: a text percent sign is written %%")

func (p *percent) directive() error {
	var arg any
	named := false
	if p.peek() == '(' {
		end := strings.IndexByte(p.format[p.i:], ')')
		if end < 0 {
			return errors.New("incomplete format key")
		}
		if p.dict == nil {
			return errors.New("format requires a mapping")
		}
		key := p.format[p.i+1 : p.i+end]
		v, ok := p.dict.Get(key)
		if !ok {
			return fmt.Errorf("the format names '%s', which the mapping lacks", key)
		}
		arg, named = v, true
		p.i += end + 1
	}
	v, err := p.verb()
	if err != nil {
		return err
	}
	if v.letter == '%' {
		p.out.WriteByte('%')
		return nil
	}
	if !named {
		if arg, err = p.take(); err != nil {
			return err
		}
	}
	if arg, err = Defined(arg); err != nil {
		return err
	}
	text, err := v.render(arg)
	p.out.WriteString(text)
	return err
}

func (p *percent) peek() byte {
	if p.i < len(p.format) {
		return p.format[p.i]
	}
	return 0
}

func (p *percent) take() (any, error) {
	if p.next >= len(p.args) {
		return nil, errors.New("not enough arguments for format string")
	}
	p.next++
	return p.args[p.next-1], nil
}

func (p *percent) verb() (verb, error) {
	v := verb{prec: -1}
	for flag := true; flag; {
		switch p.peek() {
		case '-':
			v.minus = true
		case '+':
			v.plus = true
		case ' ':
			v.blank = true
		case '0':
			v.zero = true
		case '#':
			v.sharp = true
		default:
			flag = false
			continue
		}
		p.i++
	}
	var err error
	if v.width, err = p.number(); err != nil {
		return v, err
	}
	if v.width < 0 {
		v.minus, v.width = true, -v.width
	}
	if p.peek() == '.' {
		p.i++
		if v.prec, err = p.number(); err != nil {
			return v, err
		}
		v.prec = max(v.prec, 0)
	}
	for c := p.peek(); c == 'l' || c == 'h' || c == 'L'; c = p.peek() {
		p.i++
	}
	if p.i >= len(p.format) {
		return v, errIncomplete
	}
	v.letter = p.format[p.i]
	p.i++
	return v, nil
}

// maxWidth limits the width and precision of a directive.
const maxWidth = 1 << 16

func (p *percent) number() (int, error) {
	if p.peek() == '*' {
		p.i++
		arg, err := p.take()
		if err != nil {
			return 0, err
		}
		n, ok := AsInt(arg)
		if !ok || n > maxWidth || n < -maxWidth {
			return 0, errors.New("* wants a small int")
		}
		return n, nil
	}
	n := 0
	for isDigit(p.peek()) {
		n = n*10 + int(p.peek()-'0')
		p.i++
		if n > maxWidth {
			return 0, fmt.Errorf("a width in a format is at most %d", maxWidth)
		}
	}
	return n, nil
}

func (v verb) render(arg any) (string, error) {
	switch v.letter {
	case 's':
		return v.text(PyStr(arg)), nil
	case 'r', 'a':
		return v.text(value.Repr(arg)), nil
	case 'c':
		return v.char(arg)
	case 'd', 'i', 'u':
		return v.whole(arg)
	case 'x', 'X', 'o':
		return v.based(arg)
	case 'f', 'F', 'e', 'E', 'g', 'G':
		return v.float(arg)
	}
	r, _ := utf8.DecodeRuneInString(string(v.letter))
	return "", fmt.Errorf("unsupported format character %q: a text percent sign is written %%%%", r)
}

func (v verb) text(s string) string {
	if v.prec >= 0 {
		if runes := []rune(s); len(runes) > v.prec {
			s = string(runes[:v.prec])
		}
	}
	return v.pad("", s, false)
}

func (v verb) char(arg any) (string, error) {
	if s, ok := arg.(string); ok && utf8.RuneCountInString(s) == 1 {
		return v.pad("", s, false), nil
	}
	if n, ok := AsInt(arg); ok && n >= 0 && n <= utf8.MaxRune {
		return v.pad("", string(rune(n)), false), nil
	}
	return "", errors.New("%c requires int or char")
}

func (v verb) whole(arg any) (string, error) {
	n, ok := AsInt(arg)
	if f, isFloat := arg.(float64); isFloat && math.Abs(f) < 1<<63 {
		n, ok = int(f), true
	}
	if !ok {
		return "", fmt.Errorf("%%%c format: a number is required, not %s", v.letter, value.TypeName(arg))
	}
	return v.number(n < 0, "", strconv.FormatUint(magnitude(n), 10)), nil
}

func (v verb) based(arg any) (string, error) {
	n, ok := AsInt(arg)
	if !ok {
		return "", fmt.Errorf("%%%c format: an integer is required, not %s", v.letter, value.TypeName(arg))
	}
	base, prefix := 16, "0x"
	if v.letter == 'o' {
		base, prefix = 8, "0o"
	}
	if !v.sharp {
		prefix = ""
	}
	digits := strconv.FormatUint(magnitude(n), base)
	if v.letter == 'X' {
		digits, prefix = strings.ToUpper(digits), strings.ToUpper(prefix)
	}
	return v.number(n < 0, prefix, digits), nil
}

// number pads the digits of an int to the precision and adds the sign.
func (v verb) number(negative bool, prefix, digits string) string {
	if len(digits) < v.prec {
		digits = strings.Repeat("0", v.prec-len(digits)) + digits
	}
	return v.pad(v.signOf(negative)+prefix, digits, true)
}

func (v verb) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case v.plus:
		return "+"
	case v.blank:
		return " "
	}
	return ""
}

func (v verb) float(arg any) (string, error) {
	f, ok := FloatOf(arg)
	if !ok {
		return "", fmt.Errorf("must be real number, not %s", value.TypeName(arg))
	}
	prec := v.prec
	if prec < 0 {
		prec = 6
	}
	digits := formatFloat(math.Abs(f), v.letter, prec, v.sharp)
	return v.pad(v.signOf(math.Signbit(f)), digits, !math.IsInf(f, 0) && !math.IsNaN(f)), nil
}

// formatFloat formats a float without its sign as C's printf does.
func formatFloat(f float64, letter byte, prec int, sharp bool) string {
	upper := letter >= 'A' && letter <= 'Z'
	if upper {
		letter += 'a' - 'A'
	}
	var s string
	switch {
	case math.IsInf(f, 0):
		s = "inf"
	case math.IsNaN(f):
		s = "nan"
	default:
		flag := ""
		if sharp {
			flag = "#"
		}
		s = fmt.Sprintf("%"+flag+"."+strconv.Itoa(prec)+string(letter), f)
	}
	if upper {
		s = strings.ToUpper(s)
	}
	return s
}

func (v verb) pad(head, s string, zeros bool) string {
	fill := v.width - utf8.RuneCountInString(head) - utf8.RuneCountInString(s)
	switch {
	case fill <= 0:
		return head + s
	case v.minus:
		return head + s + strings.Repeat(" ", fill)
	case v.zero && zeros:
		return head + strings.Repeat("0", fill) + s
	}
	return strings.Repeat(" ", fill) + head + s
}

package expr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"kubekey/pkg/value"
)

// FormatBraces is Python's '{} {name!r:>10}'.format(...).
func FormatBraces(format string, a Args) (any, error) {
	b := &braces{args: a}
	if err := b.run(format, 0); err != nil {
		return nil, err
	}
	return b.out.String(), nil
}

type braces struct {
	args Args
	next int
	out  strings.Builder
}

func (b *braces) run(s string, depth int) error {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case (c == '{' || c == '}') && i+1 < len(s) && s[i+1] == c:
			b.out.WriteByte(c)
			i += 2
			continue
		case c == '}':
			return errors.New("single '}' encountered in format string")
		case c != '{':
			b.out.WriteByte(c)
			i++
			continue
		}
		end := closing(s[i:])
		if end < 0 {
			return errors.New("single '{' encountered in format string")
		}
		if err := b.field(s[i+1:i+end], depth); err != nil {
			return err
		}
		if i += end + 1; b.out.Len() > MaxSize {
			return ErrTooBig
		}
	}
	return nil
}

// closing returns the offset of the brace that closes the first one.
func closing(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// field parses name!conversion:spec; the spec can contain fields itself.
func (b *braces) field(s string, depth int) error {
	if depth > 1 {
		return errors.New("fields in a format nest too deep")
	}
	path, spec, _ := strings.Cut(s, ":")
	path, conversion, _ := strings.Cut(path, "!")
	v, err := b.find(path)
	if err != nil {
		return err
	}
	if strings.Contains(spec, "{") {
		inner := &braces{args: b.args, next: b.next}
		if err := inner.run(spec, depth+1); err != nil {
			return err
		}
		spec, b.next = inner.out.String(), inner.next
	}
	switch conversion {
	case "":
	case "s":
		v = PyStr(v)
	case "r", "a":
		v = value.Repr(v)
	default:
		return fmt.Errorf("unknown conversion '%s' in a format", conversion)
	}
	text, err := formatSpec(v, spec)
	b.out.WriteString(text)
	return err
}

// find returns the argument of a field: a number or a name, with .attr and [key] after it.
func (b *braces) find(path string) (any, error) {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	v, err := b.argument(path[:end])
	if err != nil {
		return nil, err
	}
	for rest := path[end:]; rest != ""; {
		var key string
		if rest[0] == '[' {
			i := strings.IndexByte(rest, ']')
			if i < 0 {
				return nil, errors.New("missing ']' in format string")
			}
			key, rest = rest[1:i], rest[i+1:]
		} else {
			i := strings.IndexAny(rest[1:], ".[")
			if i < 0 {
				i = len(rest) - 1
			}
			key, rest = rest[1:i+1], rest[i+1:]
		}
		if v, err = Attr(v, key); err != nil {
			return nil, err
		}
	}
	return Defined(v)
}

func (b *braces) argument(name string) (any, error) {
	i, err := strconv.Atoi(name)
	if name == "" {
		i, err = b.next, nil
		b.next++
	}
	if err == nil {
		if i < 0 || i >= len(b.args.Positional) {
			return nil, fmt.Errorf("the format wants argument %d, but there are %d", i, len(b.args.Positional))
		}
		return b.args.Positional[i], nil
	}
	v, ok := b.args.Named.Get(name)
	if !ok {
		return nil, fmt.Errorf("the format names '%s', which is no argument", name)
	}
	return v, nil
}

// spec is Python's [[fill]align][sign][#][0][width][,][.precision][type].
type spec struct {
	fill        string
	align, sign byte
	sharp, zero bool
	width, prec int
	comma       byte
	letter      byte
}

func parseSpec(s string) (spec, error) {
	sp := spec{fill: " ", prec: -1}
	if r, size := utf8.DecodeRuneInString(s); size > 0 && len(s) > size && strings.IndexByte("<>^=", s[size]) >= 0 {
		sp.fill, sp.align, s = string(r), s[size], s[size+1:]
	} else if s != "" && strings.IndexByte("<>^=", s[0]) >= 0 {
		sp.align, s = s[0], s[1:]
	}
	take := func(set string) byte {
		if s == "" || strings.IndexByte(set, s[0]) < 0 {
			return 0
		}
		c := s[0]
		s = s[1:]
		return c
	}
	sp.sign = take("+- ")
	sp.sharp = take("#") != 0
	sp.zero = take("0") != 0
	number := func() int {
		n := 0
		for s != "" && isDigit(s[0]) && n <= maxWidth {
			n = n*10 + int(s[0]-'0')
			s = s[1:]
		}
		return n
	}
	sp.width = number()
	sp.comma = take(",_")
	if take(".") != 0 {
		sp.prec = number()
	}
	sp.letter = take("sdboxXnceEfFgG%")
	if s != "" || max(sp.width, sp.prec) > maxWidth {
		return sp, errors.New("invalid format specifier")
	}
	return sp, nil
}

func formatSpec(v any, text string) (string, error) {
	if text == "" {
		return PyStr(v), nil
	}
	sp, err := parseSpec(text)
	if err != nil {
		return "", err
	}
	head, body, align := "", "", byte('>')
	switch x := v.(type) {
	case bool:
		n, _ := AsInt(x)
		head, body, err = sp.int(n)
	case int:
		head, body, err = sp.int(x)
	case float64:
		head, body, err = sp.float(x)
	default:
		if sp.letter != 0 && sp.letter != 's' {
			return "", fmt.Errorf("unknown format code '%c' for object of type '%s'", sp.letter, value.TypeName(v))
		}
		body, align = PyStr(v), '<'
		if runes := []rune(body); sp.prec >= 0 && len(runes) > sp.prec {
			body = string(runes[:sp.prec])
		}
	}
	if err != nil {
		return "", err
	}
	return sp.pad(head, body, align), nil
}

func (sp spec) int(n int) (head, body string, err error) {
	switch sp.letter {
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		return sp.float(float64(n))
	case 's':
		return "", "", errors.New("unknown format code 's' for object of type 'int'")
	case 'c':
		return "", string(rune(n)), nil
	}
	base, prefix := 10, ""
	switch sp.letter {
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x', 'X':
		base, prefix = 16, "0"+string(sp.letter)
	}
	if !sp.sharp {
		prefix = ""
	}
	body = strconv.FormatUint(magnitude(n), base)
	if sp.letter == 'X' {
		body = strings.ToUpper(body)
	}
	return sp.signOf(n < 0) + prefix, sp.group(body), nil
}

func (sp spec) float(f float64) (head, body string, err error) {
	letter, prec, suffix := sp.letter, sp.prec, ""
	switch letter {
	case 0:
		if prec < 0 {
			body = value.Float(f)
			return sp.signOf(f < 0), sp.group(strings.TrimPrefix(body, "-")), nil
		}
		letter = 'g'
	case 'n':
		letter = 'g'
	case '%':
		f, letter, suffix = f*100, 'f', "%"
	case 'e', 'E', 'f', 'F', 'g', 'G':
	default:
		return "", "", fmt.Errorf("unknown format code '%c' for object of type 'float'", letter)
	}
	if prec < 0 {
		prec = 6
	}
	negative := f < 0
	if negative {
		f = -f
	}
	return sp.signOf(negative), sp.group(formatFloat(f, letter, prec, sp.sharp)) + suffix, nil
}

func (sp spec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case sp.sign == '+' || sp.sign == ' ':
		return string(sp.sign)
	}
	return ""
}

// group inserts the thousands separator into the digits before the decimal point.
func (sp spec) group(s string) string {
	if sp.comma == 0 {
		return s
	}
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(s)
	}
	var b strings.Builder
	for i := range end {
		if i > 0 && (end-i)%3 == 0 {
			b.WriteByte(sp.comma)
		}
		b.WriteByte(s[i])
	}
	return b.String() + s[end:]
}

func (sp spec) pad(head, body string, align byte) string {
	fill := sp.width - utf8.RuneCountInString(head) - utf8.RuneCountInString(body)
	char := sp.fill
	if sp.align != 0 {
		align = sp.align
	} else if sp.zero && align == '>' {
		char, align = "0", '='
	}
	if fill <= 0 {
		return head + body
	}
	switch align {
	case '<':
		return head + body + strings.Repeat(char, fill)
	case '^':
		return strings.Repeat(char, fill/2) + head + body + strings.Repeat(char, fill-fill/2)
	case '=':
		return head + strings.Repeat(char, fill) + body
	}
	return strings.Repeat(char, fill) + head + body
}

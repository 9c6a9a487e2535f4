package value

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Str is the value as Python's str() and a template print it, but nil prints
// as nothing.
func Str(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	}
	return Repr(v)
}

// Repr is the value as Python's repr() prints it: strings quoted, True, None.
func Repr(v any) string {
	var b strings.Builder
	repr(&b, v, 0)
	return b.String()
}

// maxDepth bounds how deep values nest: decoders reject more, printers truncate.
const maxDepth = 100

func repr(b *strings.Builder, v any, depth int) {
	if depth > maxDepth {
		b.WriteString("...")
		return
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int:
		b.WriteString(strconv.Itoa(v))
	case float64:
		b.WriteString(Float(v))
	case string:
		reprString(b, v)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			repr(b, e, depth+1)
		}
		b.WriteByte(']')
	case *Dict:
		b.WriteByte('{')
		first := true
		for k, e := range v.All() {
			if !first {
				b.WriteString(", ")
			}
			first = false
			repr(b, k, depth+1)
			b.WriteString(": ")
			repr(b, e, depth+1)
		}
		b.WriteByte('}')
	case *Undefined:
		b.WriteString("Undefined")
	case time.Time:
		b.WriteString(formatTime(v, ' '))
	case Lazy:
		forced, err := Force(v)
		if err != nil {
			b.WriteString("Undefined")
			return
		}
		repr(b, forced, depth+1)
	default:
		fmt.Fprintf(b, "%v", v)
	}
}

// Float is a float as Python prints it: 5.0, 1e+16, inf, nan.
func Float(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	abs := math.Abs(f)
	if abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		s := strconv.FormatFloat(f, 'e', -1, 64)
		return s
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func reprString(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteByte(quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(b, `\x%02x`, r)
		case !unicode.IsPrint(r) && r > 0xffff:
			fmt.Fprintf(b, `\U%08x`, r)
		case !unicode.IsPrint(r) && r > 0xff:
			fmt.Fprintf(b, `\u%04x`, r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte(quote)
}

// ISOFormat writes a time as Python's isoformat does, and Ansible in JSON.
func ISOFormat(t time.Time) string { return formatTime(t, 'T') }

func formatTime(t time.Time, between byte) string {
	s := t.Format("2006-01-02" + string(between) + "15:04:05")
	if us := t.Nanosecond() / 1000; us != 0 {
		s += fmt.Sprintf(".%06d", us)
	}
	if t.Location() != time.UTC && t.Location() != time.Local {
		s += t.Format("-07:00")
	}
	return s
}

package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
)

// form is one way in which a secret may stand in a text. Of base64 it is the
// characters that the secret alone decides; those beside it, before and after,
// have bits of it too.
type form struct {
	text          string
	before, after int
}

// formsOf lists how a secret may be written: as it is, quoted for JSON, Python,
// YAML, Go or a shell, in a URL, and in base64 wherever it begins in what is encoded.
func formsOf(secret string) []form {
	out := []form{{text: secret}}
	for _, f := range []func(string) string{jsonText, jsonASCII, jsonHTML, goText, pythonText, shellText, shellDouble, yamlSingle} {
		out = append(out, form{text: f(secret)})
	}
	for _, unsafe := range []string{"", "/", "+", "/+", "/:", "$&+,/:;=@"} {
		for _, blank := range []string{"%20", "+"} {
			upper := percent(secret, unsafe, blank)
			out = append(out, form{text: upper}, form{text: lowerHex(upper)})
		}
	}
	out = append(out, form{text: url.PathEscape(secret)})
	for shift := range 3 {
		f := encoded(secret, shift)
		out = append(out, f)
		f.text = strings.NewReplacer("+", "-", "/", "_").Replace(f.text)
		out = append(out, f)
	}
	return out
}

// encoded is the secret in base64 behind shift bytes of something else.
func encoded(secret string, shift int) form {
	padded := make([]byte, shift, shift+len(secret)+2)
	padded = append(append(padded, secret...), 0, 0)
	all := base64.RawStdEncoding.EncodeToString(padded)
	first := (8*shift + 5) / 6           // whose bits are all the secret's
	end := 8 * (shift + len(secret)) / 6 // behind the last such
	f := form{text: all[first:end], before: min(shift, 1)}
	if (shift+len(secret))%3 != 0 {
		f.after = 1
	}
	return f
}

// jsonText is the inside of the secret as a JSON string.
func jsonText(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be written
	return inside(strings.TrimSuffix(b.String(), "\n"))
}

func jsonHTML(s string) string {
	b, _ := json.Marshal(s)
	return inside(string(b))
}

// jsonASCII is jsonText without characters beyond ASCII.
func jsonASCII(s string) string {
	var b strings.Builder
	for _, r := range jsonText(s) {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b.WriteString(`\u` + hex4(high) + `\u` + hex4(low))
		default:
			b.WriteString(`\u` + hex4(r))
		}
	}
	return b.String()
}

func hex4(r rune) string {
	digits := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", 4-len(digits)) + digits
}

func goText(s string) string { return inside(strconv.Quote(s)) }

// pythonText is the inside of repr() in single quotes.
func pythonText(s string) string {
	return strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s)
}

func shellText(s string) string   { return strings.ReplaceAll(s, `'`, `'\''`) }
func shellDouble(s string) string { return strings.ReplaceAll(s, `'`, `'"'"'`) }
func yamlSingle(s string) string  { return strings.ReplaceAll(s, `'`, `''`) }

func inside(quoted string) string { return quoted[1 : len(quoted)-1] }

// percent escapes for a URL all but letters, digits, -._~ and the safe ones.
func percent(s, safe, blank string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0, strings.IndexByte(safe, c) >= 0:
			b.WriteByte(c)
		case c == ' ':
			b.WriteString(blank)
		default:
			b.WriteString("%" + string(digits[c>>4]) + string(digits[c&15]))
		}
	}
	return b.String()
}

// lowerHex writes the digits of escapes in lower case.
func lowerHex(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}

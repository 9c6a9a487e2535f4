package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// encoder encodes a text.
type encoder struct {
	name   string
	encode func(string) string
}

// encoders are the encodings under test. To add one, add a row.
func encoders() []encoder {
	perByte := func(f string) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				fmt.Fprintf(&b, f, s[i])
			}
			return b.String()
		}
	}
	return []encoder{
		{"json", func(s string) string { b, _ := json.Marshal(s); return string(b) }},
		{"json, HTML left", func(s string) string {
			var b strings.Builder
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			_ = e.Encode(s)
			return strings.TrimSpace(b.String())
		}},
		{"json in ASCII", func(s string) string {
			var b strings.Builder
			plain, _ := json.Marshal(s)
			for _, r := range string(plain) {
				switch {
				case r < 0x80:
					b.WriteRune(r)
				case r > 0xFFFF:
					high, low := utf16.EncodeRune(r)
					fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
				default:
					fmt.Fprintf(&b, `\u%04x`, r)
				}
			}
			return b.String()
		}},
		{"every character as \\u", func(s string) string {
			var b strings.Builder
			for _, u := range utf16.Encode([]rune(s)) {
				fmt.Fprintf(&b, `\u%04X`, u)
			}
			return `"` + b.String() + `"`
		}},
		{"go", strconv.Quote},
		{"go in ASCII", strconv.QuoteToASCII},
		{"python", func(s string) string {
			return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(s) + "'"
		}},
		{"shell", func(s string) string { return "'" + strings.ReplaceAll(s, `'`, `'\''`) + "'" }},
		{"shell, as Python quotes", func(s string) string { return "'" + strings.ReplaceAll(s, `'`, `'"'"'`) + "'" }},
		{"printf %q", func(s string) string {
			special := regexp.MustCompile(`[^\w@%+=:,./\n\x80-\xff-]`)
			return special.ReplaceAllStringFunc(s, func(c string) string { return `\` + c })
		}},
		{"$'...'", func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				switch c := s[i]; {
				case c == '\'' || c == '\\':
					b.WriteString(`\` + string(c))
				case c == '\n':
					b.WriteString(`\n`)
				case c < ' ' || c > '~':
					fmt.Fprintf(&b, `\%03o`, c)
				default:
					b.WriteByte(c)
				}
			}
			return "$'" + b.String() + "'"
		}},
		{"regular expression", regexp.QuoteMeta},
		{"re.escape", func(s string) string {
			return regexp.MustCompile(`[^\w]`).ReplaceAllStringFunc(s, func(c string) string { return `\` + c })
		}},
		{"yaml", func(s string) string { return "'" + strings.ReplaceAll(s, `'`, `''`) + "'" }},
		{"csv", func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }},
		{"compose", func(s string) string { return strings.ReplaceAll(s, `$`, `$$`) }},
		{"systemd", func(s string) string { return strings.ReplaceAll(s, `%`, `%%`) }},
		{"query", url.QueryEscape},
		{"path", url.PathEscape},
		{"query in lower case", func(s string) string { return lowerHex(url.QueryEscape(s)) }},
		{"every byte with %", perByte("%%%02X")},
		{"html", html.EscapeString},
		{"xml", func(s string) string {
			var b strings.Builder
			_ = xml.EscapeText(&b, []byte(s))
			return b.String()
		}},
		{"xml names", func(s string) string {
			return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace(s)
		}},
		{"every character as &#x", func(s string) string {
			var b strings.Builder
			for _, r := range s {
				fmt.Fprintf(&b, "&#x%x;", r)
			}
			return b.String()
		}},
		{"base64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
		{"base64 for URLs", func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }},
		{"base64 in lines", func(s string) string {
			return regexp.MustCompile(`.{76}`).ReplaceAllString(base64.StdEncoding.EncodeToString([]byte(s)), "$0\n")
		}},
		{"user:password", func(s string) string { return base64.StdEncoding.EncodeToString([]byte("ada:" + s)) }},
		{"dockerconfigjson", func(s string) string {
			auth, _ := json.Marshal(map[string]any{"auths": map[string]any{"r.example": map[string]string{"password": s}}})
			return base64.StdEncoding.EncodeToString(auth)
		}},
		{"hex", func(s string) string { return hex.EncodeToString([]byte(s)) }},
		{"hex in upper case", func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }},
		{"hex with colons", func(s string) string { return strings.TrimSuffix(perByte("%02x:")(s), ":") }},
		{"od", func(s string) string { return perByte(" %02x")(s) }},
		{"xxd", func(s string) string {
			return regexp.MustCompile(`.{4}`).ReplaceAllString(hex.EncodeToString([]byte(s)), "$0 ")
		}},
		{"\\x", perByte(`\x%02x`)},
		{"bytes of C", func(s string) string { return "{" + strings.TrimSuffix(perByte("0x%02x, ")(s), ", ") + "}" }},
	}
}

// lowerHex writes the digits of escapes in lower case.
func lowerHex(s string) string {
	return regexp.MustCompile(`%[0-9A-F]{2}`).ReplaceAllStringFunc(s, strings.ToLower)
}

// left returns the bytes of a text that are not masked, without the characters that encoders put around texts.
func left(text string) string {
	return strings.Trim(strings.NewReplacer(Mask, "", "0x", "").Replace(text), "'\"=$ \n\\%&;{}")
}

var samples = []string{
	"hunter2", "correct-horse", "pass/w+rd?&=x", `quo"te'd\ back`, "päss wörd", "tab\tand\nline two", "a<b>&c%20d",
	"🔑 key of it", `DOMAIN\new_user`, `50%41 & more`, `&lt;not a tag&gt;`, "S3cr3t!#$%^&*()",
	"пароль&слово", "12345678", "deadbeefcafe",
	`'quoted'`, `"double quoted"`, `\u0041bcd\x41\101`, "$ecret$$x", "AKIAIOSFODNN7EXAMPLE", "ssh-rsa AAAAB3Nza/+",
	"a=b;c,d e",
	"x%%y%zz\\",
	"ä00002%22", "%22quoted%22", "%41%42%43", "&quot;of it&quot;", `\\uä of it`,
	`a "long" secret, of more bytes than a line of base64 holds: päss-wörd`,
}

// Each sample is hidden in each encoding, and in each pair of nested encodings.
func TestEveryEncoding(t *testing.T) {
	all := encoders()
	for _, secret := range samples {
		var s Set
		s.Add(secret)
		for _, outer := range all {
			once := outer.encode(secret)
			inMore := outer.name == "user:password" || outer.name == "dockerconfigjson"
			if shown := s.Text(once); left(shown) != "" && !inMore || !strings.Contains(shown, Mask) {
				t.Errorf("%q as %s: %q is shown as %q", secret, outer.name, once, shown)
			}
			for _, inner := range all {
				text := outer.encode(inner.encode(secret))
				if shown := s.Text(" " + text + " "); !strings.Contains(shown, Mask) {
					t.Errorf("%q as %s in %s: %q is shown as %q", secret, inner.name, outer.name, text, shown)
				}
			}
		}
	}
}

// hasControl reports whether a text has characters that some encodings cannot represent.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7F && r < 0xA0 || r == utf8.RuneError
	})
}

// isFound reports whether a secret is found in every encoding: it is not a common word, and does not only consist
// of quotes and backslashes.
func isFound(secret string) bool {
	return len(secret) >= shortest && !plainWord.MatchString(secret) && reduced(secret)[0].text != ""
}

// hiddenInChains encodes a secret in up to three nested encodings, in several random combinations, and reports
// where it is not hidden.
func hiddenInChains(t *testing.T, secret string, random *rand.Rand) {
	t.Helper()
	all := encoders()
	var s Set
	s.Add(secret)
	for range 20 {
		text, names := secret, ""
		for range 1 + random.IntN(3) {
			e := all[random.IntN(len(all))]
			text, names = e.encode(text), names+", "+e.name
		}
		if shown := s.Text("of it: " + text + " and so on"); !strings.Contains(shown, Mask) {
			t.Errorf("%q as%s: %q is shown as %q", secret, names, text, shown)
		}
	}
}

// The samples are hidden in any three nested encodings.
func FuzzEncoded(f *testing.F) {
	for i, secret := range samples {
		f.Add(secret, uint64(i))
	}
	f.Fuzz(func(t *testing.T, secret string, seed uint64) {
		secret = strings.TrimSpace(secret)
		if len(secret) > 200 || !utf8.ValidString(secret) || strings.Contains(secret, "*") || hasControl(secret) {
			return
		}
		if isFound(secret) {
			hiddenInChains(t, secret, rand.New(rand.NewPCG(seed, 1)))
		}
	})
}

// escapedParts are parts of secrets that look like escapes.
var escapedParts = []string{
	"%22", "%41", "%25", "&amp;", "&lt;", `\u0041`, `\x41`, `\101`, "&#65;", "&#x41", `\`, `\\`, "%", "&", "25", "41",
	"a", "n", "x", "u", "0", ";", "'", `"`, "#", "{", "}", "+", "$", "=", " ", "\n", "key", "\u00e4",
}

// A secret that looks like an escape is hidden in every encoding, too.
func TestSecretsThatLookEscaped(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		secret := ""
		for range 1 + random.IntN(7) {
			secret += escapedParts[random.IntN(len(escapedParts))]
		}
		if secret = strings.TrimSpace(secret); isFound(secret) {
			hiddenInChains(t, secret, random)
		}
	}
}

// The unescaped form of such a secret is not a secret.
func TestWhatASecretStandsForIsShown(t *testing.T) {
	var s Set
	s.Add("ab%22", "%41%42%43", "%22quoted%22", "x%2541y")
	for _, text := range []string{"ab", "cab\n", "ABC", "quoted", `"quoted"`, "xAy", "x%41y"} {
		if shown := s.Text(text); shown != text {
			t.Errorf("%q is shown as %q", text, shown)
		}
	}
}

// In base64 of a text with a secret, no part of the secret remains, at any alignment.
func TestBase64IsCoveredWhole(t *testing.T) {
	for _, secret := range samples {
		var s Set
		s.Add(secret)
		for lead := range 4 {
			for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				text := enc.EncodeToString([]byte("abcd"[:lead] + secret + "tail"))
				shown := s.Text(text)
				for rest := range strings.SplitSeq(shown, Mask) {
					for first := range min(4, len(rest)) {
						part := rest[first:]
						known, _ := enc.DecodeString(part[:len(part)/4*4])
						if strings.Contains(string(known), secret) || len(known) > 4 {
							t.Errorf("%q behind %d bytes: %q is shown as %q", secret, lead, text, shown)
						}
					}
				}
			}
		}
	}
}

// An escaped secret of any length is found in base64 and hexadecimal digits between binary bytes.
func TestSecretsBetweenBytes(t *testing.T) {
	const noText = "\x00\xff\x01\xfe\x80"
	for length := shortest; length < 40; length++ {
		var s Set
		s.Add(`a"` + strings.Repeat("xyzw", 10)[:length-2])
		escaped := `a\"` + strings.Repeat("xyzw", 10)[:length-2]
		for lead := range 6 {
			text := noText[:lead] + escaped + noText[:5-lead]
			inBase64 := base64.StdEncoding.EncodeToString([]byte(text))
			for _, e := range []string{inBase64, hex.EncodeToString([]byte(text)), fmt.Sprintf("% x", text)} {
				if shown := s.Text(e); !strings.Contains(shown, Mask) {
					t.Errorf("a secret of %d bytes behind %d: %q is shown as %q", length, lead, e, shown)
				}
			}
		}
	}
}

// Text without secrets is not modified, even if it looks like an encoding.
func FuzzPlain(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text)
	}
	for _, e := range encoders() {
		f.Add(e.encode("a text\nwith \"nothing\" in it"))
	}
	var s Set
	s.Add("zQ7-this is not in any text-Xw9", "zQ7 p\u00e4ss of it", "zQ7 of lines\nfour-zQ7\nzQ7'three")
	f.Fuzz(func(t *testing.T, text string) {
		if shown := s.Text(text); shown != text {
			t.Errorf("%q is shown as %q", text, shown)
		}
	})
}

// hostile are texts that are expensive to read, from a malicious host.
func hostile() []string {
	nested := "x"
	for range 4 {
		nested = base64.StdEncoding.EncodeToString([]byte(strings.Repeat(nested, 3)))
	}
	return []string{
		`\`, `\\u005c`, `%25`, `%`, `%%`, `&amp;`, `&`, `&#x26;`, `&;`, `'`, `"'`, `\'`, `\u`, `\u00`, `\ud83d`, "\xed",
		`$`, "VVVV", "MDAw", nested, "30", "3030 ", "0x30, ", "41:", "A", "A\n", strings.Repeat("A", 60) + "\n", "a+",
		"%\\&", `&\`, `\&`, "\\n", "=", "--", "\u00e4",
	}
}

// The cost of reading is at most a fixed multiple of the text's length.
func TestHostileTextIsReadOnce(t *testing.T) {
	const size, most = 1 << 16, 40
	var every strings.Builder
	for c := range 256 {
		every.WriteByte(byte(c))
	}
	for _, secrets := range [][]string{
		{"hunter2 of it"}, {"p\u00e4ssword of it"}, {"hunt"}, {"hunt", every.String()}, {`%41""`, `a&#x41;b`},
	} {
		s := new(Set)
		s.Add(secrets...)
		for _, unit := range hostile() {
			for _, text := range []string{strings.Repeat(unit, size/len(unit)+1), strings.Repeat(unit, 4*size/len(unit)+1)} {
				r := reader{s: s}
				r.read(text, 0, func(int, int) {})
				if r.work > most*len(text) {
					t.Errorf("%d bytes of %.20q, secrets %.20q: %d bytes were read", len(text), unit, secrets, r.work)
				}
			}
		}
	}
}

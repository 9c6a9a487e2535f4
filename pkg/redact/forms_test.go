package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// written are ways to write a secret that are worked out without formsOf.
func written(secret string) map[string]string {
	out := map[string]string{
		"as it is": secret,
		"query":    url.QueryEscape(secret),
		"path":     url.PathEscape(secret),
		"user":     strings.TrimSuffix(strings.TrimPrefix((&url.URL{Scheme: "x", User: url.User(secret)}).String(), "x://"), "@"),
		"go":       strings.Trim(strconv.Quote(secret), `"`),
		"ascii":    strings.Trim(strconv.QuoteToASCII(secret), `"`),
	}
	if j, err := json.Marshal(secret); err == nil {
		out["json"] = string(j[1 : len(j)-1])
	}
	if strings.Contains(out["ascii"], `\U`) || strings.Contains(out["ascii"], `\x`) || strings.Contains(out["ascii"], `\a`) {
		delete(out, "ascii") // Go writes those as nobody else does
	}
	for lead := range 3 {
		for name, enc := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "raw": base64.RawURLEncoding} {
			out[fmt.Sprint(name, lead)] = enc.EncodeToString([]byte("ab"[:lead] + secret + "tail"))
		}
	}
	return out
}

// hidden fails the test when a secret is still to be read in text.
func hidden(t *testing.T, how, secret, text string) {
	t.Helper()
	if strings.Contains(text, secret) {
		t.Errorf("%s: %q still has %q", how, text, secret)
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for i := range len(text) {
			word := text[i:]
			if n := strings.IndexAny(word, "*="); n >= 0 {
				word = word[:n]
			}
			plain, _ := enc.DecodeString(word[:len(word)/4*4])
			if len(secret) >= shortest && strings.Contains(string(plain), secret) {
				t.Errorf("%s: %q decodes to %q", how, text, plain)
			}
		}
	}
}

func TestForms(t *testing.T) {
	for _, secret := range []string{"abcd", "hunter2", "pass/w+rd?&=", `quo"te'd\ back`, "päss wörd", "tab\tand\nline two", "a<b>&c%20", "🔑 key"} {
		var s Set
		s.Add(secret)
		for how, text := range written(secret) {
			got := s.Text("before " + text + " after")
			hidden(t, how, secret, got)
			if !strings.Contains(got, Mask) || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
				t.Errorf("%s of %q: %q becomes %q", how, secret, text, got)
			}
		}
		if plain := "nothing of it here: cGxhaW4gdGV4dA== %20 \\n"; s.Text(plain) != plain {
			t.Errorf("with %q known: %q", secret, s.Text(plain))
		}
	}
}

func TestOverlapping(t *testing.T) {
	var s Set
	s.Add("abcdef", "defghi", "abcdefg")
	for text, want := range map[string]string{
		"xabcdefghiy":  "x********y",
		"abcdefabcdef": "********",
		"abcdef defg":  "******** defg",
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestNotEverything(t *testing.T) {
	var s Set
	s.Add("a", "abc", "true", "None", "  \n", "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmg\nend\n-----END CERTIFICATE-----\n")
	text := "a abc true None end -----BEGIN CERTIFICATE-----\nother\n-----END CERTIFICATE-----"
	if got := s.Text(text); got != text {
		t.Error(got)
	}
	if got := s.Text("line MIIBszCCAVmg of it"); got != "line ******** of it" {
		t.Error(got)
	}
}

func FuzzText(f *testing.F) {
	f.Add("hunter2", "other", "text hunter2 text aHVudGVyMg==")
	f.Add("päss\nwörd2", "ss\nwö", "x")
	f.Add("abab", "baba", "abababab")
	f.Fuzz(func(t *testing.T, a, b, text string) {
		if !utf8.ValidString(a) {
			return // JSON replaces what is not UTF-8
		}
		var s Set
		s.Add(a, b)
		a = strings.TrimSpace(a)
		if len(a) < shortest || plainWord.MatchString(a) || strings.Contains(a, "*") {
			return
		}
		for how, form := range written(a) {
			got := s.Text(text + form + text)
			if strings.Contains(got, a) {
				t.Errorf("%s: %q is shown as %q", how, text+form+text, got)
			}
		}
	})
}

func BenchmarkText(b *testing.B) {
	line := `{"changed":true,"cmd":["kubectl","get","nodes","-o","json"],"stdout":"node1 Ready control-plane 5d v1.33.1 10.0.0.1","rc":0}`
	for _, n := range []int{0, 1, 20, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var s Set
			for i := range n {
				s.Add(fmt.Sprintf("%x-secret-%d", i*7919, i))
			}
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				s.Text(line)
			}
		})
	}
}

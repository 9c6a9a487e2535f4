package playbook

import (
	"strings"
	"testing"
)

// FuzzSplitWords checks that words are at their offsets in the text, and that the extracted words and the rest make
// up the whole text.
func FuzzSplitWords(f *testing.F) {
	for _, text := range []string{
		`src=a dest="b c" mode=0644`, `echo {{ a | default("x y") }} chdir=/tmp`, `a='it''s' b="\"q\""`,
		`{% if x %} k=v {% endif %}`,
		`unclosed="`, `{{ never`, "a=1\n\tb=2 \r\n", `=x k= "k=v"`, `k={{ {"a": "}}"} }}`, "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, err := SplitWords(text)
		if err != nil {
			return
		}
		last := 0
		for _, w := range words {
			if w.At < last || w.ValueAt < w.At || w.ValueAt > len(text) {
				t.Fatalf("%q: the word %+v is not where it says", text, w)
			}
			if w.Key != "" && !strings.HasPrefix(text[w.At:], w.Key+"=") || w.Key == "" &&
				!strings.HasPrefix(text[w.At:], w.Value) {
				t.Fatalf("%q: there is no %+v", text, w)
			}
			last = w.At + 1
		}
		if strings.Contains(text, "\\\n") {
			return // continued lines are joined
		}
		rest, none := ExtractWords(text, func(string) bool { return false })
		if len(none) != 0 || rest != strings.TrimLeft(text, blanks) {
			t.Fatalf("%q: nothing was taken, and %q is left", text, rest)
		}
		rest, taken := ExtractWords(text, func(string) bool { return true })
		again, err := SplitWords(rest)
		if err != nil || len(taken)+len(again) != len(words) {
			t.Fatalf("%q: %d words, of which %d were taken and %d are left (%v)", text, len(words), len(taken), len(again), err)
		}
	})
}

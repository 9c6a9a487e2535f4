package expr

import "testing"

// FuzzLex checks that tokens cover the source in order and without overlap.
func FuzzLex(f *testing.F) {
	for _, src := range []string{
		"((((", "'\\", "a.0.1.2", "x[::", "1e", "0x", "{'a':", "a is not", "*a", "f(**", "\xff", "'%*d' % (5, 1)",
		"[1][1:0:-1]",
		"-9223372036854775808 // -1", "'é'[0]", "a.b == 'x' and c | default([]) | length > 2",
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, lit := range []Literals{Escaped, Raw} {
			tokens, err := lex(src, lit)
			if err != nil {
				if err.pos < 0 || err.pos > len(src) {
					t.Fatalf("error at %d of %d", err.pos, len(src))
				}
				continue
			}
			last := 0
			for _, tok := range tokens {
				if tok.pos < last || tok.end < tok.pos || tok.end > len(src) {
					t.Fatalf("token %q spans %d to %d after %d", tok.text, tok.pos, tok.end, last)
				}
				last = tok.end
			}
			if tokens[len(tokens)-1].kind != tokEnd {
				t.Fatal("no end")
			}
		}
	})
}

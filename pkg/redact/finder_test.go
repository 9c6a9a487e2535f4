package redact

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// A finder finds patterns of any length at every position, regardless of the order in which they were added.
func TestFinderFindsEveryPlace(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(n int, letters string) string {
		var b strings.Builder
		for range n {
			b.WriteByte(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	type match struct {
		text string
		at   int
	}
	for range 2000 {
		f := finder{folds: random.IntN(2) == 0}
		in := text(random.IntN(200), "nt0 xy\n\t\x00+")
		compared, want, got := in, map[match]bool{}, map[match]bool{}
		if f.folds {
			compared = folded(in)
		}
		for range 1 + random.IntN(4) {
			w := text(1+random.IntN(12), "nt0 xy")
			if n := random.IntN(len(in) + 1); n+12 < len(in) && random.IntN(2) == 0 {
				w = compared[n : n+1+random.IntN(12)]
			}
			f.add(pattern{text: w})
			for at := range compared {
				if strings.HasPrefix(compared[at:], w) {
					want[match{w, at}] = true
				}
			}
		}
		f.find(in, func(w pattern, at int) { got[match{w.text, at}] = true })
		if !maps.Equal(got, want) {
			t.Fatalf("in %q, folded %v: %v, want %v", in, f.folds, got, want)
		}
	}
}

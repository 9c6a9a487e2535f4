package redact

import (
	"slices"
	"strings"
)

const (
	// gram is how many bytes of a pattern lead to it. Shorter are only the
	// secrets that are hardly more than escapes.
	gram = 4
	// longestStride is how many bytes apart a text is sampled at most.
	longestStride = 4
)

// pattern is a text to look for, and whether what stands before and after it is
// of the secret too. In base64 it is the characters that the secret alone
// decides; those beside it have bits of it. Of a secret that is reduced, what is
// left out at its ends stands there, such as the quotes of "x" and of %22x%22.
type pattern struct {
	text          string
	before, after bool
	secret        string // as it was given; "" in base64
}

// finder finds patterns in a text. Adding one costs the same however many there
// are. A text is read once, whatever their number, and only every stride bytes:
// wherever a pattern stands, one of its first grams is there. Most of these
// places are rejected by one bit.
type finder struct {
	seen   [1 << 11]uint64 // a bit for each hash of a gram
	places map[uint32][]place
	stride int
	short  []pattern
	folds  bool // the patterns are folded, and the text is as if it were
}

// place is where in a pattern a gram is.
type place struct {
	pattern
	at int
}

// gramAt is the gram at a place of a text.
func gramAt(text string, i int) uint32 {
	g := text[i : i+gram]
	return uint32(g[0]) | uint32(g[1])<<8 | uint32(g[2])<<16 | uint32(g[3])<<24
}

// foldedGram is a gram with each byte folded.
func foldedGram(g uint32) uint32 {
	return uint32(fold[byte(g)]) | uint32(fold[byte(g>>8)])<<8 | uint32(fold[byte(g>>16)])<<16 | uint32(fold[g>>24])<<24
}

// hash is 17 bits of a gram.
func hash(g uint32) uint32 { return g * 2654435761 >> 15 }

func (f *finder) add(w pattern) {
	if len(w.text) < gram {
		if w.text != "" && !slices.Contains(f.short, w) {
			f.short = append(f.short, w)
		}
		return
	}
	if slices.Contains(f.places[gramAt(w.text, 0)], place{w, 0}) {
		return
	}
	if f.places == nil {
		f.places, f.stride = map[uint32][]place{}, longestStride
	}
	f.stride = min(f.stride, len(w.text)-gram+1) // what was added with a longer one is found with it, too
	for at := range f.stride {
		g := gramAt(w.text, at)
		f.places[g] = append(f.places[g], place{w, at})
		f.mark(g, 0)
	}
}

// mark sets the bit of a gram, and of those that fold to it from byte i on.
func (f *finder) mark(g uint32, i int) {
	if i == gram {
		h := hash(g)
		f.seen[h>>6] |= 1 << (h & 63)
		return
	}
	f.mark(g, i+1)
	if n := strings.IndexByte(foldedTo, byte(g>>(8*i))); f.folds && n >= 0 {
		f.mark(g&^(0xFF<<(8*i))|uint32(unfolded[n])<<(8*i), i+1)
	}
}

// find calls found for each place of a pattern in text, for some of them twice.
func (f *finder) find(text string, found func(w pattern, at int)) {
	f.findShort(text, found)
	if len(f.places) == 0 {
		return
	}
	for i := 0; i+gram <= len(text); i += f.stride {
		g := gramAt(text, i)
		h := hash(g)
		if f.seen[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		if f.folds {
			g = foldedGram(g)
		}
		for _, p := range f.places[g] {
			if at := i - p.at; at >= 0 && f.begins(text[at:], p.text) {
				found(p.pattern, at)
			}
		}
	}
}

// begins reports whether a text begins with that of a pattern.
func (f *finder) begins(text, pattern string) bool {
	if !f.folds {
		return strings.HasPrefix(text, pattern)
	}
	for i := range min(len(text), len(pattern)) {
		if fold[text[i]] != pattern[i] {
			return false
		}
	}
	return len(text) >= len(pattern)
}

// findShort is find for the patterns that are shorter than a gram.
func (f *finder) findShort(text string, found func(w pattern, at int)) {
	if len(f.short) > 0 && f.folds {
		text = folded(text)
	}
	for _, w := range f.short {
		for from := 0; ; {
			n := strings.Index(text[from:], w.text)
			if n < 0 {
				break
			}
			found(w, from+n)
			from += n + 1
		}
	}
}

// around is what to cover of a pattern that stands at a place.
func (w pattern) around(text string, at int) (from, to int) {
	from, to = at, at+len(w.text)
	if w.before && from > 0 && sextet[text[from-1]] != none {
		from--
	}
	if w.after && to < len(text) && sextet[text[to]] != none {
		to++
	}
	return from, to
}

// ranges are the parts of a text to cover.
type ranges [][2]int

func (r *ranges) add(from, to int) { *r = append(*r, [2]int{from, to}) }

// mask puts Mask in the place of every run of bytes that the ranges cover.
func (r ranges) mask(text string) string {
	if len(r) == 0 {
		return text
	}
	slices.SortFunc(r, func(a, b [2]int) int { return a[0] - b[0] })
	var b strings.Builder
	done, end := 0, -1 // ends of what is written of text, and of the run that is being covered
	for _, c := range r {
		if c[0] > end {
			b.WriteString(text[done:c[0]])
			b.WriteString(Mask)
		}
		end = max(end, c[1])
		done = end
	}
	b.WriteString(text[done:])
	return b.String()
}

package redact

import (
	"slices"
	"strings"
)

const (
	// gram is the number of bytes by which a pattern is found. Only secrets that mainly consist of escapes are
	// shorter.
	gram = 4
	// longestStride is the maximum distance in bytes between the samples of a text.
	longestStride = 4
)

// pattern is a text to find. It records whether the bytes before and after it belong to the secret, too. In base64
// a pattern consists of the characters that only encode bits of the secret; the characters next to them encode some
// bits of it. Around a reduced secret there are the characters that were removed at its ends, such as the quotes of
// "x" and of %22x%22.
type pattern struct {
	text          string
	before, after bool
	secret        string // as registered; "" in base64
}

// finder finds patterns in a text. The cost of adding one does not depend on their number. A text is read once for
// all patterns, and only sampled every stride bytes: wherever a pattern begins, one of its first grams is sampled.
// Most samples are rejected by one bit.
type finder struct {
	seen   [1 << 11]uint64 // one bit per hash of a gram
	places map[uint32][]place
	stride int
	short  []pattern
	folds  bool // patterns are case-folded; the text is compared as if it were, too
}

// place is the position of a gram in a pattern.
type place struct {
	pattern
	at int
}

// gramAt returns the gram at a position of a text.
func gramAt(text string, i int) uint32 {
	g := text[i : i+gram]
	return uint32(g[0]) | uint32(g[1])<<8 | uint32(g[2])<<16 | uint32(g[3])<<24
}

// foldedGram returns a gram with each byte folded.
func foldedGram(g uint32) uint32 {
	return uint32(fold[byte(g)]) | uint32(fold[byte(g>>8)])<<8 | uint32(fold[byte(g>>16)])<<16 | uint32(fold[g>>24])<<24
}

// hash returns a 17-bit hash of a gram.
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
	f.stride = min(f.stride, len(w.text)-gram+1) // a shorter stride finds the patterns of a longer one, too
	for at := range f.stride {
		g := gramAt(w.text, at)
		f.places[g] = append(f.places[g], place{w, at})
		f.mark(g, 0)
	}
}

// mark sets the bits of a gram, and of all grams that fold to it from byte i on.
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

// find calls found for each occurrence of a pattern in text. Some occurrences are reported twice.
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

// begins reports whether a text begins with the text of a pattern.
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

// findShort is find for patterns that are shorter than a gram.
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

// around returns the range to mask for a pattern at a position.
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

// ranges are the parts of a text to mask.
type ranges [][2]int

func (r *ranges) add(from, to int) { *r = append(*r, [2]int{from, to}) }

// mask replaces every run of bytes that the ranges cover by Mask.
func (r ranges) mask(text string) string {
	if len(r) == 0 {
		return text
	}
	slices.SortFunc(r, func(a, b [2]int) int { return a[0] - b[0] })
	var b strings.Builder
	done, end := 0, -1 // end of the text written so far, and end of the run that is being masked
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

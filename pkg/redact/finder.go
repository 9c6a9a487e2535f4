package redact

import (
	"slices"
	"strings"
)

// prefix is how many bytes of a pattern lead to it. Shorter are only the secrets
// that are hardly more than escapes.
const prefix = 4

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
// are, and a text is read once, whatever their number: most places of it are
// dismissed by one bit.
type finder struct {
	seen     [1 << 11]uint64 // a bit for each hash of a prefix
	patterns map[string][]pattern
	short    []pattern
}

// roll is the window of the last four bytes, one byte on.
func roll(window uint32, c byte) uint32 { return window>>8 | uint32(c)<<24 }

// hash is 17 bits of a window.
func hash(window uint32) uint32 { return window * 2654435761 >> 15 }

func (f *finder) add(w pattern) {
	if len(w.text) < prefix {
		if w.text != "" && !slices.Contains(f.short, w) {
			f.short = append(f.short, w)
		}
		return
	}
	key := w.text[:prefix]
	if slices.Contains(f.patterns[key], w) {
		return
	}
	if f.patterns == nil {
		f.patterns = map[string][]pattern{}
	}
	f.patterns[key] = append(f.patterns[key], w)
	var window uint32
	for i := range prefix {
		window = roll(window, key[i])
	}
	h := hash(window)
	f.seen[h>>6] |= 1 << (h & 63)
}

// find calls found for each place of a pattern in text.
func (f *finder) find(text string, found func(w pattern, at int)) {
	for _, w := range f.short {
		for at := strings.Index(text, w.text); at >= 0; {
			found(w, at)
			next := strings.Index(text[at+1:], w.text)
			if next < 0 {
				break
			}
			at += 1 + next
		}
	}
	if len(f.patterns) == 0 {
		return
	}
	var window uint32
	for last := range len(text) {
		window = roll(window, text[last])
		h := hash(window)
		if f.seen[h>>6]&(1<<(h&63)) == 0 || last < prefix-1 {
			continue
		}
		at := last - (prefix - 1)
		for _, w := range f.patterns[text[at:last+1]] {
			if strings.HasPrefix(text[at:], w.text) {
				found(w, at)
			}
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
	done, end := 0, -1 // bytes of text that were dealt with; of the run that is being covered
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

package redact

import (
	"slices"
	"strings"
)

// prefix is how many bytes of a form lead to it. No form is shorter.
const prefix = 4

// finder finds forms in a text. Adding one costs the same however many there
// are, and a text is read once, whatever their number: most places of it are
// dismissed by one bit.
type finder struct {
	seen  [1 << 10]uint64 // a bit for each hash of a prefix
	forms map[string][]form
}

// roll is the window of the last four bytes, one byte on.
func roll(window uint32, c byte) uint32 { return window>>8 | uint32(c)<<24 }

// hash is 16 bits of a window.
func hash(window uint32) uint32 { return window * 2654435761 >> 16 }

func (f *finder) add(w form) {
	if len(w.text) < prefix {
		return
	}
	key := w.text[:prefix]
	if slices.Contains(f.forms[key], w) {
		return
	}
	if f.forms == nil {
		f.forms = map[string][]form{}
	}
	f.forms[key] = append(f.forms[key], w)
	var window uint32
	for i := range prefix {
		window = roll(window, key[i])
	}
	h := hash(window)
	f.seen[h>>6] |= 1 << (h & 63)
}

// replace puts Mask in the place of every run of bytes that a form covers.
func (f *finder) replace(text string) string {
	var b strings.Builder
	done := 0            // bytes of text that were dealt with
	start, end := -1, -1 // of the run that is being covered
	flush := func() {
		if end > done {
			b.WriteString(text[done:max(done, start)] + Mask)
			done = end
		}
	}
	var window uint32
	for last := range len(text) {
		window = roll(window, text[last])
		h := hash(window)
		if f.seen[h>>6]&(1<<(h&63)) == 0 || last < prefix-1 {
			continue
		}
		i := last - (prefix - 1)
		for _, w := range f.forms[text[i:i+prefix]] {
			if !strings.HasPrefix(text[i:], w.text) {
				continue
			}
			from, to := w.around(text, i)
			if from > end {
				flush()
				start = from
			}
			start, end = min(start, from), max(end, to)
		}
	}
	flush()
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// around is what to cover of a form that stands at i.
func (w form) around(text string, i int) (from, to int) {
	from, to = i, i+len(w.text)
	if w.before > 0 && from > 0 && isBase64(text[from-1]) {
		from--
	}
	if w.after > 0 && to < len(text) && isBase64(text[to]) {
		to++
	}
	return from, to
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("+/-_", c) >= 0
}

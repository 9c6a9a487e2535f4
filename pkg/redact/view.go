package redact

import (
	"sort"
	"strings"
)

// view is a decoded text with a mapping to the positions in the original.
type view struct {
	text  strings.Builder
	steps []step
	next  int // expected origin of the next byte; another origin needs a step
	end   int // end of the last byte in the text that it was decoded from
}

// step is a byte of a view whose origin does not directly follow that of the previous byte.
type step struct{ at, from, end int } // end belongs to the previous byte

// put appends a byte that is decoded from the range from..to.
func (v *view) put(b byte, from, to int) {
	if from != v.next {
		v.steps = append(v.steps, step{v.text.Len(), from, v.end})
	}
	v.text.WriteByte(b)
	v.next, v.end = from+1, to
	if to != from+1 {
		v.next = -1
	}
}

// copy appends bytes that are not encoded.
func (v *view) copy(text string, from int) {
	if from != v.next {
		v.steps = append(v.steps, step{v.text.Len(), from, v.end})
	}
	v.text.WriteString(text)
	v.next, v.end = from+len(text), from+len(text)
}

// close ends the view of a text with size bytes.
func (v *view) close(size int) {
	v.steps = append(v.steps, step{v.text.Len(), size, v.end})
}

// before returns the last step at or before a byte.
func (v *view) before(i int) (s step, next step) {
	n := sort.Search(len(v.steps), func(n int) bool { return v.steps[n].at > i })
	if n > 0 {
		s = v.steps[n-1]
	}
	if n < len(v.steps) {
		next = v.steps[n]
	}
	return s, next
}

// span returns the range in the original of the bytes from i to j.
func (v *view) span(i, j int) (from, to int) {
	s, _ := v.before(i)
	from = s.from + i - s.at
	s, next := v.before(j - 1)
	to = s.from + j - s.at
	if next.at == j {
		to = next.end
	}
	return from, to
}

// gaps is span, extended by the bytes before and after that decoding dropped.
func (v *view) gaps(i, j int) (from, to int) {
	if i > 0 {
		_, from = v.span(i-1, i)
	}
	s, _ := v.before(j)
	return from, s.from + j - s.at
}

package redact

import (
	"encoding/base64"
	"strings"
)

// Runs of base64 and hexadecimal digits are decoded, and the result is read like any text. It is not known where in
// a run the encoded text begins (it may follow a path), so every alignment that yields text is tried.

const (
	maxDepth   = 4  // maximum depth of nested encodings
	foldedLine = 40 // minimum length of a line after which base64 may continue on the next
)

// none is the value of a byte that is not a digit.
const none = 0xFF

// table maps each byte to a value.
type table [256]byte

func tableOf(f func(c byte) byte) (t table) {
	for c := range t {
		t[c] = f(byte(c))
	}
	return t
}

// These tables are constant.
var (
	class  = tableOf(classOf)
	fold   = tableOf(foldOf)
	sextet = tableOf(sextetOf)
	digit  = tableOf(digitOf)
	dump   = tableOf(dumpOf)
)

// sextetOf returns the value of a base64 character, in either alphabet.
func sextetOf(c byte) byte {
	switch {
	case c >= 'A' && c <= 'Z':
		return c - 'A'
	case c >= 'a' && c <= 'z':
		return c - 'a' + 26
	case isDigit(c):
		return c - '0' + 52
	case c == '+' || c == '-':
		return 62
	case c == '/' || c == '_':
		return 63
	}
	return none
}

func digitOf(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case isHex(c):
		return c | 0x20 - 'a' + 10
	}
	return none
}

// dumpOf returns 1 for characters that occur in byte dumps.
func dumpOf(c byte) byte {
	switch {
	case isHex(c), c == ' ', c == '+', c == ':', c == ',', c == '-', c == '\n', c == 'x':
		return 1
	}
	return 0
}

// shortestRun is the minimum length in base64, on one line, of a secret that contains an escape. A secret without
// escapes is found in its base64 form directly.
func (s *Set) shortestRun() int { return min((8*(s.least+1)+5)/6, foldedLine) }

// shortestDump is the minimum length of a dump of a secret: 6875 6e74.
func (s *Set) shortestDump() int { return 2*s.least + 1 }

// reader searches one text for the secrets of a set.
type reader struct {
	s    *Set
	work int // number of bytes read so far, in all encodings
}

// A long text is decoded in parts, so that memory is bounded. The parts overlap by more than the
// length of a secret in any encoding.
const (
	partSize = 1 << 20
	overlap  = 1 << 16
)

// read finds secrets in a text, and calls cover with their positions.
func (r *reader) read(text string, depth int, cover func(from, to int)) {
	r.work += len(text)
	r.s.literal.find(text, func(w pattern, at int) { cover(w.around(text, at)) })
	for start := 0; ; start += partSize - overlap {
		if len(text)-start <= partSize {
			r.part(text[start:], depth, func(from, to int) { cover(start+from, start+to) })
			return
		}
		r.part(text[start:start+partSize], depth, func(from, to int) { cover(start+from, start+to) })
	}
}

// part finds secrets in the decoded forms of a text.
func (r *reader) part(text string, depth int, cover func(from, to int)) {
	if !isEscaped(text, r.s.blanks) {
		r.decode(text, depth, cover)
		return
	}
	v := unescape(text)
	bare := v.text.String()
	r.work += len(bare)
	r.decode(bare, depth, func(from, to int) { cover(v.span(from, to)) })
	r.s.reduced.find(bare, func(w pattern, at int) {
		from, to := v.span(w.around(bare, at))
		if w.secret == "" {
			cover(from, to)
			return
		}
		before, after := v.gaps(at, at+len(w.text))
		if w.before {
			from = before
		}
		if w.after {
			to = after
		}
		if to-from >= len(w.secret) { // escapes never make a text shorter
			cover(from, to)
		}
	})
}

// decode reads the decoded content of the runs in a text.
func (r *reader) decode(text string, depth int, cover func(from, to int)) {
	if depth == maxDepth {
		return
	}
	shortestRun := r.s.shortestRun()
	for i := shortestRun - 1; i < len(text); {
		if sextet[text[i]] == none {
			i += shortestRun
			continue
		}
		start, end := i, i+1
		for start > 0 && sextet[text[start-1]] != none && i-start < shortestRun-1 {
			start--
		}
		for end < len(text) && sextet[text[end]] != none {
			end++
		}
		if end-start >= shortestRun {
			end = r.run(text, start, end, depth, cover)
		}
		i = end + shortestRun
	}
	r.dumps(text, depth, cover)
}

// run reads a run of base64 with its continuation lines, and returns its end.
func (r *reader) run(text string, start, end, depth int, cover func(from, to int)) int {
	if next := lineAfter(text, end); end-start >= foldedLine && next < len(text) && sextet[text[next]] != none {
		return r.lines(text, start, end, depth, cover)
	}
	r.joined(text[start:end], start, depth, cover)
	return end
}

// lines reads a run that continues on the next line.
func (r *reader) lines(text string, start, end, depth int, cover func(from, to int)) int {
	v := view{next: -1}
	v.copy(text[start:end], start)
	for line := start; end-line >= foldedLine; {
		next := lineAfter(text, end)
		if next == end || next == len(text) || sextet[text[next]] == none {
			break
		}
		line, end = next, next
		for end < len(text) && sextet[text[end]] != none {
			end++
		}
		v.copy(text[line:end], line)
	}
	v.close(end)
	r.joined(v.text.String(), 0, depth, func(from, to int) { cover(v.span(from, to)) })
	return end
}

// lineAfter returns the start of the line after a line break at i, or i if there is no line break.
func lineAfter(text string, i int) int {
	n := i
	if n < len(text) && text[n] == '\r' {
		n++
	}
	if n == len(text) || text[n] != '\n' {
		return i
	}
	n++
	for n < len(text) && (text[n] == ' ' || text[n] == '\t') {
		n++
	}
	return n
}

// joined reads a run without line breaks. at is its offset in the text that cover refers to.
func (r *reader) joined(run string, at, depth int, cover func(from, to int)) {
	r.parts(run, at, depth, cover)
	r.hex(run, at, depth, cover)
}

// parts reads the parts of a run that decode to text, each with the alignment at which it does.
func (r *reader) parts(run string, at, depth int, cover func(from, to int)) {
	const ones, slack = 0x0001_0001_0001_0001, 64
	least := min(max(len(run)/3, r.s.shortestRun()-1), 16)
	likely := &r.s.letters.likely
	// For each lane, the last part that was found.
	part := [4][2]int{{0, 0}, {3, 0}, {2, 0}, {1, 0}}
	// For each lane, one bit per number of consecutive characters that are likely.
	var inARow uint64
	for i := range len(run) {
		inARow = (inARow&^(0x8000*ones)<<1 | ones) & likely[i&3][run[i]]
		hits := inARow >> (least - 1) & ones
		if hits == 0 {
			continue
		}
		for lane := range part {
			if hits>>(16*lane)&1 == 0 {
				continue
			}
			if p := &part[lane]; i-least-slack > p[1] {
				r.aligned(run, p[0], p[1], at, depth, cover)
				from := max(0, i-least+1-slack)
				p[0] = from + (8-lane-from%4)%4 // where a group of the lane begins
			}
			part[lane][1] = min(i+1+slack, len(run))
		}
	}
	for _, p := range part {
		r.aligned(run, p[0], p[1], at, depth, cover)
	}
}

// aligned reads a part of a run in which base64 is aligned to the first character.
func (r *reader) aligned(run string, first, end, at, depth int, cover func(from, to int)) {
	if end-first < r.s.shortestRun()-1 {
		return
	}
	var plain strings.Builder
	plain.Grow((end - first) * 6 / 8)
	var bits uint32
	var have int
	for i := first; i < end; i++ {
		bits, have = bits<<6|uint32(sextet[run[i]]), have+6
		if have >= 8 {
			have -= 8
			plain.WriteByte(byte(bits >> have))
		}
	}
	r.read(plain.String(), depth+1, func(from, to int) { cover(at+first+from*8/6, at+first+(to*8+5)/6) })
}

// encodedInBase64 returns the base64 form of a secret that follows shift other bytes.
func encodedInBase64(secret string, shift int) pattern {
	padded := make([]byte, shift, shift+len(secret)+2)
	padded = append(append(padded, secret...), 0, 0)
	all := base64.RawStdEncoding.EncodeToString(padded)
	first := (8*shift + 5) / 6           // the first character that only encodes bits of the secret
	end := 8 * (shift + len(secret)) / 6 // the end of these characters
	return pattern{text: all[first:end], before: shift > 0, after: (shift+len(secret))%3 != 0}
}

// hex reads the decoded hexadecimal digits of a run, with both alignments.
func (r *reader) hex(run string, at, depth int, cover func(from, to int)) {
	for i := 0; i < len(run); i++ {
		start := i
		for i < len(run) && digit[run[i]] != none {
			i++
		}
		for first := start; first < start+2 && i-first >= 2*r.s.least; first++ {
			r.digits(run[first:i], at+first, depth, cover)
		}
	}
}

// digits reads the decoded pairs of digits, if they contain text.
func (r *reader) digits(run string, at, depth int, cover func(from, to int)) {
	for i, inARow := 0, 0; inARow < r.s.least; i += 2 {
		if i+1 >= len(run) {
			return
		}
		inARow = r.s.letters.inARow(run[i], run[i+1], inARow)
	}
	var plain strings.Builder
	plain.Grow(len(run) / 2)
	for i := 0; i+1 < len(run); i += 2 {
		plain.WriteByte(digit[run[i]]<<4 | digit[run[i+1]])
	}
	r.read(plain.String(), depth+1, func(from, to int) { cover(at+2*from, at+2*to) })
}

// dumps reads bytes that are written individually: 68:75:6e, 68 75 6e, 0x68, 0x75.
func (r *reader) dumps(text string, depth int, cover func(from, to int)) {
	shortestDump := r.s.shortestDump()
	for i := shortestDump - 1; i < len(text); {
		if dump[text[i]] == 0 {
			i += shortestDump
			continue
		}
		start, end := i, i+1
		for start > 0 && dump[text[start-1]] != 0 && i-start < shortestDump-1 {
			start--
		}
		for end < len(text) && dump[text[end]] != 0 {
			end++
		}
		if end-start >= shortestDump {
			r.dumped(text, start, end, depth, cover)
		}
		i = end + shortestDump
	}
}

// dumped reads the pairs of digits in a dump. A token that does not consist of pairs ends the dump.
func (r *reader) dumped(text string, start, end, depth int, cover func(from, to int)) {
	first, words, inARow, likely := start, 0, 0, false
	for i := start; ; {
		from, to := word(text, i, end)
		if from < to && (to-from)%2 == 0 {
			for n := from; n < to && !likely; n += 2 {
				inARow = r.s.letters.inARow(text[n], text[n+1], inARow)
				likely = inARow >= r.s.least
			}
			i, words = to, words+1
			continue
		}
		if words > 1 && likely { // a single token is part of a run
			r.words(text, first, from, depth, cover)
		}
		if from == to {
			return
		}
		i, first, words, inARow, likely = to, to, 0, 0, false
	}
}

// word returns the position of the next digits of a dump.
func word(text string, i, end int) (from, to int) {
	for i < end && digit[text[i]] == none {
		i++
	}
	if i+1 < end && text[i] == '0' && text[i+1] == 'x' {
		i += 2
	}
	from = i
	for i < end && digit[text[i]] != none {
		i++
	}
	return from, i
}

// words reads a dump that only consists of pairs of digits.
func (r *reader) words(text string, start, end, depth int, cover func(from, to int)) {
	v := view{next: -1}
	for i := start; i < end; {
		from, to := word(text, i, end)
		v.copy(text[from:to], from)
		i = to
	}
	v.close(end)
	r.digits(v.text.String(), 0, depth, func(from, to int) { cover(v.span(from, to)) })
}

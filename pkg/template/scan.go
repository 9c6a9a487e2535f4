package template

import (
	"strings"
	"unicode"
)

// segKind is the kind of a segment.
type segKind int

const (
	segText segKind = iota
	segOutput
	segTag
)

// segment is one piece of a document after whitespace control. Comments yield no segments, raw blocks yield text.
type segment struct {
	kind segKind
	text string // the text, the expression, or the arguments of a tag
	name string // of a tag
	at   int    // offset of the opening delimiter; for text, of its first byte
	off  int    // offset of text in the source
}

// scanError is an error in the markup at an offset.
type scanError struct {
	off  int
	msg  string
	help string
}

// delimiter is one of the delimiters that end text.
type delimiter struct {
	open, end string
	kind      opener
	next      int // offset of its next occurrence, len(src) for none
}

type opener int

const (
	openBlock opener = iota
	openVariable
	openComment
)

type scanner struct {
	src       string
	syn       *syntax
	delims    [3]delimiter
	out       []segment
	lineStart bool // the next text begins a line
}

// scan cuts src[from:] into segments.
func scan(src string, from int, syn *syntax) ([]segment, *scanError) {
	s := &scanner{src: src, syn: syn, lineStart: true}
	s.delims = [3]delimiter{
		{open: syn.blockStart, end: syn.blockEnd, kind: openBlock, next: -1},
		{open: syn.varStart, end: syn.varEnd, kind: openVariable, next: -1},
		{open: syn.commentStart, end: syn.commentEnd, kind: openComment, next: -1},
	}
	for pos := from; pos < len(src); {
		d := s.nearest(pos)
		if d == nil {
			s.emitText(src[pos:], pos)
			break
		}
		var err *scanError
		if pos, err = s.construct(d, pos); err != nil {
			return nil, err
		}
		s.lineStart = src[pos-1] == '\n'
	}
	return s.out, nil
}

// nearest returns the delimiter that opens first at or after pos; of two at the same offset, the longer one.
func (s *scanner) nearest(pos int) *delimiter {
	var best *delimiter
	for i := range s.delims {
		d := &s.delims[i]
		if d.next < pos {
			d.next = len(s.src)
			if at := strings.Index(s.src[pos:], d.open); at >= 0 {
				d.next = pos + at
			}
		}
		if d.next == len(s.src) {
			continue
		}
		if best == nil || d.next < best.next || d.next == best.next && len(d.open) > len(best.open) {
			best = d
		}
	}
	return best
}

// construct scans the construct that d opens, with the text before it, and returns the offset where the rest
// begins.
func (s *scanner) construct(d *delimiter, pos int) (int, *scanError) {
	at := d.next
	body := at + len(d.open)
	sign := s.sign(body)
	if sign != 0 {
		body++
	}
	s.emitText(s.stripBefore(s.src[pos:at], sign, d.kind), pos)
	switch {
	case d.kind == openComment:
		return s.comment(d, at, body)
	case d.kind == openBlock:
		if inner, ok := s.rawStart(body); ok {
			return s.raw(at, inner)
		}
	}
	end, after, err := s.closing(d, at, body)
	if err != nil {
		return 0, err
	}
	if d.kind == openVariable {
		return after, s.output(at, body, end)
	}
	return after, s.tag(at, body, end)
}

// sign returns the whitespace control at off: '-', '+' or 0.
func (s *scanner) sign(off int) byte {
	if off < len(s.src) && (s.src[off] == '-' || s.src[off] == '+') {
		return s.src[off]
	}
	return 0
}

// stripBefore applies `{%-` and lstrip_blocks to the text before a construct.
func (s *scanner) stripBefore(text string, sign byte, kind opener) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(text, unicode.IsSpace)
	case sign == '+' || !s.syn.lstrip || kind == openVariable:
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || s.lineStart) && strings.TrimSpace(text[line:]) == "" {
		return text[:line]
	}
	return text
}

// stripAfter returns the offset where the text after a closing delimiter begins.
func (s *scanner) stripAfter(after int, sign byte, trim bool) int {
	switch {
	case sign == '-':
		rest := strings.TrimLeftFunc(s.src[after:], unicode.IsSpace)
		return len(s.src) - len(rest)
	case sign == 0 && trim && after < len(s.src) && s.src[after] == '\n':
		return after + 1
	}
	return after
}

func (s *scanner) emitText(text string, off int) {
	if text == "" {
		return
	}
	if s.syn.newline != "\n" {
		text = strings.ReplaceAll(text, "\n", s.syn.newline)
	}
	s.out = append(s.out, segment{kind: segText, text: text, at: off, off: off})
}

func (s *scanner) comment(d *delimiter, at, body int) (int, *scanError) {
	i := strings.Index(s.src[body:], d.end)
	if i < 0 {
		return 0, &scanError{at, "this comment is not closed", "add " + d.end}
	}
	sign := byte(0)
	if i > 0 {
		sign = s.sign(body + i - 1)
	}
	return s.stripAfter(body+i+len(d.end), sign, s.syn.trim), nil
}

// rawStart reports whether a raw tag begins at off, and the offset of its text.
func (s *scanner) rawStart(off int) (int, bool) {
	after, sign, ok := s.bareTag(off, "raw")
	if !ok || sign == '+' {
		return 0, false
	}
	return s.stripAfter(after, sign, false), true
}

// bareTag matches a tag without arguments, starting after its opening delimiter.
func (s *scanner) bareTag(off int, name string) (after int, sign byte, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeftFunc(s.src[off:], unicode.IsSpace), name)
	if !ok {
		return 0, 0, false
	}
	rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	if rest != "" && (rest[0] == '-' || rest[0] == '+') && strings.HasPrefix(rest[1:], s.syn.blockEnd) {
		sign, rest = rest[0], rest[1:]
	}
	if rest, ok = strings.CutPrefix(rest, s.syn.blockEnd); !ok {
		return 0, 0, false
	}
	return len(s.src) - len(rest), sign, true
}

// raw scans to the endraw tag; at is the offset of the raw tag, from that of its text.
func (s *scanner) raw(at, from int) (int, *scanError) {
	for p := from; ; {
		i := strings.Index(s.src[p:], s.syn.blockStart)
		if i < 0 {
			return 0, &scanError{at, "this raw block is not closed", "add " + s.syn.blockStart + " endraw " + s.syn.blockEnd}
		}
		end := p + i
		body := end + len(s.syn.blockStart)
		before := s.sign(body)
		if before != 0 {
			body++
		}
		if after, sign, ok := s.bareTag(body, "endraw"); ok {
			s.lineStart = s.src[from-1] == '\n'
			s.emitText(s.stripBefore(s.src[from:end], before, openBlock), from)
			return s.stripAfter(after, sign, s.syn.trim), nil
		}
		p = end + len(s.syn.blockStart)
	}
}

// closing finds the end of a variable or tag that was opened at `at`: the closing delimiter outside strings and
// brackets.
func (s *scanner) closing(d *delimiter, at, body int) (end, after int, err *scanError) {
	var open []int
	trim := d.kind == openBlock && s.syn.trim
	for p := body; p < len(s.src); p++ {
		if len(open) == 0 {
			if strings.HasPrefix(s.src[p:], d.end) {
				return p, s.stripAfter(p+len(d.end), 0, trim), nil
			}
			sign := s.sign(p)
			if sign == '+' && d.kind == openVariable {
				sign = 0
			}
			if sign != 0 && strings.HasPrefix(s.src[p+1:], d.end) {
				return p, s.stripAfter(p+1+len(d.end), sign, trim), nil
			}
		}
		switch c := s.src[p]; c {
		case '\'', '"':
			q := skipString(s.src, p)
			if q < 0 {
				return 0, 0, &scanError{p, "this string is not closed", "add " + string(c)}
			}
			p = q - 1
		case '(', '[', '{':
			open = append(open, p)
		case ')', ']', '}':
			if len(open) == 0 {
				return 0, 0, &scanError{p, "unexpected '" + string(c) + "'", ""}
			}
			if want := closer(s.src[open[len(open)-1]]); c != want {
				return 0, 0, &scanError{p, "unexpected '" + string(c) + "'", "expected '" + string(want) + "'"}
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		at = open[len(open)-1]
		return 0, 0, &scanError{at, "this '" + string(s.src[at]) + "' is not closed", "add '" + string(closer(s.src[at])) +
			"'"}
	}
	return 0, 0, &scanError{at, "this " + d.open + " is not closed", "add " + d.end}
}

func closer(open byte) byte {
	switch open {
	case '(':
		return ')'
	case '[':
		return ']'
	}
	return '}'
}

// skipString returns the offset after the string that begins at p, or -1 when the string is not closed.
func skipString(src string, p int) int {
	for q := p + 1; q < len(src); q++ {
		switch src[q] {
		case '\\':
			q++
		case src[p]:
			return q + 1
		}
	}
	return -1
}

func (s *scanner) output(at, body, end int) *scanError {
	text, off := trimSpace(s.src, body, end)
	if text == "" {
		return &scanError{at, "an expression is missing here", ""}
	}
	s.out = append(s.out, segment{kind: segOutput, text: text, at: at, off: off})
	return nil
}

func (s *scanner) tag(at, body, end int) *scanError {
	text, off := trimSpace(s.src, body, end)
	n := nameLen(text)
	if n == 0 {
		return &scanError{at, "the name of a tag is missing here", ""}
	}
	args, argsOff := trimSpace(s.src, off+n, off+len(text))
	s.out = append(s.out, segment{kind: segTag, text: args, name: text[:n], at: at, off: argsOff})
	return nil
}

// trimSpace returns src[from:to] without surrounding blanks, and its offset.
func trimSpace(src string, from, to int) (string, int) {
	left := strings.TrimLeftFunc(src[from:to], unicode.IsSpace)
	off := to - len(left)
	return strings.TrimRightFunc(left, unicode.IsSpace), off
}

// nameLen returns the length, in bytes, of the identifier at the start of s.
func nameLen(s string) int {
	for i, r := range s {
		if r == '_' || unicode.IsLetter(r) || i > 0 && unicode.IsDigit(r) {
			continue
		}
		return i
	}
	return len(s)
}

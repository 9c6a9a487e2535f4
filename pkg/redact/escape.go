package redact

import (
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Escapes are not decoded by the rules of one language, because it is not known how many of them were applied to a
// text, and in which order. Instead all are reduced at once, from left to right, until nothing is left to reduce:
// \x41, \u0041, \101, %41 and &#65; are A, however often they were escaped themselves. A backslash before anything
// else, quotes, and the marks that shells and SQL double ('', "", %%, $$) are removed. A secret is reduced in the
// same way, so it equals the reduction of any sequence of escapes of it.

// longestEscape is the number of bytes held back until an escape is complete.
const longestEscape = 64

// piece is a byte with its position and the number of escapes that it was in.
type piece struct {
	b         byte
	depth     uint8
	backslash bool // a backslash before it was removed
	from, to  int
}

// unescaper reduces a text.
type unescaper struct {
	view
	tail []piece // pending bytes; the first may begin an escape
}

// The classes of bytes for unescape.
const (
	plain  byte = iota
	quote       // removed
	opener      // may begin an escape
)

// classOf returns the class of a byte. Surrogates from escapes begin with 0xED.
func classOf(c byte) byte {
	switch c {
	case '\'', '"', '$', '`':
		return quote
	case '\\', '%', '&', surrogate:
		return opener
	}
	return plain
}

// surrogate is the first byte of a UTF-16 surrogate that is encoded like a character.
const surrogate = 0xED

// isEscaped reports whether a text may contain an escape. Quotes alone are not escapes: escaped quotes of a secret
// are doubled, or next to other quotes.
func isEscaped(text string, plus bool) bool {
	if strings.IndexByte(text, '\\') >= 0 || plus && strings.IndexByte(text, '+') >= 0 {
		return true
	}
	for i := strings.IndexByte(text, '%'); i >= 0 && i+1 < len(text); {
		if isHex(text[i+1]) || classOf(text[i+1]) != plain {
			return true
		}
		n := strings.IndexByte(text[i+1:], '%')
		if n < 0 {
			break
		}
		i += 1 + n
	}
	for i := strings.IndexByte(text, '&'); i >= 0 && i+1 < len(text); {
		if c := text[i+1]; c == '#' || isLetter(c) || classOf(c) == opener {
			return true
		}
		n := strings.IndexByte(text[i+1:], '&')
		if n < 0 {
			break
		}
		i += 1 + n
	}
	for _, pair := range []string{`''`, `""`, `'"`, `$$`} {
		if strings.Contains(text, pair) {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isHex(c byte) bool    { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// unescape reduces a text.
func unescape(text string) *view {
	u := &unescaper{}
	u.text.Grow(len(text))
	for i := 0; i < len(text); {
		if len(u.tail) > 0 || class[text[i]] != plain {
			u.push(piece{b: text[i], from: i, to: i + 1})
			i++
			continue
		}
		n := i + 1
		for n < len(text) && class[text[n]] == plain {
			n++
		}
		u.copy(text[i:n], i)
		i = n
	}
	for len(u.tail) > 0 {
		u.release()
	}
	u.close(len(text))
	return &u.view
}

func (u *unescaper) push(p piece) {
	isWord := isLetter(p.b) || isDigit(p.b)
	for !isWord && p.b != '\\' && u.escapes(p) {
		u.tail = u.tail[:len(u.tail)-1]
		p.backslash = true
	}
	last := len(u.tail) - 1
	switch {
	case (p.b == '\\' || p.b == '%') && last >= 0 && u.tail[last].b == p.b && u.tail[last].depth <= p.depth:
		u.tail[last].to, u.tail[last].backslash = p.to, p.b == '\\' // one represents any number of them
		return
	case (p.b == 'n' || p.b == 'r' || p.b == 't') && u.escapes(p):
		p.b, p.from = controlOf(p.b), u.tail[last].from
		u.tail = u.tail[:last]
	}
	c := class[p.b]
	if c == quote {
		return
	}
	if c == plain && len(u.tail) == 0 {
		u.put(p.b, p.from, p.to)
		return
	}
	u.tail = append(u.tail, p)
	if c == plain {
		u.reduce()
	}
	for len(u.tail) > 0 && (len(u.tail) > longestEscape || !u.open()) {
		u.release()
	}
}

// controlOf returns the control character of a letter after a backslash, for those that separate lines and words.
func controlOf(letter byte) byte {
	switch letter {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	}
	return '\t'
}

// escapes reports whether the backslash before p, if any, belongs to it. If p begins an escape, the backslash may
// belong to the character that the escape represents.
func (u *unescaper) escapes(p piece) bool {
	last := len(u.tail) - 1
	return last >= 0 && u.tail[last].b == '\\' && (class[p.b] != opener || p.depth >= u.tail[last].depth)
}

// release moves the front of the tail, which does not begin an escape, to the view.
func (u *unescaper) release() {
	p := u.tail[0]
	if p.b != '\\' && p.b != '%' {
		u.put(p.b, p.from, p.to)
	}
	n := 1
	for n < len(u.tail) && class[u.tail[n].b] != opener {
		u.put(u.tail[n].b, u.tail[n].from, u.tail[n].to)
		n++
	}
	u.tail = u.tail[:copy(u.tail, u.tail[n:])]
}

// open reports whether the front of the tail may still begin an escape.
func (u *unescaper) open() bool {
	rest := u.tail[1:]
	for n, p := range rest {
		if class[p.b] == opener { // it may still be reduced to a byte that fits here
			return true
		}
		if !fits(u.tail[0].b, rest, n) {
			return false
		}
	}
	return true
}

// fits reports whether byte n after an opener can be part of its escape.
func fits(opener byte, rest []piece, n int) bool {
	b := rest[n].b
	switch opener {
	case '%':
		return n < 2 && isHex(b)
	case '&':
		return n < 33 && (isLetter(b) || isDigit(b) || b == '#' && n == 0)
	case surrogate:
		return n < 2 && b >= 0x80
	}
	switch first := rest[0].b; {
	case n == 0:
		return b == 'u' || b == 'x' || b == 'U' || b >= '0' && b <= '3'
	case first == 'u' && (b == '{' && n == 1 || rest[1].b == '{' && n < 9):
		return true
	case first == 'u':
		return n < 5 && isHex(b)
	case first == 'x':
		return n < 3 && isHex(b)
	case first == 'U':
		return n < 9 && isHex(b)
	}
	return n < 3 && b >= '0' && b <= '7'
}

// reduce replaces an escape at the end of the tail by the character that it represents.
func (u *unescaper) reduce() {
	n := len(u.tail)
	at := func(back int, b byte) bool { return n >= back && u.tail[n-back].b == b }
	switch b := u.tail[n-1].b; {
	case b == ';':
		for back := 3; back <= min(n, 34); back++ {
			if at(back, '&') {
				u.entity(back)
				return
			}
		}
	case b == '}':
		for back := 5; back <= min(n, 10); back++ {
			if at(back, '\\') && at(back-1, 'u') && at(back-2, '{') {
				u.number(back, back-3, 1, 16)
				return
			}
		}
	case !isHex(b):
	case at(3, '%'):
		u.number(3, 2, 0, 16)
	case at(4, '\\') && at(3, 'x'):
		u.number(4, 2, 0, 16)
	case at(4, '\\') && isDigit(u.tail[n-3].b):
		u.number(4, 3, 0, 8)
	case at(6, '\\') && at(5, 'u'):
		u.number(6, 4, 0, 16)
	case at(10, '\\') && at(9, 'U'):
		u.number(10, 8, 0, 16)
	}
}

// bytesAt returns bytes of the tail, counted from its end.
func (u *unescaper) bytesAt(back, count int) []byte {
	out := make([]byte, count)
	for i := range out {
		out[i] = u.tail[len(u.tail)-back+i].b
	}
	return out
}

// number replaces the last size bytes by the character that the digits represent. The digits end before bytes
// before the end. Two digits, and octal digits, represent a byte.
func (u *unescaper) number(size, digits, before, base int) {
	code, err := strconv.ParseUint(string(u.bytesAt(digits+before, digits)), base, 32)
	switch {
	case err != nil:
	case digits == 2 || base == 8:
		u.replace(size, []byte{byte(code)})
	case utf16.IsSurrogate(rune(code)):
		u.half(size, rune(code))
	case code <= utf8.MaxRune:
		u.replace(size, utf8.AppendRune(nil, rune(code)))
	}
}

// half replaces the last bytes by a surrogate, or by a whole character if the first surrogate precedes them.
func (u *unescaper) half(size int, r rune) {
	if n := len(u.tail) - size; n >= 3 && u.tail[n-3].b == surrogate && u.tail[n-2].b >= 0xA0 {
		high := 0xD000 | rune(u.tail[n-2].b&0x3F)<<6 | rune(u.tail[n-1].b&0x3F)
		if whole := utf16.DecodeRune(high, r); whole != utf8.RuneError {
			u.replace(size+3, utf8.AppendRune(nil, whole))
			return
		}
	}
	u.replace(size, []byte{surrogate, 0x80 | byte(r>>6)&0x3F, 0x80 | byte(r)&0x3F})
}

// entity replaces the last bytes by the character of an HTML entity. An encoder that puts a backslash before the
// semicolon also puts one before the ampersand; if that still exists, it is removed, too.
func (u *unescaper) entity(size int) {
	name := string(u.bytesAt(size, size))
	text := html.UnescapeString(name)
	if text == name || text != ";" && strings.HasSuffix(text, ";") {
		return
	}
	n := len(u.tail)
	if n > size && u.tail[n-size-1].b == '\\' && u.tail[n-1].backslash && !u.tail[n-size].backslash {
		size++
	}
	u.replace(size, []byte(text))
}

func (u *unescaper) replace(size int, by []byte) {
	n := len(u.tail) - size
	p := piece{from: u.tail[n].from, to: u.tail[len(u.tail)-1].to, backslash: u.tail[n].backslash}
	for _, old := range u.tail[n:] {
		p.depth = max(p.depth, old.depth+1)
	}
	u.tail = u.tail[:n]
	for _, b := range by {
		p.b = b
		u.push(p)
	}
}

// Characters that escapes cannot distinguish are mapped from unfolded to foldedTo: a letter after a backslash may
// be a letter or a control character, and + may be a blank in a query.
const (
	unfolded = "\n\t\r\a\b\f\v\x1b\x00+"
	foldedTo = "ntrabfve0 "
)

func foldOf(c byte) byte {
	if i := strings.IndexByte(unfolded, c); i >= 0 {
		return foldedTo[i]
	}
	return c
}

// escapers returns the methods of escaping that differ in the bytes that they do not change.
func escapers() []func(string) string {
	return []func(string) string{strconv.Quote, regexp.QuoteMeta, url.PathEscape, url.QueryEscape, html.EscapeString}
}

// maxRewritten is the maximum length of a secret that is reduced with all methods.
const maxRewritten = 4 << 10

// reduced returns a secret as unescape and fold transform it, for every method by which it may be escaped. Only a
// secret that looks like an escape has several results: whether its parts form another escape depends on the bytes
// around them.
func reduced(secret string) []pattern {
	v := unescape(secret)
	from, to := v.span(0, v.text.Len())
	p := pattern{text: folded(v.text.String()), before: from > 0, after: to < len(secret), secret: secret}
	all := []pattern{p}
	if len(secret) > maxRewritten || !isEscaped(secret, false) {
		return all
	}
	for _, inner := range escapers() {
		once := inner(secret)
		for _, outer := range escapers() {
			for _, text := range []string{once, outer(once)} {
				p.text = folded(unescape(text).text.String())
				if !slices.Contains(all, p) {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

func folded(text string) string {
	out := []byte(text)
	for i, c := range out {
		out[i] = fold[c]
	}
	return string(out)
}

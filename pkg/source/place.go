package source

import (
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// NodePos returns the position of a node.
func NodePos(f *File, n *yaml.Node) Pos {
	if n == nil {
		return Pos{File: f}
	}
	return Pos{File: f, Line: n.Line, Col: n.Column}
}

// TextPos returns the position of the first rune of a scalar's text: after its anchor, tag and quote, or on the
// line below the indicator of a block scalar.
func TextPos(f *File, n *yaml.Node) Pos {
	p := NodePos(f, n)
	if n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		p.Col += properties(f, p)
	}
	switch {
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		p.Col++
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		p.Line++
		p.Col = firstColumn(f.Line(p.Line))
	}
	return p
}

// properties returns the number of runes of a scalar's anchor and tag.
func properties(f *File, p Pos) int {
	start, ok := f.byteOf(p)
	if !ok {
		return 0
	}
	line := f.Line(p.Line)[start-f.lines[p.Line-1]:]
	rest := line
	for strings.HasPrefix(rest, "&") || strings.HasPrefix(rest, "!") {
		i := strings.IndexByte(rest, ' ')
		if i < 0 {
			return 0
		}
		rest = strings.TrimLeft(rest[i:], " ")
	}
	return utf8.RuneCountInString(line) - utf8.RuneCountInString(rest)
}

// Advance returns the position of byte off of text. The first rune of text is at the position at. The text may be
// the value of a YAML scalar: indentation, folded lines and escapes that only exist in the file are skipped. If the
// file does not contain the text there, at is returned.
func Advance(at Pos, text string, off int) Pos {
	if !at.IsValid() {
		return at
	}
	head := text[:min(max(0, off), len(text))]
	start, ok := at.File.byteOf(at)
	if !ok {
		return forward(at, head)
	}
	raw := at.File.Text[start:]
	if len(raw) >= len(head) && string(raw[:len(head)]) == head && !endsLine(head, text) {
		return forward(at, head)
	}
	n, ok := align(string(raw), text, len(head), quoteBefore(at.File.Text[:start]))
	if !ok {
		return at
	}
	return at.File.offset(start + n)
}

// endsLine reports whether head ends before the next line of the text. The indentation of that line in the file is
// not known then.
func endsLine(head, text string) bool {
	return strings.HasSuffix(head, "\n") && len(head) < len(text)
}

func forward(at Pos, head string) Pos {
	if i := strings.LastIndexByte(head, '\n'); i >= 0 {
		at.Line += strings.Count(head, "\n")
		at.Col = 1
		head = head[i+1:]
	}
	at.Col += utf8.RuneCountInString(head)
	return at
}

// byteOf returns the offset of a position in the text of its file.
func (f *File) byteOf(p Pos) (int, bool) {
	line := f.Line(p.Line)
	if len(f.Text) == 0 || p.Line > len(f.lines) || p.Col < 1 {
		return 0, false
	}
	i := f.lines[p.Line-1]
	for col := 1; col < p.Col; col++ {
		_, n := utf8.DecodeRuneInString(line)
		if n == 0 {
			return 0, false
		}
		line = line[n:]
		i += n
	}
	return i, true
}

func quoteBefore(text []byte) byte {
	if n := len(text); n > 0 && (text[n-1] == '"' || text[n-1] == '\'') {
		return text[n-1]
	}
	return 0
}

// align advances in the file's text and in the scalar's value in parallel, up to byte off of the value. It returns
// the offset in the file's text.
func align(raw, text string, off int, quote byte) (int, bool) {
	i := 0
	for j := 0; j <= off; {
		if j == len(text) {
			return i, true
		}
		if text[j] != ' ' && text[j] != '\n' {
			i += len(raw[i:]) - len(strings.TrimLeft(raw[i:], blanksAt(raw, i)))
		}
		if i >= len(raw) {
			return 0, false
		}
		if j == off {
			return i, true
		}
		n, m := step(raw[i:], text[j:], quote)
		if n == 0 {
			return 0, false
		}
		i, j = i+n, j+m
	}
	return i, true
}

// blanksAt returns the characters to skip in the file before the next non-blank: indentation, and line breaks that
// the value does not have.
func blanksAt(raw string, i int) string {
	if i > 0 && (raw[i-1] == '\n' || raw[i-1] == ' ') || i < len(raw) && (raw[i] == '\n' || raw[i] == '\r') {
		return " \t\r\n"
	}
	return ""
}

// step returns the number of bytes in the file and in the value that represent one character.
func step(raw, text string, quote byte) (n, m int) {
	_, size := utf8.DecodeRuneInString(text)
	switch {
	case quote == '\'' && strings.HasPrefix(raw, "''"):
		return 2, 1
	case raw[0] == '\\' && (quote == '"' || text[0] != '\\'):
		return escape(raw, size)
	case strings.HasPrefix(raw, text[:size]):
		return size, size
	case raw[0] == '\'' && text[0] != '\'':
		return 1, 0 // the second of two single quotes
	case text[0] == ' ' || text[0] == '\n':
		blank := len(raw) - len(strings.TrimLeft(raw, " \t\r\n"))
		return blank, len(text) - len(strings.TrimLeft(text, " \n"))
	}
	return 0, 0
}

// escape returns the length of an escape in a double-quoted scalar.
func escape(raw string, size int) (n, m int) {
	if len(raw) < 2 {
		return 0, 0
	}
	switch raw[1] {
	case 'x':
		return min(4, len(raw)), size
	case 'u':
		return min(6, len(raw)), size
	case 'U':
		return min(10, len(raw)), size
	case '\n', '\r': // an escaped line break
		return 1 + len(raw[1:]) - len(strings.TrimLeft(raw[1:], " \t\r\n")), 0
	}
	return 2, size
}

func firstColumn(line string) int {
	return len(line) - len(strings.TrimLeft(line, " ")) + 1
}

package template

import (
	"sort"
	"unicode/utf8"

	"kubekey/pkg/source"
)

// origin maps offsets of a template's source to positions in its file.
type origin struct {
	src   string
	base  source.Pos // of the first rune of src; can be the zero Pos
	lines []int      // offset of the first byte of each line
}

func newOrigin(src string, base source.Pos) *origin {
	o := &origin{src: src, base: base, lines: []int{0}}
	for i := 0; i < len(src); i++ {
		if src[i] == '\n' {
			o.lines = append(o.lines, i+1)
		}
	}
	return o
}

// pos returns the position of a byte of the source.
func (o *origin) pos(off int) source.Pos {
	if o.base.File == nil || o.base.Line != 1 || o.base.Col != 1 {
		return source.Advance(o.base, o.src, off)
	}
	off = min(off, len(o.src))
	n := sort.SearchInts(o.lines, off+1) - 1
	return source.Pos{File: o.base.File, Line: n + 1, Col: utf8.RuneCountInString(o.src[o.lines[n]:off]) + 1}
}

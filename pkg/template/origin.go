package template

import (
	"path/filepath"
	"sort"
	"strings"
	"unicode/utf8"

	"kubekey/pkg/source"
)

// origin maps offsets of a template's source to positions in its file.
type origin struct {
	src   string
	base  source.Pos // of the first rune of src; may be nowhere
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

// pos is the position of a byte of the source. A line of a YAML scalar is
// searched in the file, since its indentation is not part of the string;
// where it is not found the position is that of the whole string.
func (o *origin) pos(off int) source.Pos {
	if !o.base.IsValid() {
		return o.base
	}
	off = min(off, len(o.src))
	n := sort.SearchInts(o.lines, off+1) - 1
	at := o.base
	col := utf8.RuneCountInString(o.src[o.lines[n]:off])
	if n == 0 {
		at.Col += col
		return at
	}
	indent, ok := o.indent(n)
	if !ok {
		return at
	}
	at.Line += n
	at.Col = indent + col + 1
	return at
}

// indent is how many runes of the file's line stand before line n of the source.
func (o *origin) indent(n int) (int, bool) {
	if o.base.Line == 1 && o.base.Col == 1 {
		return 0, true
	}
	line := strings.TrimRight(o.line(n), "\r\n")
	shown := o.base.File.Line(o.base.Line + n)
	i := strings.Index(shown, line)
	if i < 0 {
		return 0, false
	}
	return utf8.RuneCountInString(shown[:i]), true
}

func (o *origin) line(n int) string {
	if n+1 < len(o.lines) {
		return o.src[o.lines[n]:o.lines[n+1]]
	}
	return o.src[o.lines[n]:]
}

// shownName is a path as people are shown it: relative to the working folder
// when it is below that.
func shownName(path, cwd string) string {
	if cwd == "" || source.IsBuiltin(path) {
		return path
	}
	rel, err := filepath.Rel(cwd, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return path
	}
	return rel
}

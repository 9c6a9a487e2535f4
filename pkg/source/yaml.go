package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// MaxFile is the most bytes that a YAML file may have: what people write is
// far below, and what a mistaken path names is far above.
const MaxFile = 32 << 20

// ParseYAML parses the documents of a file and finds what a parser alone can
// see: bytes that are no UTF-8, tabs, syntax, duplicate keys. The nodes are
// those that came before the first syntax error.
func ParseYAML(f *File) ([]*yaml.Node, Diagnostics) {
	if d := checkText(f); d != nil {
		return nil, Diagnostics{d}
	}
	var docs []*yaml.Node
	var ds Diagnostics
	dec := yaml.NewDecoder(bytes.NewReader(f.Text))
	for {
		doc := new(yaml.Node)
		err := decodeNode(dec, doc)
		if errors.Is(err, io.EOF) {
			return docs, ds
		}
		if err != nil {
			ds.Add(syntaxError(f, err))
			return docs, ds
		}
		ds = append(ds, duplicates(f, doc, 0)...)
		docs = append(docs, doc)
	}
}

// decodeNode guards against panics of the parser on hostile input.
func decodeNode(dec *yaml.Decoder, doc *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: the text cannot be parsed (%v)", r)
		}
	}()
	return dec.Decode(doc)
}

func checkText(f *File) *Diagnostic {
	if len(f.Text) > MaxFile {
		return Errorf(Pos{File: f}, "file has %d MB; at most %d are read", len(f.Text)>>20, MaxFile>>20).
			WithHelp("is this the right file?")
	}
	if i := invalidUTF8(f.Text); i >= 0 {
		return Errorf(f.offset(i), "byte 0x%02x is not valid UTF-8", f.Text[i]).
			WithHelp("save the file as UTF-8")
	}
	if i := bytes.IndexByte(f.Text, 0); i >= 0 {
		return Errorf(f.offset(i), "a zero byte: this is not a text file").WithHelp("is this the right file?")
	}
	return nil
}

func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// offset turns a byte offset into a position.
func (f *File) offset(i int) Pos {
	before := f.Text[:i]
	line := bytes.Count(before, []byte("\n")) + 1
	start := bytes.LastIndexByte(before, '\n') + 1
	return Pos{f, line, utf8.RuneCount(f.Text[start:i]) + 1}
}

var lineInError = regexp.MustCompile(`^yaml: (?:unmarshal errors:\s*)?line (\d+): (.*)$`)

func syntaxError(f *File, err error) *Diagnostic {
	text := err.Error()
	m := lineInError.FindStringSubmatch(text)
	if m == nil {
		return Errorf(Pos{File: f, Line: 1, Col: 1}, "Syntax Error while loading YAML: %s", strings.TrimPrefix(text, "yaml: "))
	}
	line, _ := strconv.Atoi(m[1])
	line, why := locate(f, line), m[2]
	at := Pos{File: f, Line: line, Col: firstColumn(f.Line(line))}
	d := Errorf(at, "Syntax Error while loading YAML: %s", why)
	d.Help = hint(f, &d.Pos, why)
	return d
}

// maxRetried bounds the lines of a file whose syntax error is searched for.
const maxRetried = 4000

// locate finds the line of a syntax error. The parser names the line where the
// construct began that it could not end; the error is behind the longest run
// of whole lines that can be parsed.
func locate(f *File, named int) int {
	f.once.Do(f.index)
	if len(f.lines) > maxRetried {
		return max(1, named)
	}
	good := 0
	for n := len(f.lines) - 1; n >= 1; n-- {
		if parses(f.Text[:f.lines[n]]) {
			good = n
			break
		}
	}
	for n := good + 1; n <= len(f.lines); n++ {
		if text := strings.TrimSpace(f.Line(n)); text != "" && !strings.HasPrefix(text, "#") {
			return n
		}
	}
	return max(1, named)
}

func parses(text []byte) bool {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		err := decodeNode(dec, new(yaml.Node))
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

func tabIndent(line string) bool {
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return strings.Contains(indent, "\t")
}

func firstColumn(line string) int {
	return len(line) - len(strings.TrimLeft(line, " ")) + 1
}

// hint guesses what a person did wrong, and moves the position to it.
func hint(f *File, at *Pos, why string) string {
	line := f.Line(at.Line)
	switch {
	case tabIndent(line):
		at.Col = strings.Index(line, "\t") + 1
		return "indent with spaces: YAML allows no tabs there"
	case regexp.MustCompile(`[:-] +\{\{`).MatchString(line):
		at.Col = strings.Index(line, "{{") + 1
		return `a value that starts with {{ needs quotes: "{{ ... }}"`
	case strings.Contains(why, "mapping values are not allowed"):
		if i := strings.LastIndex(line, ": "); i >= 0 {
			at.Col = utf8.RuneCountInString(line[:i]) + 1
		}
		return `quote a text that has ": " in it, or check the indentation of the line above`
	case strings.Contains(why, "cannot start any token"):
		if i := strings.IndexAny(line, "@`%\t"); i >= 0 {
			at.Col = utf8.RuneCountInString(line[:i]) + 1
		}
		return "quote a text that starts with @, ` or %"
	case strings.Contains(why, "did not find expected"):
		return "check the indentation, and that every quote and bracket is closed"
	case strings.Contains(why, "unknown anchor"):
		return "define the anchor (&name) above its use"
	}
	return ""
}

// maxDepth bounds how deep nodes are searched; deeper ones are refused when
// they are decoded.
const maxDepth = 200

// duplicates reports every key that stands twice in one mapping.
func duplicates(f *File, n *yaml.Node, depth int) (ds Diagnostics) {
	if depth > maxDepth {
		return Diagnostics{Errorf(NodePos(f, n), "nested too deep (more than %d levels)", maxDepth)}
	}
	if n.Kind == yaml.MappingNode {
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
				continue
			}
			if line, dup := seen[k.Value]; dup {
				d := Errorf(NodePos(f, k), "key %q stands twice in this mapping (first on line %d)", k.Value, line).
					WithHelp("remove or rename one: the last would silently win")
				d.Width = utf8.RuneCountInString(k.Value)
				ds.Add(d)
			}
			seen[k.Value] = k.Line
		}
	}
	for _, c := range n.Content {
		ds = append(ds, duplicates(f, c, depth+1)...)
	}
	return ds
}

// NodePos is the position of a node.
func NodePos(f *File, n *yaml.Node) Pos {
	if n == nil {
		return Pos{File: f}
	}
	return Pos{File: f, Line: n.Line, Col: n.Column}
}

// TextPos is the position of the first rune of a scalar's text: behind the
// quote, or on the line below a block scalar's mark.
func TextPos(f *File, n *yaml.Node) Pos {
	p := NodePos(f, n)
	switch {
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		p.Col++
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		p.Line++
		p.Col = firstColumn(f.Line(p.Line))
	}
	return p
}

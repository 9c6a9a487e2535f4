package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// MaxFile is the maximum size of a YAML file in bytes. Files written by users are far smaller. A larger file
// usually means a wrong path.
const MaxFile = 32 << 20

// ParseYAML parses the documents of a file and reports everything that can be detected without a schema: invalid
// UTF-8, tabs, syntax errors, duplicate keys, unknown tags, and aliases that expand endlessly. It returns the
// documents before the first syntax error. Documents with endless aliases are skipped.
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
			ds.Add(SyntaxError(f, err))
			return docs, ds
		}
		ds = append(append(ds, duplicates(f, doc, 0)...), tags(f, doc, 0)...)
		if d := aliases(f, doc); d != nil {
			return docs, append(ds, d)
		}
		docs = append(docs, doc)
	}
}

// decodeNode recovers from panics of the parser on hostile input.
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

// offset converts a byte offset to a position.
func (f *File) offset(i int) Pos {
	f.once.Do(f.index)
	line := sort.SearchInts(f.lines, i+1)
	return Pos{f, line, utf8.RuneCount(f.Text[f.lines[line-1]:i]) + 1}
}

// maxDepth limits how deep nodes are searched. Deeper nodes are rejected when they are decoded.
const maxDepth = 200

// duplicates reports every duplicate key of a mapping.
func duplicates(f *File, n *yaml.Node, depth int) (ds Diagnostics) {
	if depth > maxDepth {
		return Diagnostics{Errorf(NodePos(f, n), "nested too deep (more than %d levels)", maxDepth)}
	}
	if n.Kind == yaml.MappingNode {
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			k := key
			if k.Kind == yaml.AliasNode {
				k = k.Alias
			}
			if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
				continue
			}
			if line, dup := seen[k.Value]; dup {
				d := Errorf(NodePos(f, key), "key %q is set twice in this mapping (first on line %d)", k.Value, line).
					WithHelp("remove or rename one: the last would silently win")
				d.Width = utf8.RuneCountInString(k.Value)
				ds.Add(d)
			}
			seen[k.Value] = key.Line
		}
	}
	for _, c := range n.Content {
		ds = append(ds, duplicates(f, c, depth+1)...)
	}
	return ds
}

// tags reports the tags in a tree of nodes that have no meaning where they are used.
func tags(f *File, n *yaml.Node, depth int) (ds Diagnostics) {
	if depth > maxDepth || n.Kind == yaml.AliasNode {
		return nil
	}
	ds.Add(wrongTag(f, n))
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if d := keyTag(f, c); d != nil {
				ds.Add(d)
				continue
			}
		}
		ds = append(ds, tags(f, c, depth+1)...)
	}
	return ds
}

// wrongTag reports an unknown tag. Most often it is text that begins with an exclamation mark, or a tag that does
// not match the type of its value.
func wrongTag(f *File, n *yaml.Node) *Diagnostic {
	if n.Style&yaml.TaggedStyle == 0 {
		return nil
	}
	kind := yaml.ScalarNode
	switch tag := n.ShortTag(); tag {
	case "", "!", "!unsafe":
		return nil
	case "!!map":
		kind = yaml.MappingNode
	case "!!seq":
		kind = yaml.SequenceNode
	case "!vault", "!vault-encrypted":
		if n.Kind == yaml.ScalarNode && !IsVault([]byte(strings.TrimSpace(n.Value))) {
			return tagError(f, n, "what is tagged %s is not encrypted", n.Tag).
				WithHelp("`kk vault encrypt-string` prints a value to put here")
		}
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!binary", "!!timestamp":
	default:
		d := tagError(f, n, "unknown YAML tag %s", n.Tag)
		if !strings.HasPrefix(tag, "!!") {
			return d.WithHelp("quote a text that starts with !: \"%s\"", n.Tag)
		}
		return d.WithHelp("remove it")
	}
	if n.Kind != kind {
		return tagError(f, n, "the tag %s cannot stand before a %s", n.Tag, nodeKind(n))
	}
	return nil
}

// keyTag reports a key with a tag that only makes sense for values: encrypted keys are never looked up, and keys
// are not templates.
func keyTag(f *File, n *yaml.Node) *Diagnostic {
	if n.Style&yaml.TaggedStyle == 0 || n.Kind != yaml.ScalarNode {
		return nil
	}
	switch n.Tag {
	case "!vault", "!vault-encrypted", "!unsafe":
		return tagError(f, n, "a key cannot have the tag %s", n.Tag).WithHelp("tag the value")
	}
	return nil
}

func tagError(f *File, n *yaml.Node, format string, args ...any) *Diagnostic {
	d := Errorf(NodePos(f, n), format, args...)
	d.Width = utf8.RuneCountInString(n.Tag)
	return d
}

func nodeKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	}
	return "scalar"
}

// maxNodes limits the number of nodes after aliases are expanded (the "billion laughs" attack).
const maxNodes = 500_000

// aliases reports an anchor that contains itself, and aliases that expand to too many nodes. It stops at the first
// problem.
func aliases(f *File, doc *yaml.Node) *Diagnostic {
	e := expansion{f: f, sizes: map[*yaml.Node]int{}}
	e.size(doc)
	return e.problem
}

// expansion counts nodes with all aliases expanded.
type expansion struct {
	f       *File
	sizes   map[*yaml.Node]int // of anchored nodes; -1 while counting
	aliased bool
	problem *Diagnostic
}

func (e *expansion) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		return e.alias(n)
	}
	if n.Anchor != "" {
		e.sizes[n] = -1
	}
	total := 1
	for _, c := range n.Content {
		total += e.size(c)
		if e.aliased && total > maxNodes && e.problem == nil {
			e.problem = Errorf(NodePos(e.f, c), "aliases expand to more than %d values", maxNodes).
				WithHelp("use fewer aliases of aliases")
		}
		if e.problem != nil {
			return 0
		}
	}
	if n.Anchor != "" {
		e.sizes[n] = total
	}
	return total
}

func (e *expansion) alias(n *yaml.Node) int {
	e.aliased = true
	size := e.sizes[n.Alias]
	if size >= 0 {
		return size
	}
	e.problem = Errorf(NodePos(e.f, n), "alias *%s is inside the anchor &%s that it means", n.Value, n.Value).
		WithHelp("a value cannot contain itself")
	e.problem.Width = utf8.RuneCountInString(n.Value) + 1
	return 0
}

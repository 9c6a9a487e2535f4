package template

import (
	"fmt"
	"strconv"
	"strings"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// syntax is the markup of a document: its delimiters and whitespace rules.
type syntax struct {
	blockStart, blockEnd     string
	varStart, varEnd         string
	commentStart, commentEnd string
	trim, lstrip             bool
	newline                  string
}

func (o FileOptions) syntax() syntax {
	return syntax{
		blockStart: or(o.BlockStart, "{%"), blockEnd: or(o.BlockEnd, "%}"),
		varStart: or(o.VariableStart, "{{"), varEnd: or(o.VarEnd, "}}"),
		commentStart: or(o.CommentStart, "{#"), commentEnd: or(o.CommentEnd, "#}"),
		trim: !o.NoTrimBlocks, lstrip: o.LStripBlocks,
		newline: or(o.Newline, "\n"),
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// check rejects delimiters that are ambiguous.
func (s *syntax) check(at source.Pos) *source.Diagnostic {
	if s.blockStart == s.varStart || s.blockStart == s.commentStart || s.varStart == s.commentStart {
		return source.Errorf(at, "the start strings of blocks, variables and comments are not all different")
	}
	if s.newline != "\n" && s.newline != "\r\n" && s.newline != "\r" {
		return source.Errorf(at, "newline sequence %q is none of \\n, \\r\\n and \\r", s.newline)
	}
	return nil
}

// marked reports whether src contains any markup.
func (s *syntax) marked(src string) bool {
	return strings.Contains(src, s.varStart) || strings.Contains(src, s.blockStart) ||
		strings.Contains(src, s.commentStart)
}

// headerMark begins a first line that overrides the syntax of its document.
const headerMark = "#jinja2:"

// header applies a first line like `#jinja2: lstrip_blocks: True` to s and returns the length of that line in
// bytes.
func (s *syntax) header(src string, at source.Pos) (int, *source.Diagnostic) {
	if !strings.HasPrefix(src, headerMark) {
		return 0, nil
	}
	line, _, found := strings.Cut(src, "\n")
	for _, pair := range splitHeader(line[len(headerMark):]) {
		if d := s.override(pair, at); d != nil {
			return 0, d
		}
	}
	if found {
		return len(line) + 1, s.check(at)
	}
	return len(line), s.check(at)
}

// splitHeader splits `key: value, key: value` at the commas outside quotes.
func splitHeader(line string) []string {
	var out []string
	start, quote := 0, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ',':
			out = append(out, line[start:i])
			start = i + 1
		}
	}
	return append(out, line[start:])
}

func (s *syntax) override(pair string, at source.Pos) *source.Diagnostic {
	key, text, ok := strings.Cut(pair, ":")
	key, text = strings.TrimSpace(key), strings.TrimSpace(text)
	if key == "" && !ok {
		return nil
	}
	flags := map[string]*bool{"trim_blocks": &s.trim, "lstrip_blocks": &s.lstrip}
	words := map[string]*string{
		"block_start_string": &s.blockStart, "block_end_string": &s.blockEnd,
		"variable_start_string": &s.varStart, "variable_end_string": &s.varEnd,
		"comment_start_string": &s.commentStart, "comment_end_string": &s.commentEnd,
		"newline_sequence": &s.newline,
	}
	if flag := flags[key]; flag != nil {
		return setFlag(flag, key, text, at)
	}
	if word := words[key]; word != nil {
		return setWord(word, key, text, at)
	}
	known := []string{"trim_blocks", "lstrip_blocks"}
	for k := range words {
		known = append(known, k)
	}
	return source.Errorf(at, "%q is no setting of a %s line", key, headerMark).WithHelp("%s",
		source.DidYouMean(key, known))
}

func setFlag(flag *bool, key, text string, at source.Pos) *source.Diagnostic {
	switch text {
	case "True", "true", "yes":
		*flag = true
	case "False", "false", "no":
		*flag = false
	default: // any Python literal, with Python's truth value
		v, err := value.FromLiteral(text, value.PythonNames())
		if err != nil {
			return source.Errorf(at, "%s is %q, but must be True or False", key, text)
		}
		*flag = value.Truth(v)
	}
	return nil
}

func setWord(word *string, key, text string, at source.Pos) *source.Diagnostic {
	v, err := value.FromLiteral(text, value.PythonNames())
	s, ok := v.(string)
	if err != nil || !ok || s == "" {
		return source.Errorf(at, "%s is %s, but must be a quoted string", key, strconv.Quote(text)).
			WithHelp("%s", fmt.Sprintf("write %s: '%s'", key, strings.Trim(text, `'"`)))
	}
	*word = s
	return nil
}

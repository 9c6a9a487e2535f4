package inventory

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// insertFlow adds an item at the end of a mapping or list in braces or brackets.
func (e *yamlEditor) insertFlow(l *layout, n *yaml.Node, item string) error {
	open := l.opening(n)
	items, closed, err := flowItems(e.file.Text, open)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return e.splice(open+1, closed, item)
	}
	last := items[len(items)-1]
	lineStart := bytes.LastIndexByte(e.file.Text[:last.start], '\n') + 1
	before := string(e.file.Text[lineStart:last.start])
	if strings.Trim(before, " \t") != "" || lineStart <= open {
		switch {
		case last.comma >= 0:
			return e.splice(last.comma+1, last.comma+1, " "+item)
		case e.file.Text[last.end-1] == ':': // a colon before a comma would be part of the name
			return e.splice(last.end, last.end, " , "+item)
		}
		return e.splice(last.end, last.end, ", "+item)
	}
	// One item a line: the new one gets its own, below the comment behind the last one.
	at := last.end
	if last.comma >= 0 {
		at = last.comma + 1
		item += ","
	}
	newline := bytes.IndexByte(e.file.Text[at:], '\n')
	rest := ""
	if newline >= 0 {
		rest = strings.TrimLeft(string(e.file.Text[at:at+newline]), " \t")
	}
	if newline < 0 || rest != "" && rest[0] != '#' {
		newline = 0
	}
	if err := e.splice(at+newline, at+newline, "\n"+before+item); err != nil || last.comma >= 0 {
		return err
	}
	comma := ","
	if e.file.Text[last.end-1] == ':' {
		comma = " ,"
	}
	return e.splice(last.end, last.end, comma)
}

// removeFlow removes an item of a mapping or list in braces or brackets.
func (e *yamlEditor) removeFlow(l *layout, en entry) error {
	open := l.opening(en.section.hosts)
	items, _, err := flowItems(e.file.Text, open)
	if err != nil {
		return err
	}
	key := l.offset(en.key)
	i := slices.IndexFunc(items, func(it flowSpan) bool { return it.start <= key && key < it.end })
	if i < 0 {
		return l.failAt(en.key, "the entry is not found in its braces")
	}
	it := items[i]
	start, end := it.start, it.end
	if it.comma >= 0 {
		end = it.comma + 1
	}
	text := e.file.Text
	lineStart := bytes.LastIndexByte(text[:start], '\n') + 1
	lineEnd := len(text)
	if n := bytes.IndexByte(text[end:], '\n'); n >= 0 {
		lineEnd = end + n + 1
	}
	rest := strings.TrimSpace(string(text[end:lineEnd]))
	if strings.TrimSpace(string(text[lineStart:start])) == "" && (rest == "" || rest[0] == '#') && lineStart > open {
		for lineStart > 0 { // comments directly above
			prev := bytes.LastIndexByte(text[:lineStart-1], '\n') + 1
			if prev <= open || !isComment(string(text[prev:lineStart])) {
				break
			}
			lineStart = prev
		}
		start, end = lineStart, lineEnd
	} else {
		for end < len(text) && text[end] == ' ' && it.comma >= 0 {
			end++
		}
	}
	if err := e.splice(start, end, ""); err != nil {
		return err
	}
	if it.comma < 0 && i > 0 { // the last one: no comma remains before it
		prev := items[i-1]
		stop := prev.comma + 1
		if start == it.start {
			for stop < start && e.file.Text[stop] == ' ' {
				stop++
			}
		}
		return e.splice(prev.comma, stop, "")
	}
	return nil
}

// flowSpan is an item in braces or brackets: its text without blanks and comments around, and the comma behind it, -1
// if there is none.
type flowSpan struct{ start, end, comma int }

// flowItems returns the items of the collection that opens at an offset, and the offset of its end.
func flowItems(text []byte, open int) ([]flowSpan, int, error) {
	var items []flowSpan
	it := flowSpan{-1, -1, -1}
	depth := 0
	before := byte(' ')
	for i := open; i < len(text); i++ {
		c := text[i]
		begins := before == ' ' || strings.IndexByte("{[,:", before) >= 0
		switch {
		case c == '#' && (before == ' ' || i == open+1):
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
			continue
		case (c == '"' || c == '\'') && begins:
			end := quoteEnd(text, i)
			if end < 0 {
				return nil, 0, fmt.Errorf("a quote is not closed")
			}
			if it.start < 0 {
				it.start = i
			}
			i, it.end = end, end+1
		case c == '{' || c == '[':
			if depth++; depth > 1 {
				if it.start < 0 {
					it.start = i
				}
				it.end = i + 1
			}
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				if it.start >= 0 {
					items = append(items, it)
				}
				return items, i, nil
			}
			it.end = i + 1
		case c == ',' && depth == 1:
			if it.start < 0 {
				return nil, 0, fmt.Errorf("a comma without an item")
			}
			it.comma = i
			items = append(items, it)
			it = flowSpan{-1, -1, -1}
		case c == ' ' || c == '\t' || c == '\n':
			before = ' '
			continue
		default:
			if it.start < 0 {
				it.start = i
			}
			it.end = i + 1
		}
		before = text[i]
	}
	return nil, 0, fmt.Errorf("a brace or bracket is not closed")
}

// quoteEnd returns the offset of the quote that closes the one at i, -1 if there is none.
func quoteEnd(text []byte, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i
		}
	}
	return -1
}

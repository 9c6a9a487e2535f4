package main

import (
	"fmt"
	"strings"
)

// generated is the first line of every page.
const generated = "<!-- Written by docs/gen (make docs); do not edit. -->\n"

// document collects the text of a page.
type document struct{ strings.Builder }

func newDocument(title string) *document {
	d := &document{}
	d.WriteString(generated)
	d.line("# %s", title)
	return d
}

// line adds a paragraph.
func (d *document) line(format string, args ...any) {
	fmt.Fprintf(d, "\n"+format+"\n", args...)
}

// text adds a paragraph without formatting.
func (d *document) text(s string) { d.line("%s", s) }

// code adds a code block.
func (d *document) code(language, text string) {
	d.line("```%s\n%s\n```", language, strings.Trim(text, "\n"))
}

// table adds a table. Cells are Markdown; bars and line breaks in them are escaped.
func (d *document) table(head []string, rows [][]string) {
	d.WriteString("\n")
	d.row(head)
	d.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, r := range rows {
		d.row(r)
	}
}

func (d *document) row(cells []string) {
	d.WriteString("|")
	for _, c := range cells {
		d.WriteString(" " + cell(c) + " |")
	}
	d.WriteString("\n")
}

func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ").Replace(s)
}

// quoted puts text in code quotes. They are longer if the text itself contains some.
func quoted(s string) string {
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}

func quotedList(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quoted(n)
	}
	return strings.Join(out, ", ")
}

// plain escapes the characters of a text that Markdown or HTML would interpret.
func plain(s string) string {
	return strings.NewReplacer("<", "&lt;", "*", "\\*").Replace(s)
}

// sentence adds a period to a text that does not end with punctuation.
func sentence(s string) string {
	if s == "" || strings.ContainsRune(".!?`", rune(s[len(s)-1])) {
		return s
	}
	return s + "."
}

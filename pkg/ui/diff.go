package ui

import (
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// maxDiff is the size from which a text is not compared.
const maxDiff = 104448

const tooLarge = "diff skipped: the file is larger than 104448 bytes"

// diff shows what a module changes; an empty line ends what is compared here.
func (p *printer) diff(d event.Diff) {
	before, after := diffText(d.Before, p.o.Redact), diffText(d.After, p.o.Redact)
	switch {
	case d.Note != "":
		p.print("", d.Note)
	case len(before) > maxDiff || len(after) > maxDiff:
		p.print("", tooLarge)
	case before != after:
		p.changes(unified(diffLines(before), diffLines(after), header("before", d.BeforeHeader), header("after", d.AfterHeader)))
		p.print("", "")
	}
	if d.Prepared != "" {
		p.changes(strings.SplitAfter(strings.TrimSuffix(d.Prepared, "\n"), "\n"))
	}
}

// Unified is a diff as text: what was prepared, a unified diff of what is
// before and after, or the note that says why there is none. It is empty when
// nothing differs.
func Unified(d event.Diff) string {
	before, after := diffText(d.Before, &redact.Set{}), diffText(d.After, &redact.Set{})
	switch {
	case d.Note != "":
		return d.Note
	case len(before) > maxDiff || len(after) > maxDiff:
		return tooLarge
	}
	lines := unified(diffLines(before), diffLines(after), header("before", d.BeforeHeader), header("after", d.AfterHeader))
	return strings.Join(lines, "") + d.Prepared
}

func header(word, path string) string {
	if path == "" {
		return word
	}
	return word + ": " + path
}

// diffText is one side of a diff.
func diffText(v any, hide *redact.Set) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return hide.Text(v)
	}
	text, err := value.JSON(event.Map(v, hide.Text), value.JSONOptions{Indent: 4, SortKeys: true})
	if err != nil {
		return value.Str(v)
	}
	return text + "\n"
}

// diffLines splits a text into lines with their ends, and marks a missing last one.
func diffLines(text string) []string {
	if text == "" {
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n\\ No newline at end of file\n"
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		n := len(lines)
		lines[n-2] += lines[n-1] + "\n" // the mark belongs to the line
		return lines[:n-1]
	}
	lines := strings.SplitAfter(text, "\n")
	return lines[:len(lines)-1]
}

func (p *printer) changes(lines []string) {
	for _, line := range lines {
		c := color("")
		switch {
		case strings.HasPrefix(line, "@@"):
			c = cyan
		case strings.HasPrefix(line, "+"):
			c = green
		case strings.HasPrefix(line, "-"):
			c = red
		}
		p.print(c, visible(strings.TrimSuffix(line, "\n")))
	}
}

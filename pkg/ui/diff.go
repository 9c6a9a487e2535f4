package ui

import (
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/value"
)

// maxDiff is the size from which a text is not compared.
const maxDiff = 104448

// diff shows what a module changes; an empty line ends what is compared here.
func (p *printer) diff(d event.Diff) {
	before, after := p.diffText(d.Before), p.diffText(d.After)
	switch {
	case d.Note != "":
		p.print("", d.Note)
	case len(before) > maxDiff || len(after) > maxDiff:
		p.print("", "diff skipped: the file is larger than 104448 bytes")
	case before != after:
		p.changes(unified(diffLines(before), diffLines(after), header("before", d.BeforeHeader), header("after", d.AfterHeader)))
		p.print("", "")
	}
	if d.Prepared != "" {
		p.changes(strings.SplitAfter(strings.TrimSuffix(d.Prepared, "\n"), "\n"))
	}
}

func header(word, path string) string {
	if path == "" {
		return word
	}
	return word + ": " + path
}

func (p *printer) diffText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return p.o.Redact.Text(v)
	}
	text, err := value.JSON(event.Map(v, p.o.Redact.Text), value.JSONOptions{Indent: 4, SortKeys: true})
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

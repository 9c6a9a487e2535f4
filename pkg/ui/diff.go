package ui

import (
	"strings"

	"kubekey/pkg/difflib"
	"kubekey/pkg/event"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// maxDiff is the size, in bytes, above which a text is not compared.
const maxDiff = 104448

const tooLarge = "diff skipped: the file is larger than 104448 bytes"

// diff shows what a module changes, followed by an empty line.
func (p *printer) diff(d event.Diff) {
	before, after := diffText(d.Before, p.o.Redact), diffText(d.After, p.o.Redact)
	switch {
	case d.Note != "":
		p.print("", d.Note)
	case len(before) > maxDiff || len(after) > maxDiff:
		p.print("", tooLarge)
	case before != after:
		p.changes(difflib.Unified(difflib.Lines(before), difflib.Lines(after), header("before", d.BeforeHeader),
			header("after", d.AfterHeader)))
		p.print("", "")
	}
	if d.Prepared != "" {
		p.prepared(d.Prepared)
	}
}

// prepared shows a diff that another program made. Its lines are those of a diff or are
// indented, so that none looks like one of kk.
func (p *printer) prepared(text string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" && !strings.ContainsRune("+-@\\ \t", rune(line[0])) {
			lines[i] = "  " + line
		}
	}
	p.changes(lines)
}

// Unified is a diff as text: the prepared one, a unified diff, or the note that explains why
// there is none. It is empty if nothing differs.
func Unified(d event.Diff) string {
	before, after := diffText(d.Before, &redact.Set{}), diffText(d.After, &redact.Set{})
	switch {
	case d.Note != "":
		return d.Note
	case len(before) > maxDiff || len(after) > maxDiff:
		return tooLarge
	}
	lines := difflib.Unified(difflib.Lines(before), difflib.Lines(after), header("before", d.BeforeHeader),
		header("after", d.AfterHeader))
	return strings.Join(lines, "") + d.Prepared
}

func header(word, path string) string {
	if path == "" {
		return word
	}
	return word + ": " + Inline(path)
}

// diffText is one side of a diff as text.
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

// changes shows the lines of a diff. An element can be two lines: one without a line end, and
// the note about that.
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
		p.block(c, "", strings.TrimSuffix(line, "\n"))
	}
}

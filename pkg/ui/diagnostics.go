package ui

import (
	"io"
	"strings"

	"kubekey/pkg/redact"
	"kubekey/pkg/source"
)

// Diagnostics lays out what a load found, with colours if asked for. Secrets
// are hidden, also in the source lines; hide may be nil.
func Diagnostics(w io.Writer, ds source.Diagnostics, colored bool, hide *redact.Set) error {
	for i, d := range ds {
		text := d.RenderHiding(hide.Text)
		if i > 0 {
			text = "\n" + text
		}
		if _, err := io.WriteString(w, colorDiagnostic(d, text, colored)); err != nil {
			return err
		}
	}
	return nil
}

func colorDiagnostic(d *source.Diagnostic, text string, colored bool) string {
	if !colored {
		return text
	}
	c := brightRed
	if d.Severity == source.Warning {
		c = brightPurple
	}
	lines := strings.Split(text, "\n")
	headDone := false
	for i, line := range lines {
		switch {
		case line == "":
		case !headDone:
			lines[i] = paint(true, c, line)
			headDone = true
		case strings.Trim(line, " ^") == "":
			lines[i] = paint(true, c, line)
		case line == d.Help:
			lines[i] = paint(true, cyan, line)
		}
	}
	return strings.Join(lines, "\n")
}

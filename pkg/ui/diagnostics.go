package ui

import (
	"io"
	"strings"

	"kubekey/pkg/redact"
	"kubekey/pkg/source"
)

// Diagnostics prints the problems found by a load, with colours if requested. Secrets are
// hidden, also in source lines; hide may be nil.
func Diagnostics(w io.Writer, ds source.Diagnostics, colored bool, hide *redact.Set) {
	screen := NewScreen(w)
	for i, d := range ds {
		if i > 0 {
			screen.line(false)
		}
		for _, line := range colorDiagnostic(d, d.RenderHiding(hide.Text)) {
			screen.line(colored, line)
		}
	}
}

func colorDiagnostic(d *source.Diagnostic, text string) []span {
	c := brightRed
	if d.Severity == source.Warning {
		c = brightPurple
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	spans := make([]span, len(lines))
	for i, line := range lines {
		spans[i].text = line
		switch {
		case i == 0, strings.Trim(line, " ^") == "":
			spans[i].color = c
		case line == d.Help:
			spans[i].color = cyan
		}
	}
	return spans
}

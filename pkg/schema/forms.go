package schema

import "strings"

// OneLine accepts texts without line ends.
func OneLine(text string) bool { return !strings.ContainsAny(text, "\r\n\x00") }

// NoDash accepts words that a program does not take for an option.
func NoDash(text string) bool { return OneLine(text) && !strings.HasPrefix(text, "-") }

// Absolute accepts paths from the root.
func Absolute(text string) bool { return strings.HasPrefix(text, "/") && OneLine(text) }

// Text is an optional text, "" where it was not given.
func Text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

package ui

import "strings"

// color is the parameter of an ANSI colour sequence.
type color string

const (
	green        color = "0;32"
	yellow       color = "0;33"
	cyan         color = "0;36"
	red          color = "0;31"
	brightRed    color = "1;31"
	brightPurple color = "1;35"
	darkGray     color = "1;30"
	blue         color = "0;34"
)

// paint colours each line of text on its own.
func paint(on bool, c color, text string) string {
	if !on || c == "" || text == "" {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = "\x1b[" + string(c) + "m" + line + "\x1b[0m"
	}
	return strings.Join(lines, "\n")
}

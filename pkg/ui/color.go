package ui

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

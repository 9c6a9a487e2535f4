package shell

import "strings"

// Fill replaces each %s of a command by a variable of the script, which holds the path of a new file to validate; %%
// is a percent sign. How the variable is written depends on the quotes around it.
func Fill(command, variable string) string {
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(command); i++ {
		c := command[i]
		next := byte(0)
		if i+1 < len(command) {
			next = command[i+1]
		}
		switch {
		case c == '%' && next == 's':
			out.WriteString(expansion(variable, quote))
			i++
			continue
		case c == '%' && next == '%':
			i++
		case c == '\\' && quote != '\'' && next != 0 && next != '%':
			out.WriteByte(c)
			i++
			c = next
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		}
		out.WriteByte(c)
	}
	return out.String()
}

// expansion is a variable between quotes.
func expansion(variable string, quote byte) string {
	switch quote {
	case '\'':
		return `'"$` + variable + `"'`
	case '"':
		return "${" + variable + "}"
	}
	return `"$` + variable + `"`
}

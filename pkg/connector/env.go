package connector

import (
	"fmt"
	"io"
	"sort"
	"strings"
)

// readEnv is run before a command that has an environment: it takes the
// assignments from the first lines of standard input. A shell's read takes byte
// by byte from a pipe, so what follows is left for the command.
const readEnv = `kk_nl='
'
while IFS= read -r kk_env && [ -n "$kk_env" ]; do eval "export $kk_env"; done; unset kk_env kk_nl
`

// WithEnv is for those who implement Run: it returns c's line and input with
// c.Env moved to the front of the input, where the line takes it from.
// Without Env both are as they were. A name that no shell can export is an error.
func WithEnv(c Command) (line string, stdin io.Reader, err error) {
	if len(c.Env) == 0 {
		return c.Line, c.Stdin, nil
	}
	text, err := envText(c.Env)
	if err != nil {
		return "", nil, err
	}
	stdin = strings.NewReader(text)
	if c.Stdin != nil {
		stdin = io.MultiReader(stdin, c.Stdin)
	}
	return readEnv + c.Line, stdin, nil
}

// envText is one assignment a line and an empty line. A line feed inside a
// value would end its line early, so it is written as the shell's $kk_nl.
func envText(env map[string]string) (string, error) {
	names := make([]string, 0, len(env))
	for name, value := range env {
		if err := checkEnv(name, value); err != nil {
			return "", err
		}
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%s=%s\n", name, quoteLine(env[name]))
	}
	b.WriteByte('\n')
	return b.String(), nil
}

// checkEnv is an error for what no environment can hold.
func checkEnv(name, value string) error {
	switch {
	case !isName(name):
		return fmt.Errorf("environment variable %q: a name is letters, digits and underscores and does not begin with a digit", name)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("environment variable %s: its value has a zero byte, which no environment can hold", name)
	}
	return nil
}

// quoteLine quotes a value for the shell without using a line feed.
func quoteLine(value string) string {
	quoted := "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
	if !strings.Contains(quoted, "\n") {
		return quoted
	}
	return strings.ReplaceAll(quoted, "\n", `'"${kk_nl}"'`)
}

func isName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

package connector

import (
	"fmt"
	"io"
	"sort"
	"strings"
)

// readEnv runs before a command that has an environment: it reads the assignments from
// the first lines of standard input. A shell reads a pipe byte by byte, so the rest is
// left for the command.
const readEnv = `kk_nl='
'
while IFS= read -r kk_env && [ -n "$kk_env" ]; do eval "export $kk_env"; done; unset kk_env kk_nl
`

// WithEnv is for implementations of Run: it returns c's line and input with c.Env moved
// to the front of the input, where the line reads it. Without Env both are unchanged.
// A name that no shell can export is an error.
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

// envText has one assignment per line, then an empty line. A line feed inside a value
// is written as the shell variable $kk_nl, since it would otherwise end the line.
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

// checkEnv rejects names and values that no environment can contain.
func checkEnv(name, value string) error {
	switch {
	case !isName(name):
		return fmt.Errorf("environment variable %q: "+
			"a name consists of letters, digits and underscores, and does not begin with a digit", name)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("environment variable %s: its value contains a NUL byte, which no environment variable can", name)
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

// Package shell quotes arguments for POSIX shells and builds command lines.
package shell

import "strings"

// Quote returns word so that a POSIX shell reads it as that one word. Words
// of safe characters come back as they are.
func Quote(word string) string {
	if word == "" {
		return "''"
	}
	if strings.IndexFunc(word, unsafe) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func unsafe(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("@%_-+=:,./", r)
}

// Join quotes each word and joins them with blanks.
func Join(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// Script returns a command line that runs script with sh, with args as its
// positional parameters $1, $2, ...
func Script(script string, args ...string) string {
	return Join(append([]string{"/bin/sh", "-c", script, "sh"}, args...)...)
}

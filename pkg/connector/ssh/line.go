package ssh

import (
	"path"
	"strings"
	"sync/atomic"

	"kubekey/pkg/connector"
	"kubekey/pkg/shell"
)

// The command line of a channel is read by the user's login shell, which can be any shell:
// fish, csh. A wrapped line replaces it with /bin/sh, and is written so that every shell
// parses it alike. That costs the host an exec. The first command of a connection therefore
// reports the login shell. A simple command, which every POSIX shell parses alike, is then
// sent unwrapped if the login shell is a POSIX shell.

// loginShell is what is known about a login shell.
type loginShell struct{ posix atomic.Bool }

// reportShell makes a wrapped line print the login shell on standard error before anything
// else; a finder removes it from the output.
func reportShell(mark string) string { return `echo "kk-` + mark + ` $SHELL" >&2;` }

// prepareLine returns the line to send for a command, and the finder of the login shell's
// name in its standard error; nil if none is needed.
func (s *session) prepareLine(line, mark string, tty bool) (string, *finder) {
	shell := &s.link.shell
	switch {
	case s.waits:
		return connector.Marked(line, mark), nil
	case shell.posix.Load() && isSimple(line):
		return connector.MarkedSimple(line, mark), nil
	case shell.posix.Load(), tty:
		return wrap(connector.Marked(line, mark)), nil
	}
	return wrap(reportShell(mark) + connector.Marked(line, mark)), &finder{prefix: "kk-" + mark + " ", found: shell.learn}
}

func (s *loginShell) learn(name string) {
	switch path.Base(name) {
	case "sh", "bash", "dash", "ash", "ksh", "mksh":
		s.posix.Store(true)
	}
}

// wrap returns a command line that runs line with /bin/sh and that every login shell parses
// alike. A line with characters that shells treat differently even in single quotes (fish:
// backslash, csh: line feed and exclamation mark) is encoded as octal numbers.
func wrap(line string) string {
	if !strings.ContainsAny(line, "\\\n!") {
		return "exec /bin/sh -c " + shell.Quote(line)
	}
	return `exec /bin/sh -c 'eval "$(printf %b "$1")"' sh '` + octal("shift;"+line) + "'"
}

func octal(line string) string {
	return strings.NewReplacer(`\`, `\0134`, "\n", `\0012`, "!", `\0041`, "'", `\0047`).Replace(line)
}

// isSimple reports whether line is one program with plain or quoted arguments, which every
// POSIX shell parses alike, and not a builtin that differs between shells.
func isSimple(line string) bool {
	first, _, _ := strings.Cut(line, " ")
	if !strings.HasPrefix(first, "/") || strings.ContainsAny(first, "'\\=") {
		return false
	}
	quoted := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '\\' && i+1 < len(line) && line[i+1] == '\'':
			i++ // an escaped single quote between quoted parts
		case !isPlain(c):
			return false
		}
	}
	return !quoted
}

func isPlain(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte(" @%_-+=:,./", c) >= 0
}

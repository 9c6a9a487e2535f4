package ssh

import (
	"path"
	"strings"
	"sync/atomic"

	"kubekey/pkg/connector"
	"kubekey/pkg/shell"
)

// The command line of a channel is read by the login shell of the user, which may
// be anything: fish, csh. A wrapped line starts /bin/sh in its place, and is
// written so that every shell reads it alike. That costs the host an exec.
// So the first command of a connection tells which shell it is, and a
// simple command, which every POSIX shell reads alike, then goes to such a shell as it is.

// loginShell is what is known of a login shell.
type loginShell struct{ posix atomic.Bool }

// reportShell makes a wrapped line say on standard error which shell it is, before
// anything else; a finder takes it out again.
func reportShell(mark string) string { return `echo "kk-` + mark + ` $SHELL" >&2;` }

// dress returns the line to send for a command, and what looks for the name of the
// login shell in its standard error; nil if nothing does.
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

// wrap returns a command line that runs line with /bin/sh and that every login
// shell understands. A line with characters that shells treat differently even between
// single quotes (fish: backslash, csh: line feed and exclamation mark) goes as octal
// numbers.
func wrap(line string) string {
	if !strings.ContainsAny(line, "\\\n!") {
		return "exec /bin/sh -c " + shell.Quote(line)
	}
	return `exec /bin/sh -c 'eval "$(printf %b "$1")"' sh '` + octal("shift;"+line) + "'"
}

func octal(line string) string {
	return strings.NewReplacer(`\`, `\0134`, "\n", `\0012`, "!", `\0041`, "'", `\0047`).Replace(line)
}

// isSimple says whether line is one program with plain or quoted words, which every
// POSIX shell reads alike, and which is none of the names that shells have
// built in with differences.
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
			i++ // as a quoted word writes a single quote
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

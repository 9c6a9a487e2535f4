package file

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/shell"
)

// library is the shell functions that every script begins with.
//
//go:embed host.sh
var library string

// longestLine is how much script may stand in a command line: Linux allows
// 128 KiB for one argument. A longer script goes over standard input.
const longestLine = 60 << 10

// failedExit is what a script ends with when a step of it failed (kk_do).
const failedExit = 97

// script is shell code that runs on the host in one round trip. It holds
// quoted paths but never contents, except in scripts with secret set, which
// go over standard input and so stay out of the process list.
type script struct {
	body   strings.Builder
	probe  bool // changes nothing
	secret bool
	said   string // on standard error, by a script that succeeded
}

// code is what comes after library.
func (s *script) code() string { return "kk_begin\n" + s.body.String() }

// line appends one line of shell code.
func (s *script) line(code string) { s.body.WriteString(code + "\n") }

// do appends a step: what is the text of the error when it fails.
func (s *script) do(what string, words ...string) {
	s.line("kk_do " + shell.Quote(what) + " " + shell.Join(words...))
}

// run runs the script and returns what it printed.
func (s *script) run(ctx context.Context, c *module.Call) ([]byte, error) {
	cmd := connector.Script{Functions: library, Code: s.code()}.Command()
	if code := library + s.code(); s.secret || len(code) > longestLine {
		cmd = connector.Script{Code: `eval "$(cat)"`}.Command()
		cmd.Stdin = strings.NewReader(code)
	}
	cmd.Probe = s.probe
	out, err := s.collect(ctx, c, cmd)
	s.said = strings.TrimSpace(out.Stderr)
	return out.Stdout, err
}

// stream runs the script with stdin as its standard input.
func (s *script) stream(ctx context.Context, c *module.Call, stdin io.Reader) ([]byte, error) {
	out, err := s.collect(ctx, c, connector.Command{Line: shell.Script(library + s.code()), Stdin: stdin, Probe: s.probe})
	return out.Stdout, err
}

// collect runs a command whose answer may be a file. One that failed is an error.
func (s *script) collect(ctx context.Context, c *module.Call, cmd connector.Command) (connector.Output, error) {
	out, err := connector.Collect(ctx, c.Conn, cmd, connector.MaxLargeAnswer)
	if err == nil && out.Code != 0 {
		err = scriptError(out.Exit, out.Stderr)
	}
	if err != nil {
		return connector.Output{}, err
	}
	return out, nil
}

// stepError is a step of a script that failed.
type stepError struct {
	what   string // "create folder /x"
	reason string // what the tool of the host said
}

func (e *stepError) Error() string { return e.what + ": " + e.reason }

func scriptError(exit connector.Exit, stderr string) error {
	said, what, found := strings.Cut(stderr, "\n\x01")
	said = strings.TrimSpace(said)
	if found && exit.Code == failedExit {
		if said == "" {
			said = "the command failed and said nothing"
		}
		return &stepError{what, briefly(said)}
	}
	if exit.Signal != "" {
		return fmt.Errorf("the script on the host was ended by signal %s", exit.Signal)
	}
	return fmt.Errorf("the script on the host exited with status %d: %s", exit.Code, briefly(said))
}

// maxSaid is how many lines of what a tool of the host said are shown.
const maxSaid = 20

// briefly is what a tool of the host said: all of it, or the beginning and the end.
func briefly(said string) string {
	lines := slices.DeleteFunc(strings.Split(said, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	if n := len(lines) - maxSaid; n > 0 {
		left := fmt.Sprintf("(%d more lines)", n)
		lines = slices.Concat(lines[:maxSaid/2], []string{left}, lines[len(lines)-maxSaid/2:])
	}
	return strings.Join(lines, "; ")
}

var hostVar = regexp.MustCompile(`\$(\w+|\{\w+\})|[^$]+|\$`)

// hostWord is a path as a shell word. As module arguments that are paths do,
// it expands a leading ~ or ~user and $NAME on the host; expands says whether
// there was any to expand.
func hostWord(p string) (word string, expands bool) {
	if strings.HasPrefix(p, "-") {
		p = "./" + p
	}
	prefix := ""
	if m := homePrefix.FindString(p); m != "" {
		prefix, p, expands = m, p[len(m):], true
		if rest, ok := strings.CutPrefix(p, "/"); ok {
			prefix, p = prefix+"/", rest // quoted, the slash would keep ~ from being expanded
		}
	}
	if !strings.Contains(p, "$") {
		if expands && p == "" {
			return prefix, true
		}
		return prefix + shell.Quote(p), expands
	}
	var b strings.Builder
	b.WriteString(prefix)
	for _, part := range hostVar.FindAllString(p, -1) {
		name := strings.Trim(part, "${}")
		if part[0] != '$' || len(part) == 1 || name[0] >= '0' && name[0] <= '9' {
			b.WriteString(shell.Quote(part))
			continue
		}
		expands = true
		fmt.Fprintf(&b, `"${%s-\$%s}"`, name, name) // as Python does, an unset name stays as it is
	}
	return b.String(), expands
}

var homePrefix = regexp.MustCompile(`^~[a-zA-Z0-9_.-]*`)

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

// library contains the shell functions that every script begins with.
//
//go:embed host.sh
var library string

// longestLine is the maximum size of a script on a command line: Linux allows 128 KiB per argument. Longer scripts
// are sent over standard input.
const longestLine = 60 << 10

// failedExit is the exit status of a script when one of its steps failed (kk_do).
const failedExit = 97

// script is shell code that runs on the host in one round trip. It contains quoted paths but no file contents.
// Scripts with secret set are an exception: they are sent over standard input and do not appear in the process
// list.
type script struct {
	body   strings.Builder
	probe  bool // changes nothing
	secret bool
	said   string // standard error of a successful script
}

// code returns the code that follows library.
func (s *script) code() string { return "kk_begin\n" + s.body.String() }

// line appends one line of shell code.
func (s *script) line(code string) { s.body.WriteString(code + "\n") }

// do appends a step. what is the error text if it fails.
func (s *script) do(what string, words ...string) {
	s.line("kk_do " + shell.Quote(what) + " " + shell.Join(words...))
}

// run runs the script and returns its output.
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

// collect runs a command whose output may be a file. A failed command is an error.
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

// stepError is the error of a failed script step.
type stepError struct {
	what   string // "create folder /x"
	reason string // error output of the tool on the host
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

// maxSaid is the maximum number of lines of a host tool's output that are shown.
const maxSaid = 20

// briefly returns the output of a host tool: all of it, or its beginning and its end.
func briefly(said string) string {
	lines := slices.DeleteFunc(strings.Split(said, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	if n := len(lines) - maxSaid; n > 0 {
		left := fmt.Sprintf("(%d more lines)", n)
		lines = slices.Concat(lines[:maxSaid/2], []string{left}, lines[len(lines)-maxSaid/2:])
	}
	return strings.Join(lines, "; ")
}

var hostVar = regexp.MustCompile(`\$(\w+|\{\w+\})|[^$]+|\$`)

// hostWord quotes a path for a shell. Like path arguments of modules, it expands a leading ~ or ~user and $NAME on
// the host. expands reports whether there was anything to expand.
func hostWord(p string) (word string, expands bool) {
	if strings.HasPrefix(p, "-") {
		p = "./" + p
	}
	prefix := ""
	if m := homePrefix.FindString(p); m != "" {
		prefix, p, expands = m, p[len(m):], true
		if rest, ok := strings.CutPrefix(p, "/"); ok {
			prefix, p = prefix+"/", rest // if the slash were quoted, ~ would not be expanded
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
		fmt.Fprintf(&b, `"${%s-\$%s}"`, name, name) // as in Python, an unset name is not replaced
	}
	return b.String(), expands
}

var homePrefix = regexp.MustCompile(`^~[a-zA-Z0-9_.-]*`)

package exec

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
)

// guard holds the folder of a command and the conditions for running it.
type guard struct {
	Chdir   string `kk:"chdir,path" doc:"folder on the host to change to before running the command"`
	Creates string `kk:"creates,path" doc:"file or glob on the host; if it exists, nothing is run"`
	Removes string `kk:"removes,path" doc:"file or glob on the host; if it does not exist, nothing is run"`
}

func (g guard) decides() bool { return g.Creates != "" || g.Removes != "" }

// prefix is the shell text before a command. If the guard skips it, the text prints
// mark and the reason, and exits successfully.
func (g guard) prefix(mark string) string {
	var b strings.Builder
	if g.Chdir != "" {
		b.WriteString("cd -P " + Expandable(g.Chdir, false) + " || exit 2\n")
	}
	if g.Creates != "" {
		b.WriteString(matches(g.Creates) + `[ -z "$kk_m" ] || { echo ` + mark + " creates; exit 0; }\n")
	}
	if g.Removes != "" {
		b.WriteString(matches(g.Removes) + `[ -n "$kk_m" ] || { echo ` + mark + " removes; exit 0; }\n")
	}
	return b.String()
}

// matches is shell text that sets kk_m when a file matches pattern.
func matches(pattern string) string {
	return "kk_m=; for kk_f in " + Expandable(pattern, true) +
		`; do if [ -e "$kk_f" ] || [ -h "$kk_f" ]; then kk_m=1; fi; done; `
}

// newMark returns a token that no command prints by chance.
func newMark() string { return "kk-not-run-" + rand.Text() }

// decided reads the output of prefix: "creates", "removes" or "".
func decided(mark, stdout string) string {
	for _, why := range []string{"creates", "removes"} {
		if strings.TrimSpace(stdout) == mark+" "+why {
			return why
		}
	}
	return ""
}

// probe evaluates the guard on the host, without changes.
func (g guard) probe(ctx context.Context, c *module.Call) (why string, err error) {
	mark := newMark()
	out, _, err := Ask(ctx, c, g.prefix(mark))
	return decided(mark, out), err
}

// Ask runs a read-only line.
func Ask(ctx context.Context, c *module.Call, line string) (stdout string, code int, err error) {
	out, err := connector.Collect(ctx, c.Conn, connector.Command{Line: line, Probe: true}, connector.MaxAnswer)
	return string(out.Stdout), out.Code, err
}

// skipTexts are the msg and the stdout of a command that the guard skipped.
func (g guard) skipTexts(why string, check bool) (msg, stdout string) {
	verb := "Did"
	if check {
		verb = "Would"
	}
	path, state := g.Creates, "exists"
	if why == "removes" {
		path, state = g.Removes, "does not exist"
	}
	return fmt.Sprintf("%s not run command since '%s' %s", verb, path, state),
		fmt.Sprintf("skipped, since %s %s", path, state)
}

// fault is why a command could not start; its msg is "" if it could.
type fault struct {
	rc     int
	msg    string
	folder bool // the folder is at fault, not the command
}

// diagnose finds out why program, run in the guard's folder, exited with an error
// code of the shell. Without a program it checks the folder only.
func (g guard) diagnose(ctx context.Context, c *module.Call, program string) (fault, error) {
	line := ""
	if g.Chdir != "" {
		line = "cd -P " + Expandable(g.Chdir, false) + " 2>/dev/null || { echo chdir; exit 0; }\n"
	}
	if program != "" {
		line += "set -- " + Expandable(program, false) + "\n" + diagnoseProgram
	}
	out, _, err := Ask(ctx, c, line)
	switch strings.TrimSpace(out) {
	case "chdir":
		return fault{2, fmt.Sprintf("Unable to change directory before execution: [Errno 2] No such file or directory: "+
			"b'%s'", g.Chdir), true}, err
	case "missing":
		return fault{2, fmt.Sprintf("[Errno 2] No such file or directory: b'%s'", program), false}, err
	case "denied":
		return fault{13, fmt.Sprintf("[Errno 13] Permission denied: b'%s'", program), false}, err
	}
	return fault{}, err
}

const diagnoseProgram = `
case $1 in
*/*) kk_p=$1 ;;
*) kk_p=$(command -v "$1" 2>/dev/null) ;;
esac
case $kk_p in
*/*) if [ ! -e "$kk_p" ]; then echo missing; elif [ -d "$kk_p" ] || [ ! -x "$kk_p" ]; then echo denied; fi ;;
*) echo missing ;;
esac`

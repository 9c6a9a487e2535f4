// Package cli implements the commands of kk. It is the only package that imports all others.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kubekey/pkg/connector"
	"kubekey/pkg/engine"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/redact"
	"kubekey/pkg/settings"
	"kubekey/pkg/source"
	"kubekey/pkg/ui"
)

// version is set at build time.
var version = "unknown"

// Streams are the standard streams of the program.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// app is one invocation of the program.
type app struct {
	In       io.Reader
	Out, Err *ui.Screen
	args     []string // command line arguments without the program's name
	tree     source.Tree
	secret   *redact.Set
	hosts    Hosts  // nil for real hosts
	runID    string // ID of the run that was started

	settings        *settings.Loaded
	settingProblems source.Diagnostics
}

// exitError carries an exit code. An empty text means that the error was already shown.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage returns a usage error: exit code 5.
func usage(format string, args ...any) error {
	return &exitError{engine.ExitUsage, fmt.Errorf(format, args...)}
}

// exit returns an error with an exit code whose reason was already shown.
func exit(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{code: code}
}

// Main runs one invocation of the program and returns its exit code.
func Main(ctx context.Context, args []string, s Streams, builtin fs.FS) int {
	return Program{Builtin: builtin}.Main(ctx, args, s)
}

// Program is kk with its builtin project.
type Program struct {
	Builtin fs.FS
	// Hosts replaces the hosts of runs. Nil means real hosts.
	Hosts Hosts
}

// Hosts is a substitute for real hosts.
type Hosts interface {
	Connect(ctx context.Context, t engine.Target) (connector.Connector, error)
	// Perform runs a module or answers in its place.
	Perform(ctx context.Context, t *project.Task, r module.Runner, c *module.Call) (module.Result, error)
}

// Main runs one invocation of the program and returns its exit code.
func (p Program) Main(ctx context.Context, args []string, s Streams) int {
	a := &app{
		In: s.In, Out: ui.NewScreen(s.Out), Err: ui.NewScreen(s.Err), args: args,
		tree:   source.Tree{Embedded: p.Builtin}.WithContext(ctx),
		secret: &redact.Set{}, hosts: p.Hosts, settings: &settings.Loaded{},
	}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	code := a.fail(root.ExecuteContext(ctx))
	return a.end(code)
}

// end flushes the output and returns the exit code. Incomplete output is an error, whichever part of kk wrote it. A
// closed pipe (kk doc | head) is not reported as an error: the exit code is that of a program killed by SIGPIPE.
func (a *app) end(code int) int {
	lost := a.Out.Flush()
	switch {
	case lost == nil:
	case errors.Is(lost, syscall.EPIPE):
		code = cmp.Or(code, exitPipe)
	default:
		a.Err.Message(fmt.Sprintf("ERROR! what kk printed is not whole: %s%s", lost, a.elsewhere()))
		code = cmp.Or(code, engine.ExitError)
	}
	if a.Err.Flush() != nil { // warnings are lost
		code = cmp.Or(code, engine.ExitError)
	}
	return code
}

// exitPipe is the exit code that a shell reports for a program killed by SIGPIPE.
const exitPipe = 128 + int(syscall.SIGPIPE)

// elsewhere returns a hint how to show a run whose output was lost.
func (a *app) elsewhere() string {
	if a.runID == "" {
		return ""
	}
	return " (the run itself went on; kk runs show " + a.runID + " shows it again)"
}

// fail shows an error and returns its exit code; nil means no error. Output that could not be printed is reported
// by end.
func (a *app) fail(err error) int {
	if err == nil {
		return engine.ExitOK
	}
	if lost := a.Out.Flush(); lost != nil && errors.Is(err, lost) {
		return engine.ExitOK
	}
	code := engine.ExitUsage // errors that cobra itself detects
	var e *exitError
	if errors.As(err, &e) {
		code = e.code
		if e.err == nil {
			return code
		}
	}
	var ds source.Diagnostics
	var d *source.Diagnostic
	if !errors.As(err, &ds) && errors.As(err, &d) && d.Pos.IsValid() {
		ds = source.Diagnostics{d}
	}
	if ds != nil {
		a.diagnostics(ds)
		return code
	}
	a.Err.Message("ERROR! " + a.secret.Text(err.Error()))
	return code
}

func (a *app) diagnostics(ds source.Diagnostics) {
	ui.Diagnostics(a.Err, ds, ui.UseColor(isTerminal(a.Err.Writer()), os.Getenv), a.secret)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "kk",
		Short:         "Run Ansible-style playbooks over SSH, and build Kubernetes clusters with them",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(a.commands()...)
	strict(root, a.obey)
	return root
}

// warn shows a warning about the invocation itself.
func (a *app) warn(format string, args ...any) {
	a.Err.Message(a.secret.Text("[WARNING]: " + fmt.Sprintf(format, args...)))
}

// row prints one line, even if names contain line breaks.
func (a *app) row(format string, args ...any) {
	fmt.Fprintln(a.Out, ui.Inline(fmt.Sprintf(format, args...)))
}

// data returns the writer for machine-readable output. It is not modified unless it is written to a terminal.
func (a *app) data() io.Writer {
	if isTerminal(a.Out.Writer()) {
		return a.Out
	}
	return a.Out.Raw()
}

// isTerminal reports whether a stream (input or output) is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func width(s *ui.Screen) func() int {
	f, ok := s.Writer().(*os.File)
	if !ok {
		return nil
	}
	return func() int {
		cols, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return cols
	}
}

// workDir returns the folder for kk's data of the user: --workdir, else ~/.kk. It is created if it does not exist.
func workDir(flag string) (string, error) {
	dir := flag
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", usage("the home folder is unknown: set --workdir")
		}
		dir = filepath.Join(home, ".kk")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create the work folder: %w", err)
	}
	return dir, nil
}

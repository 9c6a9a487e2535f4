package connector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"kubekey/pkg/shell"
)

// persistentShell is a shell that reads commands on its standard input. Each is sent as a
// whole with its environment and input, runs in a fork, and is framed on both outputs by
// lines with a random mark that it cannot know. None of it is on a command line.
//
// Between commands the shell is in the root folder, so that it keeps no file system busy.
// It exits at the end of its input: when the connection is closed or lost.
type persistentShell struct {
	conn   Connector
	login  int64 // value of persistent.logins at the start
	root   bool  // runs as root; set by greet
	input  *io.PipeWriter
	out    frame
	errs   frame
	cancel context.CancelFunc
	broken atomic.Bool // must not be used again
	killed bool        // kk killed it
	once   sync.Once

	libraries map[string]string // text → variable that contains it
	functions map[string]bool   // texts that it has read
	number    int               // of commands so far

	ended chan struct{} // closed when exit and err are set
	exit  Exit
	err   error
}

// maxLibraries is how many texts a shell keeps.
const maxLibraries = 40

func startShell(ctx context.Context, c Connector, login int64, yield func(*persistentShell)) *persistentShell {
	r, w := io.Pipe()
	sh := &persistentShell{
		conn: c, login: login, input: w, libraries: map[string]string{},
		functions: map[string]bool{"": true}, ended: make(chan struct{}),
	}
	ctx, sh.cancel = context.WithCancel(ctx)
	go func() {
		defer sh.cancel()
		sh.exit, sh.err = c.Run(ctx, Command{
			Line: "/bin/sh -s", Stdin: r, Stdout: &sh.out, Stderr: &sh.errs, Yield: func() { yield(sh) },
		})
		sh.markBroken()
		r.Close()
		close(sh.ended)
	}()
	return sh
}

func (sh *persistentShell) markBroken() { sh.broken.Store(true) }
func (sh *persistentShell) unusable() bool {
	return sh.broken.Load() || sh.out.strayed() || sh.errs.strayed()
}

// end lets the shell end.
func (sh *persistentShell) end() { sh.once.Do(func() { sh.input.Close() }) }

// greeting prepares the shell; its status is 0 for root. A printf that is not a builtin
// would show inputs in the process list.
const greeting = `kk_at=$PWD; cd /; kk_r() { return "$1"; }
if [ "$(command -v printf)" != printf ]; then kk_r 9; elif [ -O / ]; then kk_r 0; else kk_r 1; fi
`

// greet waits until the shell runs. Output of start-up files precedes the first frame and
// is discarded.
func (sh *persistentShell) greet() {
	status, ok := sh.wait(sh.send(greeting, nil, nil))
	if !ok {
		return
	}
	sh.root = status == 0
	if status > 1 {
		sh.markBroken()
	}
	sh.out.reset()
	sh.errs.reset()
}

// send makes the shell run text. Each of its two outputs ends with the status.
func (sh *persistentShell) send(text string, stdout, stderr io.Writer) (out, errs chan int) {
	mark := "kk-" + NewMark() + NewMark()
	out, errs = sh.out.open(mark, stdout), sh.errs.open(mark, stderr)
	_, _ = fmt.Fprintf(sh.input,
		"echo %[1]s; echo %[1]s >&2\n%[2]secho \"\n%[1]s $?\"; echo \"\n%[1]s 0\" >&2\n", mark, text)
	return out, errs
}

// wait waits for the end of what was sent; ok is false if the shell exited first.
func (sh *persistentShell) wait(out, errs chan int) (status int, ok bool) {
	for _, end := range []chan int{errs, out} {
		select {
		case status = <-end:
			continue
		case <-sh.ended:
		}
		select {
		case status = <-end:
		default:
			return 0, false
		}
	}
	return status, true
}

// run runs a script. started is false if the shell exited before reading it.
func (sh *persistentShell) run(ctx context.Context, c Command, input []byte) (exit Exit, started bool, err error) {
	if err := ctx.Err(); err != nil {
		return Exit{}, false, err
	}
	mark := NewMark()
	text, err := sh.text(c, mark, input)
	if err != nil {
		return Exit{}, false, err
	}
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		sh.kill(ctx, mark)
	})
	exit, started, err = sh.outcome(sh.send(text, c.Stdout, c.Stderr))
	if !stop() {
		<-killed
		return Exit{}, true, ctx.Err()
	}
	return exit, started, err
}

// outcome waits for the end of a script, or of the shell.
func (sh *persistentShell) outcome(out, errs chan int) (exit Exit, started bool, err error) {
	if status, ok := sh.wait(out, errs); ok {
		return Exit{Code: status}, true, nil
	}
	switch {
	case sh.err != nil:
		return Exit{}, true, sh.err
	case !sh.out.begun():
		return Exit{}, false, nil
	case sh.exit.Code == 0:
		return Exit{}, true, errors.New("the shell on the host exited without the script's exit status")
	}
	return sh.exit, true, nil // the script killed the shell
}

// kill kills the script, and the shell with it.
func (sh *persistentShell) kill(ctx context.Context, mark string) {
	sh.killed = true
	sh.markBroken()
	sh.cancel()
	sh.end()
	<-sh.ended
	if lost := (*UnreachableError)(nil); errors.As(sh.err, &lost) {
		return
	}
	// Processes that the script detached are no longer children of the shell.
	bounded, done := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer done()
	_, _ = sh.conn.Run(bounded, Command{Line: KillMarked(mark), Urgent: true})
}

// text is the shell code for a script.
func (sh *persistentShell) text(c Command, mark string, input []byte) (string, error) {
	for name, value := range c.Env { // first, because the code below records libraries as sent
		if err := checkEnv(name, value); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	if text := c.Script.Functions; !sh.functions[text] {
		sh.functions[text] = true
		b.WriteString(text + "\n")
	}
	library := sh.library(&b, c.Script.Library)
	piped := len(input) > 0 && (!c.Script.InputVar || bytes.IndexByte(input, 0) >= 0)
	if piped {
		b.WriteString("printf " + printed(input) + " 2>/dev/null | ")
	}
	sh.number++
	fmt.Fprintf(&b, "(cd \"$kk_at\" 2>/dev/null; unset OLDPWD; %s kk_id=$$%d\n", Marked("", mark), sh.number)
	if len(input) > 0 && !piped {
		b.WriteString("kk_input=" + shell.Quote(string(input)) + "\n")
	}
	for name, value := range c.Env {
		b.WriteString("export " + name + "=" + shell.Quote(value) + "\n")
	}
	fmt.Fprintf(&b, "set -- %s\n%s\neval %s\n)", shell.Join(c.Script.Args...), library, shell.Quote(c.Script.Code))
	if !piped {
		b.WriteString(" </dev/null")
	}
	b.WriteString("\n")
	return b.String(), nil
}

// library makes the shell keep a text that is used again, and returns what runs it. That
// saves time, because bash reads its commands byte by byte.
func (sh *persistentShell) library(b *strings.Builder, text string) string {
	name, kept := sh.libraries[text]
	switch {
	case text == "":
		return ""
	case !kept && len(sh.libraries) >= maxLibraries:
		return "eval " + shell.Quote(text)
	case !kept:
		name = "kk_l" + strconv.Itoa(len(sh.libraries))
		sh.libraries[text] = name
		b.WriteString(name + "=" + shell.Quote(text) + "\n")
	}
	return `eval "$` + name + `"`
}

// printed formats input as arguments of printf.
func printed(input []byte) string {
	if bytes.IndexByte(input, 0) < 0 {
		return "%s " + shell.Quote(string(input))
	}
	escaped := strings.NewReplacer(`\`, `\\`, "\x00", `\0000`).Replace(string(input))
	return "%b " + shell.Quote(escaped)
}

package connector

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"kubekey/pkg/redact"
	"kubekey/pkg/shell"
)

// BecomeOptions select the user whose identity commands run under, and how.
type BecomeOptions struct {
	Method   string        // sudo or su; "" is sudo
	User     string        // "" is root
	Flags    string        // more options for sudo or su, as shell text
	Exe      string        // path of sudo or su; "" is the method's name
	Password redact.Secret // may be empty if the host asks for none
}

// Become returns c for another user: every command is run through sudo or su. A failure to
// become that user is a *BecomeError, and then no part of the command has run. The password
// is sent over standard input and consumed there whether or not the host asks for it. A
// rejected password is not tried again, because that can lock the account. Closing the
// result closes c.
func Become(c Connector, o BecomeOptions) Connector {
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&o.Method, "sudo")
	def(&o.User, "root")
	def(&o.Exe, o.Method)
	if s, ok := c.(*persistent); ok {
		// Each user has a persistent shell of their own.
		return &persistent{Connector: &become{Connector: s.Connector, o: o}, logins: s.logins, deferred: s.deferred}
	}
	return &become{Connector: c, o: o}
}

type become struct {
	Connector
	o BecomeOptions
	// proven is set once a command has run: the password is right, or is not asked for.
	// From then on the input follows the password at once. Before, it is held back, so
	// that sudo cannot read it as further attempts at the password.
	proven atomic.Bool
	// refused is set once the password was rejected: it is not tried again.
	refused atomic.Pointer[BecomeError]
}

// killTime bounds how long a cancelled command is pursued; shortKillTime applies to one
// that was never seen to start.
const (
	killTime      = 8 * time.Second
	shortKillTime = 2 * time.Second
)

// Run implements Connector. The connection's user cannot signal another user's processes,
// so on cancellation they are killed through sudo or su, as they were started.
func (b *become) Run(ctx context.Context, c Command) (Exit, error) {
	if err := b.check(); err != nil {
		return Exit{}, err
	}
	if err := ctx.Err(); err != nil {
		return Exit{}, err
	}
	if refused := b.refused.Load(); refused != nil {
		return Exit{}, refused
	}
	mark := NewMark()
	line, stdin, err := WithEnv(c)
	if err != nil {
		return Exit{}, err
	}
	watch := newWatch(mark)
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		b.kill(ctx, watch, mark, cancel)
	})
	c.Line, c.Stdin, c.Env = line, stdin, nil
	exit, err := b.run(inner, cancel, c, watch, mark)
	if !stop() {
		<-killed
		return Exit{}, ctx.Err()
	}
	return exit, err
}

func (b *become) check() error {
	switch {
	case b.o.Method != "sudo" && b.o.Method != "su":
		return b.fail(fmt.Sprintf("method %q is not supported: use sudo or su", b.o.Method))
	case strings.HasPrefix(b.o.User, "-"):
		return b.fail("a user name cannot begin with a dash")
	case strings.ContainsAny(b.o.Password.Reveal(), "\n\x00"):
		return b.fail("the password contains a line feed or a NUL byte: set one without")
	}
	return nil
}

func (b *become) fail(reason string) *BecomeError {
	return &BecomeError{Method: b.o.Method, User: b.o.User, Reason: reason}
}

// kill kills what was started under mark, then lets the transport end the rest.
func (b *become) kill(ctx context.Context, watch *watch, mark string, cancel func()) {
	limit := killTime
	if !watch.isOpen() {
		// There may be no connection at all: do not wait for one.
		cancel()
		limit = shortKillTime
	}
	bounded, done := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer done()
	own := NewMark()
	_, _ = b.run(bounded, done, Command{Line: KillMarked(mark), Urgent: true}, newWatch(own), own)
	cancel()
}

// run runs a command whose environment is already part of its line.
func (b *become) run(ctx context.Context, cancel func(), c Command, w *watch, mark string) (Exit, error) {
	feeds := b.o.Method == "su" || !b.o.Password.IsZero()
	c.Line = b.line(Marked(c.Line, mark), mark, feeds)
	if feeds {
		c.Stdin = b.input(c.Stdin, c.TTY, w)
	}
	if c.TTY {
		w.to, c.Stdout = c.Stdout, w
		w.onWrong = cancel // a terminal has no end of input to send
	} else {
		w.to, c.Stderr = c.Stderr, w
	}
	exit, err := b.Connector.Run(ctx, c)
	w.end()
	switch {
	case w.isOpen():
		b.proven.Store(true)
		return exit, err
	case w.isWrong():
		return Exit{}, b.refuse(notAccepted)
	case err != nil:
		return exit, err
	}
	return Exit{}, b.refuse(b.reason(w.said(), exit))
}

const notAccepted = "the password was not accepted"

// refuse is fail for a rejected password, which it remembers.
func (b *become) refuse(reason string) *BecomeError {
	failed := b.fail(reason)
	if strings.HasPrefix(reason, notAccepted) {
		b.refused.Store(failed)
	}
	return failed
}

// line is the command line that runs inner as the other user. The shell that runs inner
// prints openSign first, which separates sudo's messages from the command's output. Then
// it skips the input up to the command's own.
func (b *become) line(inner, mark string, feeds bool) string {
	head := "echo " + openSign(mark) + " >&2\n" // a line of its own: the next may not parse
	if feeds {
		head += `while IFS= read -r kk_in && [ "$kk_in" != ` + inputSign(mark) + ` ]; do :; done; unset kk_in;`
	}
	head += systemPath
	user, exe := shell.Quote(b.o.User), shell.Quote(b.o.Exe)
	// Where sudo is missing, no switch is needed if the user is already the right one.
	line := "kk_do=" + shell.Quote(head+inner) + "; command -v " + exe + " >/dev/null 2>&1 || { " +
		`[ "$(id -un)" = ` + user + ` ] && exec /bin/sh -c "$kk_do"; echo ` + missingSign + " >&2; exit 127; }; "
	if b.o.Method == "su" {
		return line + "exec " + exe + " " + b.o.Flags + " -s /bin/sh -c \"$kk_do\" " + user
	}
	ask := "-n"
	if feeds {
		ask = "-S -p " + askSign(mark)
	}
	// sudo's messages must be in English to be recognized; the command keeps its own locale.
	restore := shell.Quote(`if [ -n "$2" ]; then LC_ALL=$2; else unset LC_ALL; fi; kk_do=$1; set --; eval "$kk_do"`)
	return line + "LC_ALL=C exec " + exe + " -H " + ask + " " + b.o.Flags + " -u " + user +
		" -- /bin/sh -c " + restore + ` sh "$kk_do" "${LC_ALL-}"`
}

// systemPath appends the system's directories to PATH where sudo or su omits them. RHEL's secure_path has no
// /usr/local/bin, so that a program installed there is not found by programs that search PATH themselves. What
// PATH has already comes first, as before.
const systemPath = `for kk_dir in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do ` +
	`case ":$PATH:" in *":$kk_dir:"*) ;; *) PATH=$PATH:$kk_dir ;; esac; done; export PATH; unset kk_dir;`

const missingSign = "kk-no-such-program"

func openSign(mark string) string  { return "kk-open-" + mark }
func inputSign(mark string) string { return "kk-input-" + mark }
func askSign(mark string) string   { return "kk-ask-" + mark }

// input is the password and then, after a marker line, the command's own input. A command
// without input gets EOF after the password, which also stops sudo from asking again.
// EOF cannot be sent to a terminal, so there the marker always follows.
func (b *become) input(own io.Reader, tty bool, w *watch) io.Reader {
	password := strings.NewReader(b.o.Password.Reveal() + "\n")
	if own == nil && !tty {
		return password
	}
	if own == nil {
		own = strings.NewReader("")
	}
	if tty {
		// sudo discards input that arrives before or with its prompt.
		sign := strings.NewReader(inputSign(w.mark) + "\n")
		return io.MultiReader(&gated{w, w.spoke, password}, &gated{w, w.open, io.MultiReader(sign, own)})
	}
	rest := io.MultiReader(strings.NewReader(inputSign(w.mark)+"\n"), own)
	if b.o.Method == "su" || b.proven.Load() {
		return io.MultiReader(password, rest) // su asks once
	}
	return io.MultiReader(password, &gated{w, w.open, rest})
}

// reason explains, from what sudo or su printed, why the command was not run.
func (b *become) reason(said string, exit Exit) string {
	has := func(text string) bool { return strings.Contains(said, text) }
	needed := "a password is needed: give one with -K or ansible_become_password, or allow the user NOPASSWD in sudoers"
	switch {
	case has(missingSign):
		return b.o.Exe + " is not installed on the host: install it, or log in as " + b.o.User
	case has("must have a tty"):
		return "sudoers sets requiretty: add `Defaults:USER !requiretty` for this user"
	case has("not in the sudoers file"), has("not allowed to"), has("may not run sudo"):
		return "the user has no permission to: " + lastLine(said)
	case has("incorrect password"), has("Sorry, try again"):
		return notAccepted
	case has("a password is required"), has("no password was provided"), has("authentication is required"):
		return needed
	case b.o.Method == "su" && has("does not exist"):
		return "the host has no such user: " + lastLine(said)
	case b.o.Method == "su" && b.o.Password.IsZero():
		return needed + ": " + lastLine(said)
	case b.o.Method == "su":
		return notAccepted + ", or the account is not allowed to log in: " + lastLine(said)
	}
	return fmt.Sprintf("%s (exit code %d)", lastLine(said), exit.Code)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return "it exited without a message"
}

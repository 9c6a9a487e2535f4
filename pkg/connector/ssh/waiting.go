package ssh

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"

	"kubekey/pkg/connector"
)

// OpenSSH gives a channel no window before its command has started, so a command and its
// input need two round trips. Once a connection has seen a command with input, it therefore
// keeps one session ahead in which a shell already waits. The shell reads the command from
// its input, and the rest is the command's own input. Its command line is the same for all
// commands and contains no data. It waits in the root folder, so that it keeps no file
// system busy, and exits at the end of its input: when the connection is closed or lost.
//
// The limitation: the start-up files of the login shell are read when it begins to wait, not
// when the command runs.

// waitLine reads a number of lines and runs them as `/bin/sh -c` would. A shell reads a pipe
// byte by byte, so the rest is left to the command. It contains no backslash, line feed or
// exclamation mark, which wrap would have to encode: the last character of the default IFS
// is a line feed.
const waitLine = `kk_d=$PWD; cd /; kk_l=${IFS#??}; kk_s=; IFS= read -r kk_n || exit 0; ` +
	`while [ "$kk_n" -gt 0 ]; do IFS= read -r kk_i || exit 0; kk_s=$kk_s$kk_i$kk_l; kk_n=$((kk_n-1)); done; ` +
	`cd "$kk_d" 2>/dev/null; unset OLDPWD; exec /bin/sh -c "$kk_s"`

// handOver is what a waiting shell reads before the input of the command.
func handOver(line string) io.Reader {
	return strings.NewReader(fmt.Sprintf("%d\n%s\n", strings.Count(line, "\n")+1, line))
}

// need is what a command requires of its session.
type need int

const (
	needNothing need = iota
	needInput        // an open window, if there is one
	needFresh        // one in which nothing runs: for a terminal
	needNow          // one that is available without waiting for another command to exit
)

func needOf(c connector.Command, stdin io.Reader) need {
	switch {
	case c.Urgent:
		return needNow
	case c.TTY:
		return needFresh
	case stdin != nil && c.Yield == nil: // a persistent shell can wait
		return needInput
	}
	return needNothing
}

// maxDied is how many waiting shells may die before none is started any more.
const maxDied = 3

// prepareLocked starts a waiting shell in a spare session. l.mu is held.
func (l *link) prepareLocked() {
	s := l.spares[0]
	l.spares = l.spares[1:]
	l.starting++
	go func() {
		err := s.exec(wrap(waitLine))
		s.waits = err == nil
		if err == nil {
			go s.listen()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.starting--
		if err != nil {
			l.died++
			go s.release()
		} else {
			l.ready = append(l.ready, s)
			go s.watch()
		}
		l.signalLocked()
	}()
}

// watch removes a waiting shell that exits before it is used.
func (s *session) watch() {
	<-s.closed
	l := s.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range l.ready {
		if r == s {
			l.ready = append(l.ready[:i:i], l.ready[i+1:]...)
			l.died++
			go s.release()
			return
		}
	}
}

// exec makes the server run a line in the session and waits until it has started.
func (s *session) exec(line string) error {
	started, err := s.channel.SendRequest("exec", true, ssh.Marshal(struct{ Line string }{line}))
	if err == nil && !started {
		return errNotStarted
	}
	return err
}

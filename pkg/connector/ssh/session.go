package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"kubekey/pkg/connector"
)

// grace is how long processes that an exited command left behind can keep its outputs open
// without printing, before the outputs are closed.
const grace = 2 * time.Second

// cutError is a channel that ended without an exit status.
type cutError struct{ cause error }

func (e *cutError) Error() string { return e.cause.Error() }
func (e *cutError) Unwrap() error { return e.cause }

// session is one channel, for one command.
type session struct {
	link     *link
	channel  ssh.Channel
	requests <-chan *ssh.Request
	waits    bool // a waiting shell runs in it
	once     sync.Once

	exit   connector.Exit
	exited chan struct{} // closed when the exit status has arrived
	closed chan struct{} // closed by listen, when the channel has ended
	ended  chan struct{} // closed when all output has been passed on, too
}

func newSession(l *link, channel ssh.Channel, requests <-chan *ssh.Request) *session {
	return &session{link: l, channel: channel, requests: requests,
		exited: make(chan struct{}), closed: make(chan struct{}), ended: make(chan struct{})}
}

var errNotStarted = errors.New("the server refused to start a command")

// release closes the channel and makes room for another.
func (s *session) release() {
	s.once.Do(func() {
		s.channel.Close()
		s.link.release(s)
	})
}

// awaitClose waits a moment for the channel of a killed command to close by itself.
func (s *session) awaitClose() {
	select {
	case <-s.ended:
	case <-time.After(grace / 2):
	}
}

// signal asks the server to signal the command, which not every server supports.
func (s *session) signal(name string) {
	_, _ = s.channel.SendRequest("signal", false, ssh.Marshal(struct{ Name string }{name}))
}

// outcome is what several goroutines learn about a running command.
type outcome struct {
	refused chan error    // the server did not start the command
	active  chan struct{} // output arrived
}

// run runs a line, prepared for the session, and waits for the command to exit. If ctx ends
// first, the command and the channel remain.
func (s *session) run(ctx context.Context, line string, c connector.Command, find *finder) (connector.Exit, error) {
	o := &outcome{refused: make(chan error, 1), active: make(chan struct{}, 1)}
	if err := s.start(line, c, o); err != nil {
		return connector.Exit{}, &cutError{err}
	}
	var readers sync.WaitGroup
	stderr := c.Stderr
	if find != nil {
		find.to = c.Stderr
		stderr = find
	}
	readers.Go(func() { s.copy(c.Stdout, s.channel, o) })
	readers.Go(func() { s.copy(stderr, s.channel.Stderr(), o) })
	go func() {
		<-s.closed
		readers.Wait()
		if find != nil {
			_ = find.flush()
		}
		close(s.ended)
	}()
	return s.wait(ctx, o)
}

func (s *session) start(line string, c connector.Command, o *outcome) error {
	if s.waits {
		go func() {
			s.feed(handOver(line))
			s.end(c.Stdin)
		}()
		return nil
	}
	if c.TTY {
		if err := s.requestTTY(); err != nil {
			return err
		}
	}
	go s.listen()
	// Output arrives with the reply, not after it. Input has to wait for the reply.
	go func() {
		if err := s.exec(line); errors.Is(err, errNotStarted) {
			o.refused <- err
			return
		}
		s.end(c.Stdin)
	}()
	return nil
}

// end sends the input, if any, and EOF.
func (s *session) end(src io.Reader) {
	if src != nil {
		s.feed(src)
	}
	_ = s.channel.CloseWrite()
}

func (s *session) requestTTY() error {
	const echo, end = 53, 0
	_, err := s.channel.SendRequest("pty-req", false, ssh.Marshal(struct {
		Term                      string
		Columns, Rows, Wide, High uint32
		Modes                     string
	}{"dumb", 200, 50, 0, 0, string([]byte{echo, 0, 0, 0, 0, end})}))
	return err
}

// feed sends the input. An error of the source ends it early; an error of the channel means
// that nobody reads any more. Neither is a failure of the command.
func (s *session) feed(src io.Reader) {
	buf := s.link.buffers.Get().(*[]byte)
	defer s.link.buffers.Put(buf)
	_, _ = io.CopyBuffer(struct{ io.Writer }{s.channel}, struct{ io.Reader }{src}, *buf)
}

// copy passes an output on. It keeps reading after a failed write, because an output that is
// not read stalls the whole connection.
func (s *session) copy(to io.Writer, from io.Reader, o *outcome) {
	if to == nil {
		to = io.Discard
	}
	buf := s.link.buffers.Get().(*[]byte)
	defer s.link.buffers.Put(buf)
	for {
		n, err := from.Read(*buf)
		if n > 0 {
			s.link.throttle.begin()
			if _, bad := to.Write((*buf)[:n]); bad != nil {
				to = io.Discard
			}
			s.link.throttle.end(n)
			select {
			case o.active <- struct{}{}:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// listen stores the exit status, and returns when the channel ends.
func (s *session) listen() {
	defer close(s.closed)
	got := false
	for r := range s.requests {
		exit, ok := parseExit(r)
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
		if ok && !got {
			got = true
			s.exit = exit
			close(s.exited)
		}
	}
}

func parseExit(r *ssh.Request) (connector.Exit, bool) {
	switch r.Type {
	case "exit-status":
		var m struct{ Code uint32 }
		if err := ssh.Unmarshal(r.Payload, &m); err != nil {
			return connector.Exit{}, false
		}
		return connector.Exit{Code: int(m.Code)}, true
	case "exit-signal":
		var m struct {
			Signal     string
			CoreDumped bool
			Error      string
			Lang       string
		}
		if err := ssh.Unmarshal(r.Payload, &m); err != nil {
			return connector.Exit{}, false
		}
		return connector.Exit{Code: 128 + signalNumber(m.Signal), Signal: m.Signal}, true
	}
	return connector.Exit{}, false
}

// signalNumber is the number that Linux gives a signal, 0 for an unknown name.
func signalNumber(name string) int {
	for i, n := range []string{"", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL",
		"USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM"} {
		if n == name && i > 0 {
			return i
		}
	}
	n, _ := strconv.Atoi(name)
	return n
}

func (s *session) wait(ctx context.Context, o *outcome) (connector.Exit, error) {
	select {
	case <-s.ended:
		return s.verdict()
	case <-s.exited:
	case err := <-o.refused:
		return connector.Exit{}, err
	case <-ctx.Done():
		return connector.Exit{}, ctx.Err()
	}
	idle := time.NewTimer(grace)
	defer idle.Stop()
	for {
		select {
		case <-s.ended:
			return s.exit, nil
		case <-o.active:
			idle.Reset(grace)
		case <-idle.C:
			// A process that the command left behind keeps its outputs open.
			s.release()
			<-s.ended
			return s.exit, nil
		case <-ctx.Done():
			return connector.Exit{}, ctx.Err()
		}
	}
}

// verdict is the result of a channel that has ended.
func (s *session) verdict() (connector.Exit, error) {
	select {
	case <-s.exited:
		return s.exit, nil
	default:
	}
	select {
	case <-s.link.gone:
		return connector.Exit{}, &cutError{fmt.Errorf("the connection ended: %w", orEOF(s.link.cause))}
	case <-time.After(grace / 10):
		return connector.Exit{}, &cutError{errors.New("the host closed the channel without an exit status")}
	}
}

func orEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// finder passes an output on without the first line that begins with prefix, and reports the
// rest of that line.
type finder struct {
	prefix string
	found  func(rest string)
	to     io.Writer
	held   []byte
	done   bool
}

func (f *finder) Write(p []byte) (int, error) {
	if f.done {
		return len(p), f.pass(p)
	}
	f.held = append(f.held, p...)
	start := bytes.Index(f.held, []byte(f.prefix))
	if start < 0 {
		return len(p), f.giveUp()
	}
	end := bytes.IndexByte(f.held[start:], '\n')
	if end < 0 {
		return len(p), f.giveUp()
	}
	f.found(string(f.held[start+len(f.prefix) : start+end]))
	f.done = true
	return len(p), f.pass(append(f.held[:start:start], f.held[start+end+1:]...))
}

// giveUp passes on the held bytes once the line can no longer follow.
func (f *finder) giveUp() error {
	if len(f.held) < 8<<10 {
		return nil
	}
	return f.flush()
}

// flush passes on the held bytes: no line began with prefix.
func (f *finder) flush() error {
	if f.done {
		return nil
	}
	f.done = true
	return f.pass(f.held)
}

func (f *finder) pass(p []byte) error {
	if f.to == nil || len(p) == 0 {
		return nil
	}
	_, err := f.to.Write(p)
	return err
}

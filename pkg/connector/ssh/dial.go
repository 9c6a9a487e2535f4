package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"kubekey/pkg/connector"
)

func closeAll(closers []io.Closer) {
	for _, c := range closers {
		c.Close()
	}
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// dialOne connects to t with open and logs in, all within t.ConnectTimeout.
func (s *Shared) dialOne(ctx context.Context, t *target, open dialFunc) (*ssh.Client, error) {
	// To open an encrypted key takes time that is not the host's.
	in, err := s.newLogin(ctx, t)
	if err != nil {
		return nil, unreachable(t, &loginError{fmt.Sprintf("cannot log in to %s: %v", t.name(), err)})
	}
	defer in.close()
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, t.ConnectTimeout)
	defer cancel()
	client, err := s.connect(ctx, t, in, open)
	if err == nil {
		return client, nil
	}
	if caller.Err() != nil {
		return nil, caller.Err()
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", os.ErrDeadlineExceeded, err)
	}
	return nil, unreachable(t, err)
}

func (s *Shared) connect(ctx context.Context, t *target, in *login, open dialFunc) (*ssh.Client, error) {
	check, algorithms, err := s.hostKeys(t)
	if err != nil {
		return nil, err
	}
	raw, err := open(ctx, "tcp", t.addr())
	if err != nil {
		return nil, err
	}
	// The handshake knows no context: closing the connection ends it.
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	throttle := &throttle{}
	conn, chans, reqs, err := ssh.NewClientConn(throttledConn{raw, throttle}, t.addr(), &ssh.ClientConfig{
		User: t.User, Auth: in.methods, HostKeyCallback: check, HostKeyAlgorithms: algorithms,
		ClientVersion: "SSH-2.0-kk",
	})
	if !stop() && err == nil {
		conn.Close()
		err = ctx.Err()
	}
	if err != nil {
		raw.Close()
		return nil, explainHandshake(t, in, err)
	}
	return ssh.NewClient(throttledClient{conn, throttle}, chans, reqs), nil
}

// loginError is a login that will not succeed on a second try either.
type loginError struct{ text string }

func (e *loginError) Error() string { return e.text }

func explainHandshake(t *target, in *login, err error) error {
	var key *hostKeyError
	switch {
	case errors.As(err, &key):
		return key
	case strings.Contains(err.Error(), "unable to authenticate"),
		strings.Contains(err.Error(), "unexpected message type 51"):
		// The library has no type for these; 51 is the server's refusal of a method.
		return &loginError{in.refusal(t)}
	}
	return err
}

// unreachable explains for people why t was not reached.
func unreachable(t *target, err error) error {
	var already *connector.UnreachableError
	if errors.As(err, &already) {
		return already
	}
	return &connector.UnreachableError{Host: t.addr(), Reason: reason(t, err), Err: err}
}

func reason(t *target, err error) string {
	var (
		key   *hostKeyError
		in    *loginError
		dns   *net.DNSError
		open  *ssh.OpenChannelError
		where = "connect to " + t.name() + " by ssh: "
	)
	switch {
	case errors.As(err, &key):
		return key.text
	case errors.As(err, &in):
		return in.text
	case errors.As(err, &dns):
		return where + fmt.Sprintf("the name %s cannot be resolved (%s): check the address of the host", dns.Name, dns.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return where + fmt.Sprintf("connection refused: nothing listens on port %d: is sshd running, is the port right?", t.Port)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return where + "no route to the host: is it up, is the address right?"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return where + fmt.Sprintf("no answer within %v: is the host up, does a firewall drop the packets?", t.ConnectTimeout)
	case errors.As(err, &open):
		return where + fmt.Sprintf("the jump host cannot connect to it: %s", open.Message)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return where + "the host closed the connection while greeting: too many connections at once (MaxStartups of sshd), or not an ssh server?"
	case strings.Contains(err.Error(), "no common algorithm"):
		return where + err.Error() + ": the server's algorithms are too old or too few"
	}
	return where + err.Error()
}

// silentError ends a connection over which nothing comes any more.
type silentError struct{ after time.Duration }

func (e silentError) Error() string {
	return fmt.Sprintf("the host did not answer for %v", e.after)
}

// whyLost explains for people why a connection ended that was open.
func whyLost(err error) string {
	var silent silentError
	switch {
	case errors.As(err, &silent):
		return silent.Error() + ": is it up, and the network to it? Then run this again"
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "the network no longer leads to the host: look at it, then run this again"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset: did the host or its sshd restart, or does a firewall end connections? Then run this again"
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return "the connection was closed: did the host or its sshd restart? Then run this again"
	}
	return err.Error()
}

// permanent says whether a second try would fail in the same way.
func permanent(err error) bool {
	var (
		key *hostKeyError
		in  *loginError
		dns *net.DNSError
	)
	return errors.As(err, &key) || errors.As(err, &in) || errors.As(err, &dns) && dns.IsNotFound
}

// pause is the wait before try n to connect, n from 1. It is spread at random, so
// that hosts that a busy sshd turned away do not all come back at one moment.
func pause(n int) time.Duration {
	mean := min(200*time.Millisecond<<(n-1), 2*time.Second)
	return mean/2 + rand.N(mean)
}

// How often a failed try to connect is made again: when the host was there
// before, and when it was greeting and hung up, which a busy sshd does.
const (
	retriesLost   = 4
	retriesHungUp = 6
)

// worthRetry says whether try n, from 0, that failed is followed by another.
func worthRetry(err error, wasThere bool, n int) bool {
	switch {
	case permanent(err):
		return false
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return n < retriesHungUp
	}
	return wasThere && n < retriesLost
}

func (s *Shared) dialPatiently(ctx context.Context, t *target, wasThere bool) (*ssh.Client, []io.Closer, error) {
	for n := 0; ; n++ {
		client, closers, err := s.dial(ctx, t)
		if err == nil || ctx.Err() != nil || !worthRetry(err, wasThere, n) {
			return client, closers, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(pause(n + 1)):
		}
	}
}

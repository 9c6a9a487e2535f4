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
	// Decrypting a key must not count against the host's timeout.
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
	// The handshake ignores the context: closing the connection stops it.
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

// loginError is a login that would fail again.
type loginError struct{ text string }

func (e *loginError) Error() string { return e.text }

func explainHandshake(t *target, in *login, err error) error {
	var key *hostKeyError
	switch {
	case errors.As(err, &key):
		return key
	case strings.Contains(err.Error(), "unable to authenticate"),
		strings.Contains(err.Error(), "unexpected message type 51"):
		// The library has no error types for these; 51 is the server's rejection of a method.
		return &loginError{in.refusal(t)}
	}
	return err
}

// unreachable explains to the user why t was not reached.
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
		return where + fmt.Sprintf("connection refused: nothing listens on port %d: is sshd running, is the port right?",
			t.Port)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return where + "no route to the host: is it up, is the address right?"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return where + fmt.Sprintf("no answer within %v: is the host up, does a firewall drop the packets?", t.ConnectTimeout)
	case errors.As(err, &open):
		return where + fmt.Sprintf("the jump host cannot connect to it: %s", open.Message)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return where + "the host closed the connection during the handshake: " +
			"too many connections at once (MaxStartups of sshd), or not an ssh server?"
	case strings.Contains(err.Error(), "no common algorithm"):
		return where + err.Error() + ": the server supports only outdated algorithms, or too few"
	}
	return where + err.Error()
}

// silentError ends a connection that no longer receives anything.
type silentError struct{ after time.Duration }

func (e silentError) Error() string {
	return fmt.Sprintf("the host did not answer for %v", e.after)
}

// whyLost explains to the user why an open connection ended.
func whyLost(err error) string {
	var silent silentError
	switch {
	case errors.As(err, &silent):
		return silent.Error() + ": check that it and its network are up, then run this again"
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no longer a route to the host: check the network, then run this again"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset: did the host or its sshd restart, or does a firewall drop connections? " +
			"Then run this again"
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return "the connection was closed: did the host or its sshd restart? Then run this again"
	}
	return err.Error()
}

// permanent reports whether a second attempt would fail in the same way.
func permanent(err error) bool {
	var (
		key *hostKeyError
		in  *loginError
		dns *net.DNSError
	)
	return errors.As(err, &key) || errors.As(err, &in) || errors.As(err, &dns) && dns.IsNotFound
}

// pause is the wait before connection attempt n, n from 1. It is randomized, so that hosts
// that a busy sshd turned away do not all return at the same moment.
func pause(n int) time.Duration {
	mean := min(200*time.Millisecond<<(n-1), 2*time.Second)
	return mean/2 + rand.N(mean)
}

// How often a failed connection attempt is repeated: if the host was reachable before, and
// if it hung up during the handshake, as a busy sshd does.
const (
	retriesLost   = 4
	retriesHungUp = 6
)

// worthRetry reports whether failed attempt n, from 0, is followed by another.
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

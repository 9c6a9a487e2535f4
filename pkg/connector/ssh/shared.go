package ssh

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/kevinburke/ssh_config"
	"golang.org/x/crypto/ssh"
)

// Shared is what the hosts of one run share: one connection to each jump host, and
// known_hosts and ssh_config, read once. It is safe for concurrent use and needs no closing:
// the connection of a jump host is closed with the last Host that uses it.
type Shared struct {
	// Warn is called with warnings for the user.
	Warn func(text string)

	mu      sync.Mutex
	hops    map[string]*hop
	known   map[string]*known
	configs map[string][]*ssh_config.Config                  // as of their first use
	keys    map[[sha256.Size]byte]func() (ssh.Signer, error) // decrypt a key, by key and passphrase
}

// NewShared returns the state that hosts share.
func NewShared() *Shared {
	return &Shared{
		Warn: func(string) {}, hops: map[string]*hop{}, known: map[string]*known{},
		configs: map[string][]*ssh_config.Config{}, keys: map[[sha256.Size]byte]func() (ssh.Signer, error){},
	}
}

// New checks the options, reads the ssh configuration, and returns a Host that is
// not yet connected.
func (s *Shared) New(o Options) (*Host, error) {
	t, err := s.resolve(o, 0)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Host{target: t, shared: s, turn: make(chan struct{}, 1), ctx: ctx, stop: stop}, nil
}

// New is NewShared().New: a Host that shares nothing.
func New(o Options) (*Host, error) { return NewShared().New(o) }

// config returns the ssh configuration that Options.ConfigFile names.
func (s *Shared) config(file string) ([]*ssh_config.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.configs[file]; ok {
		return c, nil
	}
	c, err := readConfig(file)
	if err == nil {
		s.configs[file] = c
	}
	return c, err
}

// dial connects and logs in to t, through its jump hosts. closers are to be closed after the
// client, in order.
func (s *Shared) dial(ctx context.Context, t *target) (client *ssh.Client, closers []io.Closer, err error) {
	defer func() {
		if err != nil {
			closeAll(closers)
			closers = nil
		}
	}()
	open := (&net.Dialer{}).DialContext
	var way *lease
	for i, jump := range t.jumps {
		through := open
		dial := func() (*ssh.Client, error) { return s.dialOne(ctx, jump, through) }
		next, err := s.borrow(ctx, hopKey(t.jumps[:i+1]), dial)
		if err != nil {
			way.doubt(err)
			return nil, closers, err
		}
		way = next
		closers = append([]io.Closer{way}, closers...)
		open = way.hop.client.DialContext
	}
	client, err = s.dialOne(ctx, t, open)
	way.doubt(err)
	return client, closers, err
}

// hop is the connection to a jump host.
type hop struct {
	shared *Shared
	key    string
	done   chan struct{} // closed when client or err is set
	client *ssh.Client
	err    error
	gone   chan struct{} // closed when the connection has ended
	users  int           // guarded by shared.mu
}

// hopKey identifies a hop: its address, how it is reached, and the credentials.
func hopKey(chain []*target) string {
	sum := sha256.New()
	for _, t := range chain {
		fmt.Fprintf(sum, "%q %q %q %q %q %q %q %q %q\n",
			t.addr(), t.User, t.PrivateKeyFiles, t.AgentSocket, t.HostKey, t.KnownHosts,
			t.Password.Reveal(), t.PrivateKey.Reveal(), t.Passphrase.Reveal())
	}
	return string(sum.Sum(nil))
}

// borrow returns the connection of a jump host, dialing it if nobody else has or does.
func (s *Shared) borrow(ctx context.Context, key string, dial func() (*ssh.Client, error)) (*lease, error) {
	for {
		h, mine := s.join(key)
		if mine {
			h.fill(dial())
		}
		l := &lease{hop: h}
		select {
		case <-h.done:
		case <-ctx.Done():
			l.Close()
			return nil, ctx.Err()
		}
		if h.err == nil {
			return l, nil
		}
		l.Close()
		if mine || !errors.Is(h.err, context.Canceled) {
			return nil, h.err
		}
		// Another host's attempt was cancelled: try again.
	}
}

// join returns the hop, with the caller among its users; mine reports whether the caller has
// to dial it.
func (s *Shared) join(key string) (h *hop, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h = s.hops[key]
	if h == nil || h.over() {
		h = &hop{shared: s, key: key, done: make(chan struct{}), gone: make(chan struct{})}
		s.hops[key] = h
		mine = true
	}
	h.users++
	return h, mine
}

// over reports whether the connection has ended or was never made.
func (h *hop) over() bool {
	select {
	case <-h.gone:
		return true
	default:
		return false
	}
}

func (h *hop) fill(client *ssh.Client, err error) {
	h.client, h.err = client, err
	if err != nil {
		close(h.gone)
	} else {
		go func() {
			_ = client.Wait()
			close(h.gone)
		}()
	}
	close(h.done)
}

// lease is one host's use of a hop; closing it returns the hop.
type lease struct {
	hop  *hop
	once sync.Once
}

// Close closes the connection if nobody else uses it.
func (l *lease) Close() error {
	l.once.Do(func() {
		h := l.hop
		h.shared.mu.Lock()
		h.users--
		last := h.users == 0
		if last && h.shared.hops[h.key] == h {
			delete(h.shared.hops, h.key)
		}
		h.shared.mu.Unlock()
		if last && h.client != nil {
			h.client.Close()
		}
	})
	return nil
}

// doubt keeps others from using a jump host that does not answer: the next one redials it.
func (l *lease) doubt(err error) {
	if l == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	s := l.hop.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hops[l.hop.key] == l.hop {
		delete(s.hops, l.hop.key)
	}
}

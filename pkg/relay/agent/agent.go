// Package agent is the host's end of package relay: a program that stores blobs in a folder of its own, fetches them
// from other hosts and serves them to others, as long as the control node holds its standard input open.
package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"kubekey/pkg/relay"
)

// Run obeys the control node at in and out, with blobs in the folder dir, until in or ctx ends. Nothing is left then
// but whole blobs. Reading in may go on in the background. The error says why it could not run.
func Run(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	s, err := openStore(dir)
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := context.WithCancel(ctx)
	a := &agent{ctx: ctx, stop: cancel, store: s, out: out, dir: dir, running: map[int64]context.CancelFunc{},
		slots: make(chan struct{}, maxWork)}
	ended := make(chan error, 1)
	go func() { ended <- a.obey(relay.NewLineReader(in)) }()
	select {
	case err = <-ended:
	case <-ctx.Done(): // reading cannot be interrupted
	}
	cancel()
	a.wait.Wait()
	return err
}

type agent struct {
	ctx   context.Context
	stop  context.CancelFunc
	store *store
	dir   string
	peers *peers // nil before start
	wait  sync.WaitGroup
	slots chan struct{}

	silence *time.Timer

	answering sync.Mutex
	out       io.Writer

	mu      sync.Mutex
	running map[int64]context.CancelFunc
}

// maxWork is how many requests are worked on at a time.
const maxWork = 16

// obey carries out requests until the input ends.
func (a *agent) obey(r *bufio.Reader) error {
	for {
		q, err := relay.ReadRequest(r)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), a.ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		a.heard()
		switch q.Do {
		case relay.DoCancel:
			a.cancel(q.Of)
		case relay.DoPing:
			a.answer(relay.Answer{ID: q.ID}, nil)
		case relay.DoStart:
			port, err := a.start(q.Start)
			a.answer(relay.Answer{ID: q.ID, Port: port}, err)
		case relay.DoPut:
			err := a.put(*q.Blob, relay.NewFrameReader(r))
			if a.answer(relay.Answer{ID: q.ID}, err); errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
		default:
			a.begin(q)
		}
	}
}

// heard postpones the end that silence brings.
func (a *agent) heard() {
	if a.silence != nil {
		a.silence.Reset(a.peers.silence)
	}
}

func (a *agent) answer(answer relay.Answer, err error) {
	if err != nil {
		answer.Error, answer.Fault = err.Error(), relay.Failing
		var t *relay.TransferError
		if errors.As(err, &t) {
			answer.Fault = t.Fault
		}
	}
	a.answering.Lock()
	defer a.answering.Unlock()
	if err := relay.WriteLine(a.out, answer); err != nil {
		a.stop() // nobody listens anymore
	}
}

func (a *agent) cancel(id int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.running[id]; cancel != nil {
		cancel()
	}
}

// begin works on a request in the background.
func (a *agent) begin(q relay.Request) {
	select {
	case a.slots <- struct{}{}:
	default:
		a.answer(relay.Answer{ID: q.ID}, fmt.Errorf("%d requests are being worked on already", maxWork))
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	a.mu.Lock()
	a.running[q.ID] = cancel
	a.mu.Unlock()
	a.wait.Go(func() {
		answer, err := a.work(ctx, q)
		cancel()
		a.mu.Lock()
		delete(a.running, q.ID)
		a.mu.Unlock()
		<-a.slots
		if a.ctx.Err() != nil {
			return // the end of this program is not the fault of another
		}
		answer.ID = q.ID
		a.answer(answer, err)
	})
}

func (a *agent) work(ctx context.Context, q relay.Request) (answer relay.Answer, err error) {
	switch q.Do {
	case relay.DoList:
		answer.Has, err = a.store.list(ctx, q.Blobs)
	case relay.DoFetch:
		if a.peers == nil {
			return answer, errors.New("fetch before start")
		}
		err = a.peers.fetch(ctx, *q.Blob, *q.From, a.store)
	case relay.DoUnpack:
		err = a.store.unpack(ctx, *q.Blob, *q.Content)
	case relay.DoRemove:
		err = a.store.remove(*q.Blob)
	default:
		err = fmt.Errorf("there is no request %.20q", q.Do)
	}
	return answer, err
}

func (a *agent) put(b relay.Blob, from io.Reader) error {
	err := a.store.add(b, &heard{from, a.heard})
	if err != nil {
		_, rest := io.Copy(io.Discard, from) // the next request is behind it
		if errors.Is(rest, io.ErrUnexpectedEOF) {
			return rest
		}
	}
	return err
}

// heard reports what is read.
type heard struct {
	io.Reader
	report func()
}

func (h *heard) Read(p []byte) (int, error) {
	h.report()
	return h.Reader.Read(p)
}

// start begins to serve, and gives up all rights that this does not need.
func (a *agent) start(s *relay.Start) (port int, err error) {
	if a.peers != nil {
		return 0, errors.New("a second start")
	}
	p, err := newPeers(s)
	if err != nil {
		return 0, err
	}
	var listener net.Listener
	if s.Address != "" {
		if listener, err = listen(s.Address, s.Port); err != nil {
			return 0, err
		}
		port = listener.Addr().(*net.TCPAddr).Port
	}
	if err := confine(a.dir); err != nil {
		if listener != nil {
			_ = listener.Close()
		}
		return 0, fmt.Errorf("give up rights: %w", err)
	}
	a.peers = p
	a.silence = time.AfterFunc(p.silence, a.stop)
	context.AfterFunc(a.ctx, func() { a.silence.Stop() })
	if listener != nil {
		a.wait.Go(func() { p.serve(a.ctx, listener, a.store) })
	}
	return port, nil
}

// listen listens at the address that others connect to; at all addresses where it is not one of this host.
func listen(address string, port int) (net.Listener, error) {
	ip := net.ParseIP(address)
	if ip == nil {
		return nil, fmt.Errorf("%.80q is not an IP address", address)
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip, Port: port})
	if err != nil && notOwn(err) {
		return net.ListenTCP("tcp", &net.TCPAddr{Port: port})
	}
	return l, err
}

// RemoveItself removes the running program from the disk: it is in memory.
func RemoveItself() error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	return os.Remove(path)
}

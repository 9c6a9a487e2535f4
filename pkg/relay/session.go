package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// Session is the control node's end of the protocol with the program on one host. It is a Node. Its methods can be
// called concurrently.
type Session struct {
	name string
	in   io.WriteCloser
	open func(Blob) (io.ReadCloser, error) // the bytes of a blob on the control node
	rate *Limiter

	writing chan struct{} // has room for who writes one line, or one with the frames behind it
	stall   time.Duration // how long the program may take nothing that is sent to it, or not answer

	mu      sync.Mutex
	next    int64
	waiting map[int64]chan Answer
	lost    error
	ended   chan struct{}
	source  Source
}

// NewSession returns the session with a program whose standard input and output these are. Blobs are sent from what
// open returns, no faster than rate allows; nil is no limit. The session ends with out; Close closes in.
func NewSession(name string, in io.WriteCloser, out io.Reader, open func(Blob) (io.ReadCloser, error),
	rate *Limiter) *Session {
	s := &Session{name: name, in: in, open: open, rate: rate, waiting: map[int64]chan Answer{}, ended: make(chan struct{}),
		writing: make(chan struct{}, 1), stall: 10 * time.Minute}
	go s.listen(NewLineReader(out))
	return s
}

// listen passes answers on until the output ends.
func (s *Session) listen(r *bufio.Reader) {
	for {
		a, err := ReadAnswer(r)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the program on the host has exited")
			}
			s.end(err)
			_, _ = io.Copy(io.Discard, r) // a program that still prints can exit
			return
		}
		s.mu.Lock()
		waiting := s.waiting[a.ID]
		delete(s.waiting, a.ID)
		s.mu.Unlock()
		if waiting != nil {
			waiting <- a
		}
	}
}

// end ends the session: whoever waits for an answer gets the error.
func (s *Session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = &TransferError{Lost, err.Error()}
		close(s.ended)
		_ = s.in.Close() // the program exits
	}
}

// Close makes the program exit.
func (s *Session) Close() error {
	s.end(errors.New("the session is closed"))
	return nil
}

// Ended is closed when the session has ended.
func (s *Session) Ended() <-chan struct{} { return s.ended }

func (s *Session) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// begin registers a request.
func (s *Session) begin(q *Request) (chan Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return nil, s.lost
	}
	s.next++
	q.ID = s.next
	answer := make(chan Answer, 1)
	s.waiting[q.ID] = answer
	return answer, nil
}

// grace is how long the program may take to answer to what ended otherwise.
const grace = 10 * time.Second

// ask sends a request and waits for its answer. When ctx ends, the request is cancelled; a program that does not
// confirm that is lost.
func (s *Session) ask(ctx context.Context, q Request) (Answer, error) {
	return s.converse(ctx, q, func(q Request) error { return WriteLine(s.in, q) })
}

func (s *Session) converse(ctx context.Context, q Request, write func(Request) error) (Answer, error) {
	answer, err := s.begin(&q)
	if err != nil {
		return Answer{}, err
	}
	written := make(chan error, 1)
	var writer sync.WaitGroup
	defer writer.Wait() // write uses what belongs to the caller
	writer.Go(func() {
		s.writing <- struct{}{}
		defer func() { <-s.writing }()
		written <- write(q)
	})
	done := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case a := <-answer:
			return a, a.err()
		case err := <-written:
			written = nil
			if err != nil {
				s.end(fmt.Errorf("write to the program on the host: %w", err))
			}
		case <-done:
			done = nil
			late = time.After(grace)
			go s.cancel(q.ID)
		case <-late:
			s.end(errors.New("the program on the host does not answer"))
		case <-s.ended:
			select {
			case a := <-answer:
				return a, a.err()
			default:
				return Answer{}, s.why()
			}
		}
	}
}

func (s *Session) cancel(id int64) {
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	_ = WriteLine(s.in, Request{Do: DoCancel, Of: id}) // it is lost if it does not confirm
}

func (a Answer) err() error {
	if a.Error == "" {
		return nil
	}
	return &TransferError{a.Fault, a.Error}
}

// Start makes the program serve. Source returns its address afterwards.
func (s *Session) Start(ctx context.Context, name string, start Start) error {
	a, err := s.ask(ctx, Request{Do: DoStart, Start: &start})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source = Source{Name: name}
	if a.Port != 0 {
		s.source.Address = net.JoinHostPort(start.Address, strconv.Itoa(a.Port))
	}
	go s.ping(start.Quiet() / 4)
	return nil
}

// watch ends the session unless the timer is stopped or reset in time.
func (s *Session) watch() *time.Timer {
	return time.AfterFunc(s.stall, func() {
		s.end(fmt.Errorf("the program on the host has not reacted for %s", s.stall))
	})
}

// ping shows the program that the control node is there. A program that does not answer is lost.
func (s *Session) ping(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-s.ended:
			return
		case <-tick.C:
			select {
			case s.writing <- struct{}{}:
				s.hear()
			default: // whoever writes shows it too
			}
		}
	}
}

// hear sends a ping, and waits for its answer. The caller has taken writing.
func (s *Session) hear() {
	defer s.watch().Stop()
	q := Request{Do: DoPing}
	answer, err := s.begin(&q)
	if err == nil {
		err = WriteLine(s.in, q)
	}
	<-s.writing
	if err != nil {
		return // the next request fails, too
	}
	select {
	case <-answer:
	case <-s.ended:
	}
}

// Source implements Node.
func (s *Session) Source() Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source
}

// Has implements Node.
func (s *Session) Has(ctx context.Context, blobs []Blob) ([]bool, error) {
	has := make([]bool, len(blobs))
	for begin := 0; begin < len(blobs); begin += maxList {
		part := blobs[begin:min(begin+maxList, len(blobs))]
		a, err := s.ask(ctx, Request{Do: DoList, Blobs: part})
		if err != nil {
			return nil, err
		}
		for _, i := range a.Has {
			if i < 0 || i >= len(part) {
				return nil, fmt.Errorf("%s answered that it has blob %d of %d", s.name, i, len(part))
			}
			has[begin+i] = true
		}
	}
	return has, nil
}

// Fetch implements Node.
func (s *Session) Fetch(ctx context.Context, b Blob, from Source) error {
	_, err := s.ask(ctx, Request{Do: DoFetch, Blob: &b, From: &from})
	return err
}

// Send implements Node. A program that takes nothing for a while, or does not answer, is lost: it would hold up what
// the control node sends to others.
func (s *Session) Send(ctx context.Context, b Blob) error {
	from, err := s.open(b)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // only read
	stalled := s.watch()
	defer stalled.Stop()
	var broken error
	_, err = s.converse(ctx, Request{Do: DoPut, Blob: &b}, func(q Request) error {
		if err := WriteLine(s.in, q); err != nil {
			return err
		}
		to := frames{s.in}
		buf := make([]byte, 128<<10)
		for {
			n, err := from.Read(buf)
			stalled.Stop() // others are sent to meanwhile
			waited := errors.Join(s.rate.Wait(ctx, n), ctx.Err())
			stalled.Reset(s.stall)
			if waited != nil {
				return to.mark(abandoned)
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
			switch {
			case errors.Is(err, io.EOF):
				return to.mark(0)
			case err != nil:
				broken = err
				return to.mark(abandoned)
			}
		}
	})
	if broken != nil {
		return fmt.Errorf("read %s: %w", b.Digest, broken)
	}
	return err
}

// Unpack decodes a blob that is zstd, on the host, to another blob.
func (s *Session) Unpack(ctx context.Context, packed, content Blob) error {
	_, err := s.ask(ctx, Request{Do: DoUnpack, Blob: &packed, Content: &content})
	return err
}

// Remove removes a blob from the host.
func (s *Session) Remove(ctx context.Context, b Blob) error {
	_, err := s.ask(ctx, Request{Do: DoRemove, Blob: &b})
	return err
}

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Maximum sizes of inputs in bytes, by type. MaxFile applies to files that users write: playbooks, inventories,
// variables, configs, templates.
const (
	MaxSecret = 1 << 20   // keys, certificates, passwords, tokens
	MaxData   = 256 << 20 // files that modules and lookups read whole
)

// Patience is how long an input may be silent, unless set otherwise.
const Patience = 5 * time.Minute

// maxOpening is how long kk waits for a writer of a FIFO.
const maxOpening = 10 * time.Second

// errNoWriter is the error for a FIFO that cannot be opened because it has no writer.
var errNoWriter = errors.New("nothing writes to it (it is a named pipe without a writer)")

// sizeError is the error for an input that exceeds its maximum size.
type sizeError struct{ max int64 }

func (e sizeError) Error() string {
	if e.max < 1<<20 {
		return fmt.Sprintf("it has more than %d bytes, the most that is read", e.max)
	}
	return fmt.Sprintf("it has more than %d MiB, the most that is read", e.max>>20)
}

// silentError is the error for an input that neither sends data nor ends.
type silentError struct{ after time.Duration }

func (e silentError) Error() string {
	return fmt.Sprintf("nothing came from it for %s, and it did not end", e.after)
}

// WithContext returns a tree whose reads are canceled with ctx.
func (t Tree) WithContext(ctx context.Context) Tree {
	t.Ended = ctx.Done()
	return t
}

func (t Tree) patience() time.Duration {
	if t.Patience > 0 {
		return t.Patience
	}
	return Patience
}

// Read reads a whole file of at most max bytes. Pipes and devices are read like files (`<(command)` is a pipe), but
// with limits on size and time.
func (t Tree) Read(name string, max int64) ([]byte, error) {
	fsys, p, err := t.split(name)
	if err != nil {
		return nil, err
	}
	if fsys != nil {
		return fs.ReadFile(fsys, p)
	}
	text, err := t.readDisk(p, max)
	if err != nil {
		return nil, err
	}
	return t.readVault(p, text)
}

func (t Tree) readDisk(p string, max int64) ([]byte, error) {
	info, err := os.Stat(p)
	switch {
	case err != nil:
		var pe *fs.PathError
		if errors.As(err, &pe) {
			pe.Op = "open"
		}
		return nil, err
	case !info.Mode().IsRegular() || info.Size() == 0: // files in /proc report size 0
		text, err := t.drain(func() (io.ReadCloser, error) { return os.Open(p) }, max, t.patience())
		return text, pathError(p, err)
	case info.Size() > max:
		return nil, pathError(p, sizeError{max})
	}
	f, err := os.Open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = text.ReadFrom(io.LimitReader(f, max+1)) // the file may have grown
	if err == nil && int64(text.Len()) > max {
		err = sizeError{max}
	}
	return text.Bytes(), pathError(p, err)
}

func pathError(p string, err error) error {
	var pe *fs.PathError
	if err == nil || errors.As(err, &pe) {
		return err
	}
	return &fs.PathError{Op: "read", Path: p, Err: err}
}

// ReadStream reads a stream to its end, at most max bytes. A user may be typing it, so there is no limit on
// silence.
func (t Tree) ReadStream(r io.Reader, max int64) ([]byte, error) {
	return t.drain(func() (io.ReadCloser, error) { return io.NopCloser(r), nil }, max, 0)
}

// part is the data of one read. The first part is empty and reports that the input is open.
type part struct {
	text []byte
	err  error
}

// drain reads an input that may be silent or endless. Opening a FIFO and reading a terminal cannot be interrupted.
// A goroutine does it, and is abandoned if the input does not respond.
func (t Tree) drain(open func() (io.ReadCloser, error), max int64, patience time.Duration) ([]byte, error) {
	parts, stop := make(chan part), make(chan struct{})
	defer close(stop)
	go pump(open, parts, stop)
	silent := silence{patience: patience}
	silent.start(min(patience, maxOpening))
	defer silent.stop()
	var text []byte
	for opened := false; ; opened = true {
		select {
		case p := <-parts:
			text = append(text, p.text...)
			switch {
			case int64(len(text)) > max:
				return nil, sizeError{max}
			case errors.Is(p.err, io.EOF):
				return text, nil
			case p.err != nil:
				return nil, p.err
			}
			silent.start(patience)
		case <-silent.over():
			if !opened {
				return nil, errNoWriter
			}
			return nil, silentError{patience}
		case <-t.Ended:
			return nil, context.Canceled
		}
	}
}

// silence measures the time since the last data of an input. Without patience there is no limit.
type silence struct {
	patience time.Duration
	timer    *time.Timer
}

func (s *silence) start(d time.Duration) {
	switch {
	case s.patience <= 0:
	case s.timer == nil:
		s.timer = time.NewTimer(d)
	default:
		s.timer.Reset(d)
	}
}

func (s *silence) over() <-chan time.Time {
	if s.timer == nil {
		return nil
	}
	return s.timer.C
}

func (s *silence) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

func pump(open func() (io.ReadCloser, error), parts chan<- part, stop <-chan struct{}) {
	send := func(p part) bool {
		select {
		case parts <- p:
			return p.err == nil
		case <-stop:
			return false
		}
	}
	r, err := open()
	if err != nil {
		send(part{err: err})
		return
	}
	done := make(chan struct{})
	defer close(done)
	go func() { // closing it wakes the reader of a pipe
		select {
		case <-stop:
		case <-done:
		}
		r.Close()
	}()
	for going := send(part{}); going; {
		buf := make([]byte, 32<<10)
		n, err := r.Read(buf)
		going = send(part{buf[:n], err})
	}
}

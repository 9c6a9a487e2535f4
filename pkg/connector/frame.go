package connector

import (
	"bytes"
	"io"
	"strconv"
	"sync"
)

// frame is one output of a persistent shell. A command's output lies between a line that
// equals the mark and a line that begins with the mark and ends with the exit status. The
// output need not end in a line feed, so an empty line is inserted before the last line.
type frame struct {
	mu    sync.Mutex
	state frameState
	mark  string
	to    io.Writer
	held  []byte
	ended chan int // gets the status
	stray bool     // output arrived outside of a frame
}

type frameState int

const (
	frameClosed frameState = iota
	frameAwaited
	frameOpen
)

// open begins a frame; the status is sent when the frame ends.
func (f *frame) open(mark string, to io.Writer) (ended chan int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.mark, f.to, f.held, f.ended = frameAwaited, mark, to, nil, make(chan int, 1)
	return f.ended
}

// begun reports whether the frame that was opened last has begun.
func (f *frame) begun() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state != frameAwaited
}

// strayed reports whether output that belongs to no command has been seen.
func (f *frame) strayed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stray
}

// reset discards the output seen outside of frames.
func (f *frame) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stray = false
}

// Write implements io.Writer for the transport.
func (f *frame) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = append(f.held, p...)
	if f.state == frameAwaited {
		f.findStart()
	}
	if f.state == frameOpen {
		f.findEnd()
	}
	if f.state == frameClosed && len(f.held) > 0 {
		f.stray, f.held = true, nil
	}
	return len(p), nil
}

// findStart searches for the first line.
func (f *frame) findStart() {
	first := []byte(f.mark + "\n")
	before, after, found := bytes.Cut(f.held, first)
	if !found { // keep only what can be its beginning
		part := overlap(f.held, first)
		before, after = f.held[:len(f.held)-part], f.held[len(f.held)-part:]
	}
	f.stray = f.stray || len(before) > 0
	f.held = append(f.held[:0], after...)
	if found {
		f.state = frameOpen
	}
}

// maxStatus is how long a line with a status may be.
const maxStatus = 8

// findEnd passes on what is certainly the command's output, and searches for the last line.
func (f *frame) findEnd() {
	needle := []byte("\n" + f.mark + " ")
	at := bytes.Index(f.held, needle)
	if at < 0 {
		f.emit(len(f.held) - overlap(f.held, needle))
		return
	}
	f.emit(at)
	line, rest, whole := bytes.Cut(f.held[len(needle):], []byte("\n"))
	if !whole && len(line) < maxStatus {
		return
	}
	long := len(line) >= maxStatus // however it was split into writes
	status, err := strconv.ParseUint(string(line), 10, 8)
	if err != nil || long {
		status = 255 // no shell prints that
	}
	f.state, f.held, f.stray = frameClosed, rest, f.stray || long
	f.ended <- int(status)
}

// emit passes n bytes on. A reader that failed once is not written to again.
func (f *frame) emit(n int) {
	if f.to != nil && n > 0 {
		if _, err := f.to.Write(f.held[:n]); err != nil {
			f.to = nil
		}
	}
	f.held = append(f.held[:0], f.held[n:]...)
}

// overlap is how many of the last bytes of text begin needle.
func overlap(text, needle []byte) int {
	for n := min(len(text), len(needle)-1); n > 0; n-- {
		if bytes.HasSuffix(text, needle[:n]) {
			return n
		}
	}
	return 0
}

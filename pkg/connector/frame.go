package connector

import (
	"bytes"
	"io"
	"strconv"
	"sync"
)

// frame is one output of a shell that stays. Between a line that is the mark and one that
// begins with it is the output of a command; the latter ends with its status. The end of the
// command's output need not be a line's, so an empty line comes before the last line.
type frame struct {
	mu    sync.Mutex
	state frameState
	mark  string
	to    io.Writer
	held  []byte
	ended chan int // gets the status
	stray bool     // something came outside
}

type frameState int

const (
	frameClosed frameState = iota
	frameAwaited
	frameOpen
)

// open begins a frame; the status comes when it has ended.
func (f *frame) open(mark string, to io.Writer) (ended chan int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.mark, f.to, f.held, f.ended = frameAwaited, mark, to, nil, make(chan int, 1)
	return f.ended
}

// begun says whether the frame that was opened last has begun.
func (f *frame) begun() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state != frameAwaited
}

// strayed says whether something came that is no command's output, as far as is known.
func (f *frame) strayed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stray
}

// settle forgets what came outside so far.
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

// await looks for the first line.
func (f *frame) findStart() {
	first := []byte(f.mark + "\n")
	before, after, found := bytes.Cut(f.held, first)
	if !found { // what cannot be its beginning is not kept
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

// pass passes on what is the command's for certain, and looks for the last line.
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
	long := len(line) >= maxStatus // whether it came at once or in pieces
	status, err := strconv.ParseUint(string(line), 10, 8)
	if err != nil || long {
		status = 255 // no shell prints that
	}
	f.state, f.held, f.stray = frameClosed, rest, f.stray || long
	f.ended <- int(status)
}

// give passes n bytes on. Who no longer wants them is not asked again.
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

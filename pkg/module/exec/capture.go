package exec

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// keep is how much of an output a result holds.
const keep = 64 << 20

// longestLine bounds what is held back while a line has no end yet.
const longestLine = 64 << 10

// capture keeps the end of an output and passes its lines on as they come.
// Write is called from one goroutine; lock keeps two outputs of a command
// from calling emit at once.
type capture struct {
	limit   int
	emit    func(line string)
	lock    *sync.Mutex
	chunks  [][]byte
	kept    int
	dropped int64
	line    []byte
}

func (c *capture) Write(p []byte) (int, error) {
	c.store(p)
	if c.emit != nil {
		c.pass(p)
	}
	return len(p), nil
}

// store adds p to the chunks and drops the oldest ones beyond the limit.
func (c *capture) store(p []byte) {
	const chunk = 64 << 10
	for rest := p; len(rest) > 0; {
		last := len(c.chunks) - 1
		if last < 0 || len(c.chunks[last]) == cap(c.chunks[last]) {
			size := chunk
			if last < 0 {
				size = max(512, min(len(rest), chunk)) // most outputs are short
			}
			c.chunks = append(c.chunks, make([]byte, 0, size))
			last++
		}
		n := min(len(rest), cap(c.chunks[last])-len(c.chunks[last]))
		c.chunks[last] = append(c.chunks[last], rest[:n]...)
		rest = rest[n:]
	}
	c.kept += len(p)
	for c.kept-len(c.chunks[0]) >= c.limit && len(c.chunks) > 1 {
		c.kept -= len(c.chunks[0])
		c.dropped += int64(len(c.chunks[0]))
		c.chunks[0] = nil
		c.chunks = c.chunks[1:]
	}
}

func (c *capture) pass(p []byte) {
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		c.line = append(c.line, line...)
		if ended || len(c.line) >= longestLine {
			c.flush()
		}
		p = rest
	}
}

func (c *capture) flush() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.emit(strings.TrimRight(string(c.line), "\r"))
	c.line = c.line[:0]
}

// text ends the capture: it passes on an unfinished line and returns what was
// kept, from the start of a line on if the beginning was dropped.
func (c *capture) text() string {
	if c.emit != nil && len(c.line) > 0 {
		c.flush()
	}
	var b strings.Builder
	b.Grow(c.kept)
	for i, chunk := range c.chunks {
		b.Write(chunk)
		c.chunks[i] = nil // an output is never held twice as a whole
	}
	c.chunks = nil
	s := b.String()
	if c.dropped > 0 {
		if _, whole, ok := strings.Cut(s, "\n"); ok {
			s = whole
		}
	}
	return s
}

// warning says what was dropped, "" if nothing was.
func (c *capture) warning(name string) string {
	if c.dropped == 0 {
		return ""
	}
	return fmt.Sprintf("%s was longer than %d MiB: the result holds its end only; send it to a file to keep all of it", name, c.limit>>20)
}

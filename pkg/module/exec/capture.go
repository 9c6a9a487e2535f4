package exec

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

const (
	// longestLine bounds what is buffered of an incomplete line.
	longestLine = 64 << 10
	// shownLine is how much of a line is passed on.
	shownLine = 16 << 10
	// shownLines is how many lines of a command are passed on; after them, only the
	// last one at intervals.
	shownLines = 10_000
	nowAndThen = 200 * time.Millisecond
	// dubious is how much is dropped of a text that begins in the middle of a line: it
	// may be the end of a secret, which redaction would not recognise.
	dubious = 4 << 10
)

// outputs are the two outputs of a command. A result holds the end of them, since the
// end shows how a command finished; a longer output is written to a file as a whole. They
// share the memory: a long stdout is trimmed for a late stderr.
type outputs struct {
	bound  module.Outputs
	output func(line string, stderr bool) // may be nil
	now    func() time.Time

	mu             sync.Mutex // a command writes its two outputs from two goroutines
	stdout, stderr capture
	lines          int
	shown          time.Time // when a line was passed on last
}

func newOutputs(c *module.Call) *outputs {
	o := &outputs{bound: c.Bound(), output: c.Output, now: c.Now}
	o.stdout = capture{all: o, name: "stdout"}
	o.stderr = capture{all: o, name: "stderr"}
	return o
}

// chunk is the unit in which output is kept.
func (o *outputs) chunk() int { return max(512, min(64<<10, o.bound.Keep/4)) }

// trim drops the oldest part of the longer output, until both are within the bound.
func (o *outputs) trim() {
	for {
		c := &o.stdout
		if o.stderr.kept > c.kept {
			c = &o.stderr
		}
		if len(c.chunks) == 0 || o.stdout.kept+o.stderr.kept <= o.bound.Keep {
			return
		}
		c.drop()
	}
}

// end closes both outputs: it passes on incomplete lines, and closes files.
func (o *outputs) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range []*capture{&o.stdout, &o.stderr} {
		if len(c.line) > 0 && o.output != nil {
			c.flush()
		}
		if c.over != nil {
			c.file, c.stored, c.lost = c.over.End()
			c.over = nil
		}
	}
}

// show passes a line on, unless there are too many.
func (o *outputs) show(line string, stderr bool) {
	switch o.lines++; {
	case o.lines == shownLines:
		line = "(too many lines: from here on only some of them are shown)"
	case o.lines > shownLines && o.now().Sub(o.shown) < nowAndThen:
		return
	}
	if o.lines >= shownLines {
		o.shown = o.now()
	}
	o.output(line, stderr)
}

// capture is one of the outputs.
type capture struct {
	all    *outputs
	name   string
	chunks [][]byte
	kept   int
	total  int64 // bytes printed
	spare  []byte
	line   []byte
	long   bool // the beginning of the line was passed on already

	dropped bool            // chunks does not hold the whole output
	over    module.Overflow // receives the whole output; nil until something is dropped, or if it cannot be kept

	file   string // path of the whole output, "" for none
	stored int64  // bytes in the file
	lost   error  // why the file is incomplete
}

// Write implements io.Writer.
func (c *capture) Write(p []byte) (int, error) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.total += int64(len(p))
	if c.over != nil {
		_, _ = c.over.Write(p) // never fails
	}
	c.store(p)
	c.all.trim()
	if c.all.output != nil {
		c.pass(p)
	}
	return len(p), nil
}

func (c *capture) store(p []byte) {
	chunk := c.all.chunk()
	for rest := p; len(rest) > 0; {
		last := len(c.chunks) - 1
		if last < 0 || len(c.chunks[last]) == cap(c.chunks[last]) {
			size := chunk
			if last < 0 {
				size = max(512, min(len(rest), chunk)) // most outputs are short
			}
			c.chunks = append(c.chunks, c.empty(size))
			last++
		}
		n := min(len(rest), cap(c.chunks[last])-len(c.chunks[last]))
		c.chunks[last] = append(c.chunks[last], rest[:n]...)
		rest = rest[n:]
	}
	c.kept += len(p)
}

// empty is a new chunk; a dropped one is reused.
func (c *capture) empty(size int) []byte {
	spare := c.spare
	if cap(spare) < size {
		return make([]byte, 0, size)
	}
	c.spare = nil
	return spare
}

// drop drops the oldest chunk. Before the first drop, everything is written to a file.
func (c *capture) drop() {
	if open := c.all.bound.Open; !c.dropped && open != nil {
		c.over = open(c.name)
		for _, chunk := range c.chunks {
			_, _ = c.over.Write(chunk) // never fails
		}
	}
	c.dropped = true
	c.kept -= len(c.chunks[0])
	c.spare = c.chunks[0][:0]
	c.chunks = slices.Delete(c.chunks, 0, 1)
}

func (c *capture) pass(p []byte) {
	if c.all.lines > shownLines {
		p = c.skip(p)
	}
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		if !c.long {
			c.line = append(c.line, line[:min(len(line), longestLine-len(c.line))]...)
		}
		switch {
		case ended && c.long:
			c.long = false
		case ended:
			c.flush()
		case len(c.line) >= longestLine:
			c.flush()
			c.long = true
		}
		p = rest
	}
}

// skip skips all lines but the last that ends in p.
func (c *capture) skip(p []byte) []byte {
	end := bytes.LastIndexByte(p, '\n')
	start := bytes.LastIndexByte(p[:max(end, 0)], '\n') + 1
	if start > 0 {
		c.line, c.long = c.line[:0], false
	}
	return p[start:]
}

func (c *capture) flush() {
	line := strings.TrimRight(string(c.line), "\r")
	if len(line) > shownLine {
		// Half a secret would not be recognised later.
		line = c.all.bound.Secrets.Text(line)
		line = strings.ToValidUTF8(line[:min(shownLine, len(line)/2)], "") + " (truncated: a very long line)"
	}
	c.line = c.line[:0]
	c.all.show(line, c.name == "stderr")
}

// text returns the kept output and releases it.
func (c *capture) text() string {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	var b strings.Builder
	b.Grow(c.kept)
	for i, chunk := range c.chunks {
		b.Write(chunk)
		c.chunks[i] = nil // never hold a whole output twice
	}
	c.chunks, c.spare, c.kept = nil, nil, 0
	if !c.dropped {
		return b.String()
	}
	return c.whole(b.String())
}

// whole is text from the start of a line, or, in the middle of a very long line, from
// a position that cuts no secret.
func (c *capture) whole(text string) string {
	look := text[:min(len(text), longestLine)]
	if _, after, ok := strings.Cut(look, "\n"); ok {
		return text[len(look)-len(after):]
	}
	return text[c.all.bound.Secrets.SafeCut(look, min(dubious, len(look)/4), len(look)/2):]
}

// describe adds the keys for a truncated output to a result.
func (c *capture) describe(d *value.Dict) {
	if !c.dropped {
		return
	}
	d.Set(c.name+"_truncated", true)
	d.Set(c.name+"_bytes", int(c.total))
	if c.file != "" {
		d.Set(c.name+"_file", c.file)
	}
}

// warning says what was dropped, "" if nothing was.
func (c *capture) warning() string {
	if !c.dropped {
		return ""
	}
	said := fmt.Sprintf("%s was %s long: the result holds only its end, up to the setting output_memory", c.name,
		size(c.total))
	switch why := c.all.bound.Why; {
	case c.file != "" && c.lost == nil:
		return said + "; the whole output is in " + c.file
	case c.file != "":
		return fmt.Sprintf("%s; only the first %s are in %s: %s", said, size(c.stored), c.file, c.lost)
	case c.lost != nil:
		return fmt.Sprintf("%s; the rest is lost: %s", said, c.lost)
	default:
		return fmt.Sprintf("%s; the rest was not kept: %s", said, why)
	}
}

// size prints a number of bytes for humans.
func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

package connector

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// watch reads the output that sudo and the command share. Up to the opening sign it
// belongs to sudo, after that to the command.
type watch struct {
	mark    string
	to      io.Writer // the command's output; may be nil
	onWrong func()    // called when the password is asked for again; may be nil

	mu     sync.Mutex
	before []byte
	asked  int
	spoke  chan struct{} // closed: something was printed, possibly a prompt
	open   chan struct{} // closed: the command runs
	over   chan struct{} // closed: it does not run (any more)
	wrong  bool
	ended  bool
}

// maxMessages bounds how many bytes of sudo's messages are kept.
const maxMessages = 64 << 10

func newWatch(mark string) *watch {
	return &watch{mark: mark, spoke: make(chan struct{}), open: make(chan struct{}), over: make(chan struct{})}
}

func (w *watch) Write(p []byte) (int, error) {
	if w.isOpen() {
		return len(p), w.pass(p)
	}
	rest, wrong := w.consume(p)
	if wrong && w.onWrong != nil {
		w.onWrong()
	}
	return len(p), w.pass(rest)
}

// consume reads what precedes the command's output; it returns what belongs to the command.
func (w *watch) consume(p []byte) (rest []byte, wrong bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.before) == 0 && len(p) > 0 {
		close(w.spoke)
	}
	w.before = append(w.before, p...)
	if over := len(w.before) - maxMessages; over > 0 {
		w.before = append(w.before[:0], w.before[over:]...)
	}
	if w.wrong {
		return nil, false // the input is closed already, so nothing that runs now got the password
	}
	if said, after, found := bytes.Cut(w.before, []byte(openSign(w.mark))); found {
		line := bytes.IndexByte(after, '\n')
		if line < 0 {
			return nil, false // wait for the rest of the line
		}
		w.before = said
		close(w.open)
		return append([]byte(nil), after[line+1:]...), false
	}
	w.asked = bytes.Count(w.before, []byte(askSign(w.mark)))
	if w.asked > 1 && !w.wrong {
		w.wrong = true
		w.endLocked()
		return nil, true
	}
	return nil, false
}

func (w *watch) pass(p []byte) error {
	if w.to == nil || len(p) == 0 {
		return nil
	}
	_, err := w.to.Write(p)
	return err
}

func (w *watch) endLocked() {
	if !w.ended {
		w.ended = true
		close(w.over)
	}
}

// end records that no more output follows.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endLocked()
}

func (w *watch) isOpen() bool {
	select {
	case <-w.open:
		return true
	default:
		return false
	}
}

func (w *watch) isWrong() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong
}

// said is sudo's messages without its prompts.
func (w *watch) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.ReplaceAll(string(w.before), askSign(w.mark), "")
}

// gated is input that is held back until gate is closed.
type gated struct {
	w    *watch
	gate chan struct{}
	src  io.Reader
}

func (g *gated) Read(p []byte) (int, error) {
	select {
	case <-g.gate:
		return g.src.Read(p)
	case <-g.w.over:
		return 0, io.EOF
	}
}

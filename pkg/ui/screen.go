package ui

import (
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Screen is the only path to the user's terminal. Everything written to it is data of hosts and
// files, and is shown as text: control sequences are escaped. kk's own colours and cursor moves
// are not part of any text. They are added here, around text that is already escaped, so that
// data cannot contain any.
//
// It stores the first error of its writer, and writes nothing after it: the output then ends
// early, but has no gaps.
type Screen struct {
	mu   sync.Mutex
	to   io.Writer
	tail []byte // the beginning of a rune that the next write completes
	err  error
}

// NewScreen returns the screen that writes to w, which is w itself if it is a Screen.
func NewScreen(w io.Writer) *Screen {
	if s, ok := w.(*Screen); ok {
		return s
	}
	return &Screen{to: w}
}

// Write shows text that can have several lines.
func (s *Screen) Write(b []byte) (int, error) { return s.write(b, blockLayout, people) }

// JSON returns a writer for JSON: characters that are escaped in text are escaped as JSON does
// it, so that programs read the same value, and a terminal can show it.
func (s *Screen) JSON() io.Writer {
	return writerFunc(func(b []byte) (int, error) { return s.write(b, blockLayout, inJSON) })
}

// Raw returns a writer that changes nothing, for files that programs read.
func (s *Screen) Raw() io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flush()
		s.put(string(b))
		return len(b), s.err
	})
}

// Writer returns the underlying writer: to inspect it, or to pass it to a program that the user
// started through kk.
func (s *Screen) Writer() io.Writer { return s.to }

// Message shows a message of kk. Its lines after the first are indented, because they may be
// output of a host.
func (s *Screen) Message(text string) { _, _ = io.WriteString(s, continued(text)+"\n") }

// Prompt shows a question, and leaves the cursor after it.
func (s *Screen) Prompt(text string) { _, _ = io.WriteString(s, continued(text)) }

// Flush ends the output and returns its first error.
func (s *Screen) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	return s.err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func (s *Screen) write(b []byte, layout string, spell speller) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := append(s.tail, b...)
	whole := len(text) - cutOff(text)
	s.tail = append([]byte(nil), text[whole:]...)
	s.put(escape(string(text[:whole]), layout, spell))
	return len(b), s.err
}

// cutOff is the number of bytes at the end of b that are an incomplete rune.
func cutOff(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// flush shows an incomplete rune. The caller holds the lock.
func (s *Screen) flush() {
	tail := string(s.tail)
	s.tail = nil
	s.put(escape(tail, "", people))
}

// put writes text that is already escaped.
func (s *Screen) put(text string) {
	if s.err == nil && text != "" {
		_, s.err = io.WriteString(s.to, text)
	}
}

// span is a text within a line, and its colour.
type span struct {
	color color
	text  string
}

// line shows one line. This is the only place that adds colours.
func (s *Screen) line(colored bool, spans ...span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.put(painted(colored, spans) + "\n")
}

// block shows the lines of a text, each with an indent, in one write: outputs of hosts can have
// a million lines.
func (s *Screen) block(colored bool, c color, indent, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(painted(colored, []span{{c, indent + line}}))
		b.WriteByte('\n')
	}
	s.put(b.String())
}

func painted(colored bool, spans []span) string {
	var b strings.Builder
	for _, sp := range spans {
		text := Inline(sp.text)
		if colored && sp.color != "" && text != "" {
			text = "\x1b[" + string(sp.color) + "m" + text + "\x1b[0m"
		}
		b.WriteString(text)
	}
	return b.String()
}

// redraw replaces the lines drawn last, at the end of which the cursor is, and leaves it at the
// end of the new ones. Without lines it only erases.
func (s *Screen) redraw(drawn int, colored bool, c color, lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	rows := make([]string, len(lines))
	for i, line := range lines {
		rows[i] = painted(colored, []span{{c, line}})
	}
	s.put(erase(drawn) + strings.Join(rows, "\n"))
}

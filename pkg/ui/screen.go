package ui

import (
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Screen is the one way to what a person reads. Whatever is written to it is
// data, of hosts and of files, and comes out as text: what a terminal would obey
// is escaped. The colours and cursor moves of kk are no part of any text. They
// are made here, around texts that were escaped, so that data cannot
// bring any along, and nothing need guess whose they are.
//
// It keeps the first error of its writer, and writes nothing after it: output
// has an end where it was lost, not a hole.
type Screen struct {
	mu   sync.Mutex
	to   io.Writer
	tail []byte // the beginning of a rune that the next write goes on with
	err  error
}

// NewScreen returns the screen that writes to w, which is w if it is one.
func NewScreen(w io.Writer) *Screen {
	if s, ok := w.(*Screen); ok {
		return s
	}
	return &Screen{to: w}
}

// Write shows text of lines.
func (s *Screen) Write(b []byte) (int, error) { return s.write(b, blockLayout, people) }

// JSON returns a writer of JSON: what would be escaped in text is escaped as
// JSON does it, so that programs read what it says, and a terminal shows it.
func (s *Screen) JSON() io.Writer {
	return writerFunc(func(b []byte) (int, error) { return s.write(b, blockLayout, inJSON) })
}

// Raw returns a writer that changes nothing: for files that programs read.
func (s *Screen) Raw() io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flush()
		s.put(string(b))
		return len(b), s.err
	})
}

// Writer is what the screen writes to: to ask what it is, and to hand it to
// a program that a person called through kk.
func (s *Screen) Writer() io.Writer { return s.to }

// Message shows a message of kk; its lines after the first are indented,
// since they may be those of a host.
func (s *Screen) Message(text string) { _, _ = io.WriteString(s, continued(text)+"\n") }

// Prompt shows a question, and leaves the cursor behind it.
func (s *Screen) Prompt(text string) { _, _ = io.WriteString(s, continued(text)) }

// Flush ends the output and returns the first error that any of it met.
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

// cutOff is how many bytes at the end of b begin a rune that is not all there.
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

// flush shows what was left of a rune. The caller has the lock.
func (s *Screen) flush() {
	tail := string(s.tail)
	s.tail = nil
	s.put(escape(tail, "", people))
}

// put writes what is fit for a terminal.
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

// line shows one line. Its colours are made here and nowhere else.
func (s *Screen) line(colored bool, spans ...span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.put(painted(colored, spans) + "\n")
}

// block shows the lines of a text, each behind an indent, in one write: outputs
// of hosts may have a million.
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

// redraw puts lines where the last drawn ones are, whose end the cursor is
// at, and leaves it at the end of the new ones. Without any it only erases.
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

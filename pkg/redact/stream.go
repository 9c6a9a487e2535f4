package redact

import (
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// reach is the maximum length of a secret that is found regardless of where a text is split.
	reach = 32 << 10
	// block is the number of bytes processed at a time.
	block = 64 << 10
	// maxHeld is the maximum number of bytes held back if there is no place to split.
	maxHeld = 1 << 20
)

// Writer forwards everything that is written to it with the secrets masked, including secrets that are split over
// several writes. Close writes the held bytes; it does not close to.
type Writer struct {
	set  *Set
	to   io.Writer
	held []byte
}

// NewWriter returns a Writer for one text.
func (s *Set) NewWriter(to io.Writer) *Writer { return &Writer{set: s, to: to} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), block)
		w.held = append(w.held, rest[:n]...)
		rest = rest[n:]
		if len(w.held) < block+2*reach {
			continue
		}
		if err := w.pass(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// pass writes the held bytes except for the end, where a secret may begin.
func (w *Writer) pass() error {
	text := string(w.held)
	at := w.set.SafeCut(text, len(text)-2*reach, len(text)-reach)
	if at == len(text) && len(text) < maxHeld {
		return nil
	}
	if _, err := io.WriteString(w.to, w.set.Text(text[:at])); err != nil {
		return err
	}
	w.held = append(w.held[:0], w.held[at:]...)
	return nil
}

// Close writes the rest.
func (w *Writer) Close() error {
	_, err := io.WriteString(w.to, w.set.Text(string(w.held)))
	w.held = nil
	return err
}

// SafeCut returns a position in text between at and before, soon after at, that splits neither a secret nor a
// character. If there is none, it returns the length of the text. A secret that text only contains the beginning of
// is not detected: before must be further from the end than the length of a secret.
func (s *Set) SafeCut(text string, at, before int) int {
	at, before = max(0, min(at, len(text))), min(before, len(text))
	whole := s.Text(text)
	for step := 1; at < before; step *= 2 {
		if end := strings.IndexByte(text[at:before], '\n'); end >= 0 && whole != text {
			at += end + 1 // most secrets are on one line
		}
		for at < before && !utf8.RuneStart(text[at]) {
			at++
		}
		if at < before && (whole == text || s.Text(text[:at])+s.Text(text[at:]) == whole) {
			return at
		}
		at += step
	}
	return len(text)
}

package connector

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// endless prints the same text until its context ends.
type endless struct{ text string }

func (endless) Close() error { return nil }

func (e endless) Run(ctx context.Context, c Command) (Exit, error) {
	for ctx.Err() == nil {
		for _, w := range []io.Writer{c.Stdout, c.Stderr} {
			if _, err := io.WriteString(w, e.text); err != nil {
				return Exit{}, err
			}
		}
	}
	return Exit{}, ctx.Err()
}

func TestCollectEndsWhatAnswersTooMuch(t *testing.T) {
	for _, text := range []string{"x", strings.Repeat("line\n", 9000)} {
		_, err := Collect(context.Background(), endless{text}, Command{Line: "cat /dev/zero"}, 3<<20)
		if large := (*TooMuchError)(nil); !errors.As(err, &large) || err.Error() != "the host's answer is larger than 3 MiB" {
			t.Errorf("%v", err)
		}
	}
}

// Whatever a shell that stays prints, no more than a chunk of it is held.
func TestFrameHoldsLittle(t *testing.T) {
	const mark = "kk-0123456789abcdef"
	chunk := strings.Repeat("x", 32<<10)
	for name, c := range map[string]struct{ before, endless string }{
		"no first line":                 {"", chunk},
		"half a first line":             {mark, chunk},
		"marks without an end":          {"", strings.Repeat(mark, 2000)},
		"a line without an end":         {mark + "\n", chunk},
		"a last line without an end":    {mark + "\n\n" + mark + " ", strings.Repeat("1", 32<<10)},
		"beginnings of the last line":   {mark + "\n", strings.Repeat("\n"+mark, 2000)},
		"text after the end of a frame": {mark + "\n\n" + mark + " 0\n", chunk},
	} {
		f := &frame{}
		ended := f.open(mark, io.Discard)
		if _, err := io.WriteString(f, c.before); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			if _, err := io.WriteString(f, c.endless); err != nil {
				t.Fatal(err)
			}
			if len(f.held) > 64 || cap(f.held) > 256<<10 {
				t.Fatalf("%s: %d bytes are held, room for %d", name, len(f.held), cap(f.held))
			}
		}
		if name == "a last line without an end" {
			if status := <-ended; status != 255 {
				t.Errorf("%s: status %d", name, status)
			}
		}
	}
	a := &putAnswer{}
	for range 40 {
		if _, err := io.WriteString(a, chunk); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.line) > 64<<10 {
		t.Errorf("the answer of a put: %d bytes are held", len(a.line))
	}
}

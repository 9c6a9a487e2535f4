package redact

import (
	"slices"
	"strings"
	"testing"
)

const aSecret = "correct-horse-battery-staple"

// writtenInParts returns the output of a Writer for a text that is written in parts of a size.
func writtenInParts(t *testing.T, set *Set, text string, size int) string {
	t.Helper()
	var out strings.Builder
	w := set.NewWriter(&out)
	for part := range slices.Chunk([]byte(text), size) {
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A secret is hidden regardless of where it is split into parts.
func TestWriterHidesSecretsInParts(t *testing.T) {
	var set Set
	lines := "first line of it\nab\nthird line of it\n"
	set.Add(aSecret, lines)
	text := strings.Repeat("x", 7) + aSecret + "\n" + lines +
		strings.Repeat("yy "+aSecret+" zz\n", 9000) + strings.Repeat("é", 70000) + aSecret
	want := set.Text(text)
	for _, size := range []int{1, 13, 4096, block + reach, len(text)} {
		if got := writtenInParts(t, &set, text, size); got != want {
			t.Errorf("parts of %d: %d bytes, want %d; the secret is there: %v",
				size, len(got), len(want), strings.Contains(got, aSecret))
		}
	}
}

// Nothing of a secret is written, even if a part ends in the middle of it.
func TestWriterHidesWhatPartsDivide(t *testing.T) {
	for _, end := range []string{"\n", " ", ""} {
		text := strings.Repeat(aSecret+end, 12000)
		for size := 70001; size < 70031; size += 5 {
			var set Set
			set.Add(aSecret)
			got := writtenInParts(t, &set, text, size)
			if i := strings.Index(got, "horse"); i >= 0 {
				t.Fatalf("parts of %d, divided by %q: %q", size, end, got[max(0, i-50):i+50])
			}
		}
	}
}

// The number of bytes held back is limited for any input.
func TestWriterHoldsLittle(t *testing.T) {
	var set Set
	set.Add(aSecret)
	w := set.NewWriter(&strings.Builder{})
	for range 50 {
		if _, err := w.Write([]byte(strings.Repeat(aSecret, 1000))); err != nil {
			t.Fatal(err)
		}
		if len(w.held) > maxHeld+block {
			t.Fatalf("%d bytes are held back", len(w.held))
		}
	}
}

func TestSafeCut(t *testing.T) {
	var set Set
	set.Add(aSecret)
	text := "é 12345 " + aSecret + " end"
	start := strings.Index(text, aSecret)
	for at, want := range map[int]int{
		-1: 0, 0: 0, 1: 2, 5: 5, start: start, len(text) - 2: len(text) - 2, len(text): len(text), len(text) + 9: len(text),
	} {
		if got := set.SafeCut(text, at, len(text)); got != want {
			t.Errorf("from %d: %d, want %d", at, got, want)
		}
	}
	for at := start + 1; at < start+len(aSecret); at++ {
		if got := set.SafeCut(text, at, len(text)); got < start+len(aSecret) {
			t.Errorf("from %d: %d is inside of the secret", at, got)
		}
	}
	var none *Set
	if got := none.SafeCut("abc", 1, 3); got != 1 {
		t.Errorf("without secrets: %d", got)
	}
}

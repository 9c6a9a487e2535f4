package exec

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCaptureKeepsTheEnd(t *testing.T) {
	var lock sync.Mutex
	lines := 0
	c := &capture{limit: 200 << 10, lock: &lock, emit: func(string) { lines++ }}
	text := strings.Repeat("0123456789abcde\n", 1<<16) // 1 MiB
	for i := 0; i < len(text); i += 1000 {
		if _, err := c.Write([]byte(text[i:min(len(text), i+1000)])); err != nil {
			t.Fatal(err)
		}
	}
	if c.warning("stdout") == "" {
		t.Error("no warning about what was dropped")
	}
	got := c.text()
	if len(got) < 190<<10 || len(got) > 300<<10 {
		t.Errorf("kept %d bytes", len(got))
	}
	if !strings.HasSuffix(text, got) || !strings.HasPrefix(got, "0123") {
		t.Error("what is kept is not whole lines from the end")
	}
	if lines != 1<<16 {
		t.Errorf("passed on %d lines", lines)
	}
}

func TestCaptureOfShortOutput(t *testing.T) {
	c := &capture{limit: 10}
	for _, s := range []string{"abc\n", "", "defghijklmnop"} {
		if _, err := c.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.text(); got != "abc\ndefghijklmnop" || c.warning("x") != "" {
		t.Errorf("got %q, warning %q", got, c.warning("x"))
	}
}

func TestCaptureBreaksEndlessLines(t *testing.T) {
	var lock sync.Mutex
	n := 0
	c := &capture{limit: keep, lock: &lock, emit: func(string) { n++ }}
	for range 3 {
		if _, err := c.Write(make([]byte, longestLine)); err != nil {
			t.Fatal(err)
		}
	}
	if n != 3 {
		t.Errorf("passed on %d pieces, want 3", n)
	}
}

func TestDelta(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                         "0:00:00.000000",
		-time.Second:              "0:00:00.000000",
		4613 * time.Microsecond:   "0:00:00.004613",
		90*time.Minute + 1:        "1:30:00.000000",
		25 * time.Hour:            "1 day, 1:00:00.000000",
		49*time.Hour + 61*1000000: "2 days, 1:00:00.061000",
	} {
		if got := delta(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

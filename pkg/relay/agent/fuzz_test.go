package agent

import (
	"bufio"
	"strings"
	"testing"
)

// FuzzPeerLines reads what other hosts send first: a request, and an answer to one.
func FuzzPeerLines(f *testing.F) {
	for _, line := range []string{"get sha256:" + strings.Repeat("0a", 32), "get sha256:../../etc/passwd", "ok 5", "ok -5",
		"ok 99999999999999999999", "no not verified here", "GET / HTTP/1.1", strings.Repeat("x", 10_000), ""} {
		f.Add(line + "\n")
	}
	f.Fuzz(func(t *testing.T, text string) {
		line, err := readText(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		if len(line) >= maxText || strings.Contains(line, "\n") {
			t.Fatalf("a line of %d bytes", len(line))
		}
		if name, err := parseGet(line); err == nil && (len(name) != 64 || strings.ContainsAny(name, "/.")) {
			t.Fatalf("%q asks for %q", line, name)
		}
		if size, err := parseOffer(line); err == nil && size < 0 {
			t.Fatalf("%q offers %d bytes", line, size)
		}
	})
}

package ssh_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/connector"
)

// trips counts round trips rather than time: over a proxy that holds every
// packet for half of rtt, n round trips take at least n and less than n+1 times rtt,
// as long as rtt is long against the work.
func trips(t *testing.T, rtt time.Duration, f func()) int {
	t.Helper()
	best := 1 << 30
	for range 3 { // a busy machine makes it look like more, never like less
		start := time.Now()
		f()
		best = min(best, int(time.Since(start)/rtt))
		time.Sleep(3 * rtt) // until the next session is open
	}
	return best
}

func TestRoundTrips(t *testing.T) {
	const rtt = 200 * time.Millisecond
	_, o := through(t, rtt)
	h := connect(t, o)
	mustRun(t, h, "true", "")
	time.Sleep(3 * rtt)
	dir := t.TempDir()
	big := bytes.Repeat([]byte("x"), 100_000)
	content := 0
	put := func(c []byte) func() {
		return func() {
			content++
			f := connector.File{Path: filepath.Join(dir, "f"), Size: -1}
			_, err := connector.Put(context.Background(), h, f, bytes.NewReader(append(c, byte(content))))
			if err != nil {
				t.Error(err)
			}
		}
	}
	// Input needs a second round trip: OpenSSH opens a window with the start of the command.
	for name, tc := range map[string]struct {
		most int
		f    func()
	}{
		"a command": {1, func() { mustRun(t, h, "/bin/true", "") }},
		"a command with input": {2, func() {
			_, _ = h.Run(context.Background(), connector.Command{Line: "cat", Stdin: strings.NewReader("x")})
		}},
		"put, small": {2, put([]byte("small"))},
		"put, big":   {2, put(big)},
		"get": {1, func() {
			var b bytes.Buffer
			if _, err := connector.Get(context.Background(), h, filepath.Join(dir, "g"), &b, nil); err != nil {
				t.Error(err)
			}
		}},
	} {
		if err := os.WriteFile(filepath.Join(dir, "g"), []byte("get me"), 0o600); err != nil {
			t.Fatal(err)
		}
		if n := trips(t, rtt, tc.f); n > tc.most {
			t.Errorf("%s took %d round trips, want %d", name, n, tc.most)
		}
	}
}

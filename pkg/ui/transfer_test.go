package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/event"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
)

// screen is what a terminal makes of output: text, line ends, and the
// sequences that the status uses.
type screen struct {
	lines    [][]rune
	row, col int
}

func (s *screen) Write(b []byte) (int, error) {
	text := []rune(string(b))
	for i := 0; i < len(text); i++ {
		for len(s.lines) <= s.row {
			s.lines = append(s.lines, nil)
		}
		switch r := text[i]; r {
		case '\n':
			s.row, s.col = s.row+1, 0 // as terminals are set: it goes to the first column too
		case '\r':
			s.col = 0
		case '\x1b':
			n := 0
			for i += 2; text[i] >= '0' && text[i] <= '9'; i++ {
				n = 10*n + int(text[i]-'0')
			}
			switch text[i] {
			case 'A':
				s.row -= n
			case 'K':
				s.lines[s.row] = s.lines[s.row][:min(s.col, len(s.lines[s.row]))]
			case 'J':
				s.lines = s.lines[:s.row+1]
				s.lines[s.row] = s.lines[s.row][:min(s.col, len(s.lines[s.row]))]
			default:
				return 0, fmt.Errorf("unknown sequence %q", text[i])
			}
		default:
			s.lines[s.row] = append(s.lines[s.row][:s.col], r)
			s.col++
		}
	}
	return len(b), nil
}

func (s *screen) String() string {
	var b strings.Builder
	for _, line := range s.lines {
		b.WriteString(string(line) + "\n")
	}
	return b.String()
}

func TestTransfers(t *testing.T) {
	var out screen
	now := start
	o := Options{Out: &out, Err: &out, TTY: true, Width: func() int { return 81 }, Redact: &redact.Set{},
		Now: func() time.Time { return now }}
	o.Redact.Add("hunter22")
	p := newPrinter(o)
	p.status.stop() // it is drawn when the test says so
	task := &event.Task{ID: 1, Name: "Download", Action: "download"}
	shows := func(when, want string) {
		t.Helper()
		p.mu.Lock()
		p.status.draw()
		p.mu.Unlock()
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), out.String()); diff != "" {
			t.Errorf("%s: -want +got\n%s", when, diff)
		}
	}
	tell := func(what string, done, total int64) {
		p.Emit(event.Progress{Task: task, Host: "h1", What: what, Done: done, Total: total})
	}
	p.Emit(event.HostStarted{Task: task, Host: "h1", Time: start})
	tell("etcd.tar", 0, 4<<20)
	tell("no-end", 0, -1)
	shows("files that began just now", "0:00 | h1 | Download\n")

	now = now.Add(2 * time.Second)
	tell("etcd.tar", 1<<20, 4<<20)
	tell("no-end", 3<<20, -1)
	tell("resumed", 1<<20, 2<<20)
	now = now.Add(2 * time.Second)
	tell("resumed", 3<<19, 2<<20)
	shows("files in flight", `
  [=====               ]  25%    4.0 MiB  256.0 KiB/s  h1: etcd.tar
  [                    ]         3.0 MiB  768.0 KiB/s  h1: no-end
  [===============     ]  75%    2.0 MiB  256.0 KiB/s  h1: resumed
0:04 | h1 | Download
`)

	p.Emit(event.Warning{Diagnostic: source.Errorf(source.Pos{}, "a warning")})
	tell("etcd.tar", 4<<20, 4<<20)
	tell("resumed", 0, 2<<20) // starts again
	now = now.Add(time.Second)
	tell("resumed", 1<<20, 2<<20)
	shows("below other output", `
[WARNING]: a warning
  [                    ]         3.0 MiB  614.4 KiB/s  h1: no-end
  [==========          ]  50%    2.0 MiB    1.0 MiB/s  h1: resumed
0:05 | h1 | Download
`)

	for i := range 8 {
		tell(fmt.Sprintf("hunter22-%d", i), 1, 2)
	}
	now = now.Add(time.Second)
	shows("more than there is room for", `
[WARNING]: a warning
  [                    ]         3.0 MiB  512.0 KiB/s  h1: no-end
  [==========          ]  50%    2.0 MiB  512.0 KiB/s  h1: resumed
  [==========          ]  50%        2 B        0 B/s  h1: ********-0
  [==========          ]  50%        2 B        0 B/s  h1: ********-1
  [==========          ]  50%        2 B        0 B/s  h1: ********-2
  [==========          ]  50%        2 B        0 B/s  h1: ********-3
  and 4 more
0:06 | h1 | Download
`)

	release := p.Hold()
	shows("while a person is asked", "[WARNING]: a warning\n\n")
	release()
	p.Emit(event.HostStarted{Task: task, Host: "h2", Time: now})
	p.Emit(event.HostResult{Task: task, Host: "h1", Status: event.OK})
	shows("when their host is done", `
[WARNING]: a warning

TASK [Download] `+strings.Repeat("*", 65)+`
ok: [h1]
0:00 | h2 | Download
`)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// Without a terminal nothing is printed about a transfer.
func TestTransfersWithoutTerminal(t *testing.T) {
	var out lockedBuffer
	p := newPrinter(Options{Out: &out, Err: &out, Redact: &redact.Set{}, Now: time.Now})
	p.Emit(event.Progress{Task: &event.Task{ID: 1}, Host: "h1", What: "file", Done: 1, Total: 2})
	if got := out.String(); got != "" {
		t.Errorf("it prints %q", got)
	}
}

package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kubekey/pkg/event"
)

// redraw is the minimum time between updates of the status line.
const redraw = 100 * time.Millisecond

// status is the live part below the output on a terminal: a line for each transfer, and one that
// shows which host runs which task, for how long, and its last output. The printer's lock guards
// it.
type status struct {
	p         *printer
	running   []*busy // in the order in which they began
	transfers transfers
	drawn     int // lines on the screen
	held      int // number of holds on the status line
	quit      chan struct{}
	gone      chan struct{}
}

// busy is one host that runs a task.
type busy struct {
	host, task, item string
	id               int
	since            time.Time
	last             string // line of output
}

func newStatus(p *printer) *status {
	s := &status{p: p, quit: make(chan struct{}), gone: make(chan struct{})}
	go s.loop()
	return s
}

func (s *status) loop() {
	defer close(s.gone)
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-tick.C:
			s.p.mu.Lock()
			s.draw()
			s.p.mu.Unlock()
		}
	}
}

// stop stops the goroutine and waits for it. It may be called more than once.
func (s *status) stop() {
	select {
	case <-s.quit:
	default:
		close(s.quit)
	}
	<-s.gone
}

// follow tracks which hosts are busy.
func (s *status) follow(e event.Event) {
	s.transfers.follow(e, s.p.o.Now())
	switch e := e.(type) {
	case event.HostStarted:
		s.begin(e)
	case event.Output:
		s.say(e.Task, e.Host, e.Line)
	case event.HostResult:
		if e.Item == nil {
			s.end(e.Task.ID, e.Host)
		}
	case event.PlayEnded, event.NoMoreHosts, event.RunEnded:
		s.running = nil
	}
}

func (s *status) begin(e event.HostStarted) {
	since := s.p.timeOr(e.Time)
	if b := s.find(e.Task.ID, e.Host); b != nil {
		b.item, b.last = e.Item, ""
		return
	}
	s.running = append(s.running, &busy{host: e.Host, task: title(e.Task), item: e.Item, id: e.Task.ID, since: since})
}

func (s *status) find(id int, host string) *busy {
	for _, b := range s.running {
		if b.id == id && b.host == host {
			return b
		}
	}
	return nil
}

func (s *status) say(t *event.Task, host, text string) {
	if b := s.find(t.ID, host); b != nil && strings.TrimSpace(text) != "" {
		b.last = text
	}
}

func (s *status) end(id int, host string) {
	s.running = slices.DeleteFunc(s.running, func(b *busy) bool { return b.id == id && b.host == host })
}

// Size formats a number of bytes: 1.5 MiB.
func Size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	div, exp := int64(unit), 0
	for m := n / unit; m >= unit; m /= unit {
		div *= unit
		exp++
	}
	return fmt.Sprintf("%.1f %ciB", float64(n)/float64(div), "KMGTPE"[exp])
}

// clear removes the lines from the screen.
func (s *status) clear() {
	if s.drawn > 0 {
		s.p.out.redraw(s.drawn, false, "", nil)
		s.drawn = 0
	}
}

// erase moves to the first of the lines that end at the cursor, and clears the screen from
// there.
func erase(lines int) string {
	if lines <= 1 {
		return "\r\x1b[K"
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", lines-1)
}

func (s *status) draw() {
	if len(s.running) == 0 || s.held > 0 {
		s.clear()
		return
	}
	width := 79
	if s.p.o.Width != nil && s.p.o.Width() > 1 {
		width = s.p.o.Width() - 1 // the last column would wrap on some terminals
	}
	lines := append(s.transfers.lines(s.p.o.Now()), s.line())
	for i, line := range lines {
		lines[i] = fit(Inline(s.p.o.Redact.Text(line)), width)
	}
	s.p.out.redraw(s.drawn, s.p.o.Color, darkGray, lines)
	s.drawn = len(lines)
}

// shownHosts is how many running hosts the line names.
const shownHosts = 3

// line describes the host that has been busy longest, and names others.
func (s *status) line() string {
	oldest := s.running[0]
	var names []string
	for _, b := range s.running {
		if b.id == oldest.id && len(names) < shownHosts {
			names = append(names, b.host)
		}
	}
	hosts := strings.Join(names, ", ")
	if more := len(s.running) - len(names); more > 0 {
		hosts += fmt.Sprintf(" +%d", more)
	}
	text := fmt.Sprintf("%s | %s | %s", elapsed(s.p.o.Now().Sub(oldest.since)), hosts, oldest.task)
	if oldest.item != "" {
		text += " (" + oldest.item + ")"
	}
	if oldest.last != "" {
		text += " | " + oldest.last
	}
	return text
}

func elapsed(d time.Duration) string {
	s := max(0, int(d.Seconds()))
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

package ui

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// printer shows a run as text. The status line is drawn from a separate goroutine, so everything
// that writes holds the lock.
type printer struct {
	o        Options
	out, err *Screen
	mu       sync.Mutex
	status   *status // nil without a terminal
	times    timing
	failed   failures
	warned   map[string]bool
	play     string // name of the play whose banner is the last thing shown
	task     int    // ID of the task whose banner is the last one shown
	lastMeta int    // ID of the meta task that a host was last shown for
}

func newPrinter(o Options) *printer {
	p := &printer{o: o, out: NewScreen(o.Out), err: NewScreen(o.Err), warned: map[string]bool{}}
	p.failed.hide = o.Redact.Text
	if o.TTY {
		p.status = newStatus(p)
	}
	return p
}

// Close removes the status line from the screen.
func (p *printer) Close() error {
	if p.status == nil {
		return nil
	}
	p.status.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.clear()
	return nil
}

// Hold hides the status line until release is called.
func (p *printer) Hold() (release func()) {
	if p.status == nil {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.held++
	p.status.clear()
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.status.held--
	})
}

// Emit shows one event.
func (p *printer) Emit(e event.Event) {
	if event.Recalled(e) {
		return // it was shown when it happened
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status != nil {
		p.status.follow(e)
	}
	p.failed.follow(e)
	banner := p.play
	if _, quiet := e.(event.Warning); !quiet {
		p.play = ""
	}
	switch e := e.(type) {
	case event.RunStarted:
		p.times.begin(p.timeOr(e.Time))
	case event.PlaybookStarted:
		p.playbook(e)
	case event.PlayStarted:
		p.playBanner(e.Name)
	case event.BatchStarted:
		p.playBanner(e.Name)
	case event.PlayEmpty:
		p.empty(e, banner)
	case event.NoMoreHosts:
		if p.o.Format != Ansible || e.Aborted { // Ansible does not print it for hosts that failed by themselves
			p.banner("NO MORE HOSTS LEFT")
		}
	case event.TaskStarted:
		p.taskStarted(e)
	case event.Output:
		p.output(e)
	case event.Retry:
		p.retry(e)
	case event.Async:
		p.async(e)
	case event.HostResult:
		p.result(e)
	case event.Included:
		p.included(e)
	case event.Notified:
		p.verbose(2, blue, fmt.Sprintf("NOTIFIED HANDLER %s for %s", e.Handler, e.Host))
	case event.MetaRan:
		p.meta(e)
	case event.Warning:
		p.warning(e.Diagnostic.Error())
	case event.RunEnded:
		p.recap(e)
	}
}

// timeOr is the time of an event, or the current time.
func (p *printer) timeOr(t time.Time) time.Time {
	if t.IsZero() {
		return p.o.Now()
	}
	return t
}

// print shows text on one line, secrets hidden, whatever characters it contains.
func (p *printer) print(c color, text string) { p.line(p.out, span{c, text}) }

func (p *printer) line(to *Screen, spans ...span) {
	for i := range spans {
		spans[i].text = p.o.Redact.Text(spans[i].text)
	}
	p.put(to, spans...)
}

// put shows one line that contains no secrets.
func (p *printer) put(to *Screen, spans ...span) {
	if p.status != nil {
		p.status.clear()
	}
	to.line(p.o.Color, spans...)
}

// block shows the lines of a text below its heading, each with an indent, so that none looks
// like one of kk.
func (p *printer) block(c color, indent, text string) {
	if p.status != nil {
		p.status.clear()
	}
	p.out.block(p.o.Color, c, indent, p.o.Redact.Text(text))
}

// json shows JSON after the start of a line. Its strings contain no line end, so its further
// lines begin with a blank or a brace.
func (p *printer) json(c color, head, text string) {
	first, rest, more := strings.Cut(text, "\n")
	p.print(c, head+first)
	if more {
		p.block(c, "", rest)
	}
}

// message shows a message of kk on the error stream, as Screen.Message does.
func (p *printer) message(c color, text string) {
	for line := range strings.SplitSeq(continued(p.o.Redact.Text(text)), "\n") {
		p.put(p.err, span{c, line})
	}
}

func (p *printer) verbose(level int, c color, text string) {
	if p.o.Verbosity >= level {
		p.print(c, text)
	}
}

// columns is the width of banners and warnings.
func (p *printer) columns() int {
	if p.o.Width == nil {
		return 79
	}
	return max(79, p.o.Width()-1)
}

func (p *printer) banner(text string) {
	text = Inline(strings.TrimSpace(p.o.Redact.Text(text)))
	stars := max(3, p.columns()-textWidth(text))
	p.print("", "")
	p.print("", text+" "+strings.Repeat("*", stars))
}

func (p *printer) playbook(e event.PlaybookStarted) {
	if p.o.Verbosity < 2 {
		return
	}
	p.banner("PLAYBOOK: " + filepath.Base(e.Path))
	p.print(blue, fmt.Sprintf("%d plays in %s", e.Plays, e.Path))
}

func (p *printer) playBanner(name string) {
	if name == "" {
		p.banner("PLAY")
	} else {
		p.banner("PLAY [" + name + "]")
	}
	p.play = name
}

func (p *printer) empty(e event.PlayEmpty, banner string) {
	if banner != e.Name || banner == "" {
		p.playBanner(e.Name)
	}
	p.print(cyan, "skipping: no hosts matched")
}

// title is the name of a task in banners: with its role.
func title(t *event.Task) string {
	name := t.Name
	if name == "" {
		name = t.Action
	}
	if t.Role != "" {
		return t.Role + " : " + name
	}
	return name
}

func (p *printer) taskStarted(e event.TaskStarted) {
	if !p.o.NoSkipped {
		p.taskBanner(e.Task)
	}
	line := p.times.task(Inline(title(e.Task)), p.timeOr(e.Time))
	if p.o.Timing {
		p.print("", line)
	}
}

func (p *printer) taskBanner(t *event.Task) {
	kind := "TASK"
	if t.Handler {
		kind = "RUNNING HANDLER"
	}
	p.banner(kind + " [" + title(t) + "]")
	p.task = t.ID
	if t.At.IsValid() {
		p.verbose(2, darkGray, fmt.Sprintf("task path: %s:%d", t.At.File.Name, t.At.Line))
	}
}

// under repeats a task's banner if another one was shown in between: hosts need not be at the
// same task.
func (p *printer) under(t *event.Task) {
	if p.task != t.ID {
		p.taskBanner(t)
	}
}

// output shows what a command prints while it runs. Ansible does not have this.
func (p *printer) output(e event.Output) {
	if p.o.Format == Ansible || p.o.Verbosity < 1 {
		return // outputs can be large: format only what is shown
	}
	c := darkGray
	if e.Stderr {
		c = red
	}
	p.verbose(1, c, e.Host+" | "+e.Line)
}

func (p *printer) retry(e event.Retry) {
	p.under(e.Task)
	text := fmt.Sprintf("FAILED - RETRYING: [%s]: %s (%d retries left).", e.Host, title(e.Task), e.Left)
	if p.o.Verbosity > 2 {
		p.json(darkGray, text+"Result was: ", p.dump(e.Result, false))
		return
	}
	p.print(darkGray, text)
}

// async shows a status check of a task in the background, where Ansible does; else the status
// line shows it.
func (p *printer) async(e event.Async) {
	if p.o.Format != Ansible {
		return
	}
	p.under(e.Task)
	switch e.State {
	case event.AsyncRuns:
		p.print(darkGray, fmt.Sprintf("ASYNC POLL on %s: jid=%s started=1 finished=0", e.Host, e.Job))
	case event.AsyncOK:
		p.print(darkGray, fmt.Sprintf("ASYNC OK on %s: jid=%s", e.Host, e.Job))
	default:
		p.print(darkGray, fmt.Sprintf("ASYNC FAILED on %s: jid=%s", e.Host, e.Job))
	}
}

func (p *printer) included(e event.Included) {
	p.under(e.Task)
	text := fmt.Sprintf("included: %s for %s", e.Path, strings.Join(e.Hosts, ", "))
	if e.Item != nil {
		text += fmt.Sprintf(" => (item=%s)", e.Item.Label)
	}
	p.print(cyan, text)
}

func (p *printer) meta(e event.MetaRan) {
	if e.Task == nil {
		return
	}
	if p.o.Format == Ansible && p.lastMeta == e.Task.ID && !p.o.NoSkipped {
		p.taskBanner(e.Task) // Ansible repeats it for each host
	}
	p.lastMeta = e.Task.ID
	if e.Skipped == "" {
		p.verbose(2, blue, "META: "+e.Message)
		return
	}
	p.verbose(2, blue, "META: "+e.Skipped)
	p.result(event.HostResult{Task: e.Task, Host: e.Host, Status: event.Skipped,
		Result: value.NewDict("msg", e.Message, "skip_reason", e.Skipped)})
}

// warning shows a text once.
func (p *printer) warning(text string) {
	text = p.o.Redact.Text(text)
	if p.warned[text] {
		return
	}
	p.warned[text] = true
	for i, line := range wrap("[WARNING]: "+visible(text), p.columns()) {
		if i > 0 {
			line = hanging + line
		}
		p.put(p.err, span{brightPurple, line})
	}
}

// trace is the includes that led to a task: "in role web (site.yml:3), ...".
func trace(frames []source.Frame) string {
	parts := make([]string, len(frames))
	for i, f := range frames {
		parts[i] = f.What
		if f.At.IsValid() {
			parts[i] += fmt.Sprintf(" (%s:%d)", f.At.File.Name, f.At.Line)
		}
	}
	return strings.Join(parts, ", ")
}

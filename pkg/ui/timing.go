package ui

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"kubekey/pkg/event"
)

// timing is the durations of tasks, from the start of each to the start of the next.
type timing struct {
	start, last time.Time
	tasks       []taskTime
}

type taskTime struct {
	name string
	took time.Duration
}

func (t *timing) begin(at time.Time) { t.start, t.last = at, at }

// account ends the latest task.
func (t *timing) account(at time.Time) {
	if n := len(t.tasks); n > 0 {
		t.tasks[n-1].took = at.Sub(t.last)
	}
}

// task begins a task, and returns the line that shows the time since the previous one began and
// since the run began.
func (t *timing) task(name string, at time.Time) string {
	if t.start.IsZero() {
		t.begin(at)
	}
	t.account(at)
	line := stampLine(at, at.Sub(t.last), at.Sub(t.start))
	t.last = at
	t.tasks = append(t.tasks, taskTime{name: name})
	return line
}

func stampLine(at time.Time, delta, total time.Duration) string {
	text := fmt.Sprintf("%s (%s)       %s ", at.Format("Monday 02 January 2006  15:04:05 -0700"), clock(delta),
		clock(total))
	return text + strings.Repeat("*", max(3, 79-len(text))) + " "
}

// clock is a duration as h:mm:ss.mmm.
func clock(d time.Duration) string {
	ms := max(0, d.Milliseconds())
	return fmt.Sprintf("%d:%02d:%02d.%03d", ms/3600000, ms/60000%60, ms/1000%60, ms%1000)
}

// slowest is how many tasks the summary lists.
const slowest = 20

func (p *printer) timings(e event.RunEnded) {
	at := p.timeOr(e.Time)
	p.times.account(at)
	p.print("", stampLine(at, at.Sub(p.times.last), at.Sub(p.times.start)))
	p.print("", strings.Repeat("=", 79)+" ")
	tasks := append([]taskTime(nil), p.times.tasks...)
	sort.SliceStable(tasks, func(i, j int) bool { return tasks[i].took > tasks[j].took })
	for _, t := range tasks[:min(slowest, len(tasks))] {
		name, took := t.name+" ", fmt.Sprintf(" %.2fs", t.took.Seconds())
		fill := strings.Repeat("-", max(0, p.columns()-9-textWidth(name))+max(0, 9-len(took)))
		p.print("", name+fill+took)
	}
	s := int(at.Sub(p.times.start).Seconds())
	p.print("", fmt.Sprintf("Playbook run took %d days, %d hours, %d minutes, %d seconds", s/86400, s/3600%24, s/60%60,
		s%60))
}

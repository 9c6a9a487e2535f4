package ui

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/value"
)

// failures are the tasks that failed, with the play, hosts and reason of each.
type failures struct {
	hide func(string) string
	play string
	item map[string]string // by host: why its last item failed
	list []*failedTask
}

// failedTask is a task that failed on hosts for one reason.
type failedTask struct {
	play   string
	task   *event.Task
	reason string
	hosts  []string
}

// follow records failures from an event.
func (f *failures) follow(e event.Event) {
	switch e := e.(type) {
	case event.PlayStarted:
		f.play = e.Name
	case event.HostResult:
		switch {
		case e.Status < event.Failed:
		case e.Item != nil:
			if f.item == nil {
				f.item = map[string]string{}
			}
			f.item[e.Host] = f.reason(e)
		case !e.Ignored && !e.Rescued:
			f.add(e)
		}
	}
}

func (f *failures) add(e event.HostResult) {
	why := f.reason(e)
	if item := f.item[e.Host]; e.Loop && item != "" { // the loop's own message only says that items failed
		why = item
	}
	reasons, i := 0, -1
	for n, t := range f.list {
		if t.task.ID == e.Task.ID && t.play == f.play {
			reasons++
			if t.reason == why || reasons == atOnce {
				i = n
			}
		}
	}
	if i < 0 {
		i = len(f.list)
		f.list = append(f.list, &failedTask{play: f.play, task: e.Task, reason: why})
	}
	f.list[i].hosts = append(f.list[i].hosts, e.Host)
}

// reason is a failure in one line: its message, and the last line of a command's output. Secrets
// are hidden before it is truncated: half of one would be shown.
func (f *failures) reason(e event.HostResult) string {
	why, _, _ := strings.Cut(f.hide(message(e)), "\n")
	if v, ok := e.Result.Get("stderr"); ok {
		lines := strings.Split(strings.TrimSpace(f.hide(value.Str(v))), "\n")
		if last := lines[len(lines)-1]; !strings.Contains(why, last) {
			why += ": " + last
		}
	}
	if runes := []rune(why); len(runes) > reasonMax {
		return string(runes[:reasonMax]) + "…"
	}
	return why
}

// closing prints, below the recap, the failures, how to continue, and the slowest tasks. Ansible
// prints neither.
func (p *printer) closing(e event.RunEnded) {
	if p.o.Format == Ansible {
		return
	}
	if p.o.Slowest > 0 && !p.o.Timing {
		p.slowestTasks(e)
	}
	if e.ExitCode != 0 && p.o.Continue != "" && (len(p.failed.list) > 0 || p.failed.play != "") {
		p.goOn()
	}
}

// atOnce is the maximum number of names on a line, and of reasons for a task.
const atOnce = 8

// reasonMax is the maximum length of a reason, in characters.
const reasonMax = 300

func (p *printer) goOn() {
	if len(p.failed.list) == 0 {
		p.print(red, fmt.Sprintf("Stopped in %q.", p.failed.play))
	}
	play := ""
	for _, f := range p.failed.list {
		if f.play != play {
			play = f.play
			p.print(red, fmt.Sprintf("Failed in %q:", play))
		}
		p.print("", fmt.Sprintf("  %s on %s: %s", title(f.task), someOf(f.hosts), f.reason))
	}
	p.print("", "Continue with: "+p.o.Continue)
	p.print("", "")
}

func someOf(hosts []string) string {
	if more := len(hosts) - atOnce; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(hosts[:atOnce], ", "), more)
	}
	return strings.Join(hosts, ", ")
}

// slowestTasks lists the slowest tasks, if any took a second.
func (p *printer) slowestTasks(e event.RunEnded) {
	p.times.account(p.timeOr(e.Time))
	tasks := slices.DeleteFunc(slices.Clone(p.times.tasks), func(t taskTime) bool { return t.took.Seconds() < 1 })
	sort.SliceStable(tasks, func(i, j int) bool { return tasks[i].took > tasks[j].took })
	if len(tasks) == 0 {
		return
	}
	p.print("", fmt.Sprintf("Slowest tasks of %s:", clock(p.timeOr(e.Time).Sub(p.times.start))))
	for _, t := range tasks[:min(p.o.Slowest, len(tasks))] {
		p.print("", fmt.Sprintf("  %8.1fs  %s", t.took.Seconds(), t.name))
	}
	p.print("", "")
}

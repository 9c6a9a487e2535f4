package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/event"
	"kubekey/pkg/journal"
	"kubekey/pkg/value"
)

// timed is a result with its times in milliseconds after the start of the run.
type timed struct {
	task, host string
	from, to   int
	result     *value.Dict
	item       string
}

// recorded journals a run of results, in the order of their ends, that takes so many milliseconds.
func recorded(t *testing.T, took int, results ...timed) *recorder {
	t.Helper()
	r := newRecorder(t, "r1")
	r.play("Play", "a", "b", "c")
	tasks := map[string]*event.Task{}
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	for _, res := range results {
		r.at = at(res.from)
		if tasks[res.task] == nil {
			tasks[res.task] = r.task(res.task, "", "command")
		}
		if res.result == nil {
			res.result = value.NewDict("changed", false)
		}
		r.result(tasks[res.task], res.host, event.OK, time.Duration(res.to-res.from)*time.Millisecond, res.result,
			func(e *event.HostResult) {
				if res.item != "" {
					e.Item = &event.Item{Label: res.item}
				}
			})
	}
	r.at = at(took)
	r.end(0, map[string]*event.Stats{})
	return r
}

func job(id string, attempts int) *value.Dict {
	d := value.NewDict("ansible_job_id", id, "started", 1, "finished", min(attempts, 1))
	if attempts > 0 {
		d.Set("attempts", attempts)
	}
	return d
}

func TestCriticalPath(t *testing.T) {
	loop := value.NewDict("results", []any{job("j1", 0), job("j2", 0)})
	many := []timed{{task: "Begin", host: "a", from: 0, to: 4000}}
	for i := range 8 {
		many = append(many, timed{task: fmt.Sprintf("Look %d", i), host: "b", from: 4000 + 10*i, to: 4008 + 10*i})
	}
	many = append(many, timed{task: "Finish", host: "a", from: 4080, to: 9000})
	for name, c := range map[string]struct {
		took    int
		results []timed
		want    string
	}{
		"the host that ends last": {5000, []timed{
			{task: "Install", host: "a", from: 0, to: 1000}, {task: "Install", host: "b", from: 0, to: 3000},
			{task: "Write", host: "b", from: 3001, to: 4000}, {task: "Write", host: "a", from: 3002, to: 5000},
		}, "0 Install b 3002, 3002 Write a 1998"},
		"nothing runs": {9000, []timed{
			{task: "Install", host: "a", from: 500, to: 2000}, {task: "Write", host: "a", from: 6000, to: 8000},
		}, "0 - 500, 500 Install a 1500, 2000 - 4000, 6000 Write a 2000, 8000 - 1000"},
		"hosts that do not wait for each other": {9000, []timed{
			{task: "Install", host: "a", from: 0, to: 5000}, {task: "Install", host: "b", from: 0, to: 5004},
			{task: "Write", host: "b", from: 5004, to: 6000}, {task: "Write", host: "a", from: 5001, to: 9000},
		}, "0 Install a 5001, 5001 Write a 3999"},
		"few hosts at a time": {6000, []timed{
			{task: "Install", host: "a", from: 0, to: 2000}, {task: "Install", host: "b", from: 2001, to: 4000},
			{task: "Install", host: "c", from: 4001, to: 6000},
		}, "0 Install c 6000 3 hosts"},
		"a job that is waited for": {10_100, []timed{
			{task: "Before", host: "a", from: 0, to: 1000},
			{task: "Download", host: "a", from: 1000, to: 1100, result: job("j1", 0)},
			{task: "Prepare", host: "a", from: 1100, to: 3000},
			{task: "Wait", host: "a", from: 3000, to: 10_000, result: job("j1", 5)},
			{task: "After", host: "a", from: 10_000, to: 10_100},
		}, "0 Before a 1000, 1000 Download a 9000 job, 10000 After a 100"},
		"a job that ended before": {3200, []timed{
			{task: "Download", host: "a", from: 0, to: 100, result: job("j1", 0)},
			{task: "Prepare", host: "a", from: 100, to: 3000},
			{task: "Wait", host: "a", from: 3000, to: 3200, result: job("j1", 1)},
		}, "0 Download a 100, 100 Prepare a 2900, 3000 Wait a 200"},
		"a loop of jobs": {9000, []timed{
			{task: "Download", host: "a", from: 0, to: 100, item: "x", result: job("j1", 0)},
			{task: "Download", host: "a", from: 100, to: 200, item: "y", result: job("j2", 0)},
			{task: "Download", host: "a", from: 0, to: 200, result: loop},
			{task: "Prepare", host: "a", from: 200, to: 3000},
			{task: "Wait", host: "a", from: 3000, to: 8000, item: "x", result: job("j1", 4)},
			{task: "Wait", host: "a", from: 8000, to: 9000, item: "y", result: job("j2", 1)},
			{task: "Wait", host: "a", from: 3000, to: 9000},
		}, "0 Download a 9000 job"},
		"an unknown job": {3000, []timed{
			{task: "Wait", host: "a", from: 0, to: 3000, result: job("j9", 7)},
		}, "0 Wait a 3000"},
		"short tasks": {9000, many, "0 Begin a 4000, 4000 8 tasks 80, 4080 Finish a 4920"},
		"an include": {2000, []timed{{task: "Include", host: "a", from: 0, to: 0},
			{task: "Inside", host: "a", from: 1, to: 2000}}, "0 Inside a 2000"},
		"no task": {1000, nil, "0 - 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorded(t, c.took, c.results...)
			path, wrong, err := Critical(r.dir, journal.Last)
			if err != nil || len(wrong) > 0 {
				t.Fatal(err, wrong)
			}
			if diff := cmp.Diff(c.want, described(path)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			at := time.Duration(0)
			for _, s := range path.Steps {
				if s.From != at {
					t.Errorf("a step begins at %s, and the one before ends at %s", s.From, at)
				}
				at = s.From + s.Took
			}
			if at != path.Took {
				t.Errorf("the path ends at %s, the run took %s", at, path.Took)
			}
		})
	}
}

// described is a path in one line: when, what, on which host, how long, in milliseconds.
func described(p *CriticalPath) string {
	var out []string
	for _, s := range p.Steps {
		text := fmt.Sprintf("%d %s %s %d", s.From.Milliseconds(), s.Task, s.Host, s.Took.Milliseconds())
		switch {
		case s.Brief > 0:
			text = fmt.Sprintf("%d %d tasks %d", s.From.Milliseconds(), s.Brief, s.Took.Milliseconds())
		case s.Task == "":
			text = fmt.Sprintf("%d - %d", s.From.Milliseconds(), s.Took.Milliseconds())
		case s.Job:
			text += " job"
		case s.Hosts > 1:
			text += fmt.Sprintf(" %d hosts", s.Hosts)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// A run that was killed has the path up to its last event; the task that still ran is its end.
func TestCriticalPathOfAKilledRun(t *testing.T) {
	r := newRecorder(t, "r1")
	r.play("Play", "a")
	first := r.task("First", "os", "command")
	r.result(first, "a", event.OK, 2*time.Second, value.NewDict("changed", false))
	r.at = r.at.Add(2 * time.Second)
	second := r.task("Second", "", "command")
	r.w.Emit(event.HostStarted{Task: second, Host: "a", Time: r.at})
	r.close()
	path, _, err := Critical(r.dir, journal.Last)
	if err != nil {
		t.Fatal(err)
	}
	if len(path.Steps) == 0 || path.Steps[0].Task != "os : First" || path.Steps[0].Host != "a" {
		t.Errorf("the path is %+v", path)
	}
}

// A large run has its path at once.
func TestCriticalPathOfACrowd(t *testing.T) {
	path, _, err := Critical(crowd(t, 100, 60).dir, journal.Last)
	if err != nil {
		t.Fatal(err)
	}
	total := time.Duration(0)
	for _, s := range path.Steps {
		total += s.Took
	}
	if total != path.Took || len(path.Steps) < 20 {
		t.Errorf("%d steps of %s, and the run took %s", len(path.Steps), total, path.Took)
	}
}

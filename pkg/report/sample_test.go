package report

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/journal"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

var began = time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC)

// hostile is what a host or a playbook might say to break out of the page.
const hostile = "</script><img src=x onerror=\"window.pwned=1\"><!-- \u2028 ]]> @SCRIPT@ ${window.pwned=1} \x1b[2J\r\u009b\u202e\u200b\U000e0041\ufe0f"

// recorder journals a run whose events are emitted one by one.
type recorder struct {
	tb  testing.TB
	dir string
	w   *journal.Writer
	at  time.Time
	id  int
}

func newRecorder(tb testing.TB, id string) *recorder {
	tb.Helper()
	dir := tb.TempDir()
	w, err := journal.Open(dir, id, nil)
	if err != nil {
		tb.Fatal(err)
	}
	r := &recorder{tb: tb, dir: dir, w: w, at: began}
	w.Emit(event.RunStarted{ID: id, Time: began, Playbooks: []string{"/srv/site.yml"}, Diff: true, Version: "v1",
		User: "ann@desk", Command: "kk run site.yml"})
	return r
}

func (r *recorder) play(name string, hosts ...string) {
	r.w.Emit(event.PlayStarted{Name: name, Hosts: hosts, At: source.Pos{File: source.NewFile("site.yml", nil), Line: 1,
		Col: 3}})
}

func (r *recorder) task(name, role, action string) *event.Task {
	r.id++
	t := &event.Task{ID: r.id, Name: name, Role: role, Action: action,
		At: source.Pos{File: source.NewFile("site.yml", nil), Line: 3 * r.id, Col: 7}}
	r.w.Emit(event.TaskStarted{Task: t, Time: r.at})
	return t
}

func (r *recorder) result(t *event.Task, host string, status event.Status, took time.Duration, result *value.Dict,
	more ...func(*event.HostResult)) {
	e := event.HostResult{Task: t, Host: host, Status: status, Result: result, StartedAt: r.at, Duration: took}
	for _, change := range more {
		change(&e)
	}
	r.w.Emit(e)
}

func (r *recorder) end(code int, stats map[string]*event.Stats) {
	took := r.at.Sub(began)
	r.w.Emit(event.RunEnded{ID: "r1", Time: r.at, Duration: took, Stats: stats, ExitCode: code})
	r.close()
}

func (r *recorder) close() {
	if err := r.w.Close(); err != nil {
		r.tb.Fatal(err)
	}
}

// page writes the page of the run, and returns its path.
func (r *recorder) page() string {
	r.tb.Helper()
	path := filepath.Join(r.dir, "run.html")
	if _, err := Write(path, r.dir, journal.Last); err != nil {
		r.tb.Fatal(err)
	}
	return path
}

// story is a run of three hosts with a bit of everything.
func story(tb testing.TB) *recorder {
	tb.Helper()
	r := newRecorder(tb, "r1")
	hosts := []string{"web1", "web2", "db1"}
	r.play("Web servers", hosts...)
	install := r.task("Install", "web", "package")
	for i, h := range hosts {
		r.result(install, h, event.OK, time.Duration(i+1)*time.Second, value.NewDict("changed", false))
	}
	r.at = r.at.Add(4 * time.Second)
	write := r.task("Write "+hostile, "web", "copy")
	for _, h := range hosts[:2] {
		r.result(write, h, event.Changed, 300*time.Millisecond, value.NewDict("changed", true, "dest", "/etc/motd"),
			func(e *event.HostResult) {
				e.Diff = []event.Diff{{AfterHeader: "/etc/motd", Before: "old\nsame\n", After: "new\nsame\n" + hostile + "\n"}}
			})
	}
	r.result(write, "db1", event.Skipped, 0, value.NewDict("changed", false, "skipped", true))
	r.at = r.at.Add(time.Second)
	loop := r.task("Loop", "", "command")
	for i, label := range []string{"one", "two"} {
		r.result(loop, "web1", event.Changed, time.Second, value.NewDict("stdout", "said "+label), func(e *event.HostResult) {
			e.Item = &event.Item{Label: label, Index: i}
		})
	}
	r.result(loop, "web1", event.Changed, 0, value.NewDict("results", []any{}), func(e *event.HostResult) {
		e.Loop, e.StartedAt = true, time.Time{}
	})
	r.result(loop, "web2", event.Failed, time.Second, value.NewDict("msg", "non-zero return code", "rc", 3, "stdout",
		hostile, "stderr", "no space left"))
	r.result(loop, "db1", event.Unreachable, time.Second, value.NewDict("msg", "db1 does not answer"))
	r.at = r.at.Add(3 * time.Second)
	try := r.task("Try", "", "command")
	r.result(try, "web1", event.Failed, time.Second, value.NewDict("msg", "no"),
		func(e *event.HostResult) { e.Ignored = true })
	r.result(try, "web1", event.Failed, time.Second, value.NewDict("msg", "no"),
		func(e *event.HostResult) { e.Rescued = true })
	r.at = r.at.Add(time.Second)
	r.end(2, map[string]*event.Stats{"web1": {OK: 4, Changed: 2}, "web2": {OK: 2, Failed: 1},
		"db1": {OK: 1, Unreachable: 1}})
	return r
}

// crowd is a run of many hosts and tasks, as a large cluster has them.
func crowd(tb testing.TB, hosts, tasks int) *recorder {
	tb.Helper()
	r := newRecorder(tb, "r1")
	names := make([]string, hosts)
	for i := range names {
		names[i] = fmt.Sprintf("node-%03d", i+1)
	}
	roles := []string{"os", "containerd", "kubernetes", "cni", "storage"}
	verbs := []string{"Look at", "Install", "Configure", "Start", "Wait for", "Check"}
	stats := map[string]*event.Stats{}
	for _, n := range names {
		stats[n] = &event.Stats{OK: tasks}
	}
	for i := range tasks {
		if i%60 == 0 {
			r.play([]string{"Operating systems", "Container runtime", "Kubernetes", "Network", "Storage"}[i/60%5], names...)
		}
		role := roles[i/60%5]
		t := r.task(fmt.Sprintf("%s part %d of %s", verbs[i%6], i%60+1, role), role, "command")
		base := time.Duration(40+(i*7919)%400) * time.Millisecond
		if i%37 == 5 {
			base *= 12
		}
		slowest := time.Duration(0)
		for h, name := range names {
			n := (h*2654435761 + i*40503) % 1000
			took := base + base*time.Duration(n)/1500
			status, result := event.OK, value.NewDict("changed", false, "rc", 0, "stdout",
				fmt.Sprintf("part %d is as it should be on %s", i, name), "cmd", "systemctl is-active part")
			switch {
			case n < 3 && i > 20:
				status, result = event.Failed, value.NewDict("msg", "non-zero return code", "rc", 1, "stderr",
					fmt.Sprintf("part %d: no space left on device", i))
				stats[name].Failed++
			case i%6 == 2 && n < 700:
				status = event.Changed
				stats[name].Changed++
			case i%11 == 4 || n > 985:
				status, took, result = event.Skipped, time.Microsecond, value.NewDict("changed", false, "skipped", true,
					"skip_reason", "Conditional result was False")
			}
			slowest = max(slowest, took)
			r.result(t, name, status, took, result, func(e *event.HostResult) { e.Ignored = status == event.Failed && n < 2 })
		}
		r.at = r.at.Add(slowest)
	}
	r.end(2, stats)
	return r
}

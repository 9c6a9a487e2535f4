package ui

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// document writes the whole run as one JSON document on Close, in the form of Ansible's callback
// ansible.posix.json. Its keys are sorted, as there.
type document struct {
	o     Options
	err   *Screen
	plays []*played
	stats *value.Dict
}

// played is a play or a task: its identity and its start.
type played struct {
	about    *value.Dict // name, id, path, duration
	duration *value.Dict // start, end
	tasks    []*played   // of a play
	hosts    *value.Dict // of a task: results by host
	id       int         // of a task
}

func newDocument(o Options) *document {
	return &document{o: o, err: NewScreen(o.Err), stats: value.NewDict()}
}

// Emit implements event.Sink.
func (d *document) Emit(e event.Event) {
	switch e := e.(type) {
	case event.PlayStarted:
		d.play(e.Name, e.At)
	case event.BatchStarted: // a separate play in Ansible's document
		d.play(e.Name, e.At)
	case event.TaskStarted:
		d.task(e.Task)
	case event.HostResult:
		d.result(e)
	case event.Warning:
		d.note("[WARNING]: " + e.Diagnostic.Summary)
	case event.RunEnded:
		for _, host := range slices.Sorted(maps.Keys(e.Stats)) {
			s := e.Stats[host]
			d.stats.Set(host, value.NewDict("ok", s.OK, "changed", s.Changed, "failures", s.Failed, "unreachable", s.Unreachable,
				"skipped", s.Skipped, "rescued", s.Rescued, "ignored", s.Ignored))
		}
		if e.Err != "" {
			d.note("ERROR! " + e.Err)
		}
	}
}

// note prints on the error stream what has no place in the document.
func (d *document) note(text string) { d.err.Message(d.o.Redact.Text(text)) }

func (d *document) play(name string, at source.Pos) {
	d.plays = append(d.plays, d.begin(name, fmt.Sprintf("play-%d", len(d.plays)+1), place(at)))
}

func (d *document) begin(name, id, path string) *played {
	duration := value.NewDict("start", stamp(d.o.Now()))
	return &played{duration: duration, about: value.NewDict("name", name, "id", id, "path", path, "duration", duration)}
}

// place is the file and line of a position.
func place(at source.Pos) string {
	if !at.IsValid() {
		return ""
	}
	return fmt.Sprintf("%s:%d", at.File.Name, at.Line)
}

// stamp is a time as Ansible writes it: UTC, with microseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// task returns the entry of a task: the newest one, or an earlier one with a strategy in which
// hosts proceed independently.
func (d *document) task(t *event.Task) (play, task *played) {
	if len(d.plays) == 0 {
		d.plays = append(d.plays, d.begin("", "play-1", ""))
	}
	play = d.plays[len(d.plays)-1]
	for _, known := range slices.Backward(play.tasks) {
		if known.id == t.ID {
			return play, known
		}
	}
	task = d.begin(title(t), fmt.Sprintf("task-%d", t.ID), place(t.At))
	task.id, task.hosts = t.ID, value.NewDict()
	play.tasks = append(play.tasks, task)
	return play, task
}

func (d *document) result(e event.HostResult) {
	if e.Item != nil {
		return // part of the result of the loop as a whole
	}
	shown := value.NewDict()
	for k, v := range e.Result.All() {
		if k != "failed" && k != "skipped" || v != false {
			shown.Set(k, v)
		}
	}
	shown.Set("action", e.Task.Action)
	switch e.Status {
	case event.Failed:
		shown.Set("failed", true)
	case event.Skipped:
		shown.Set("skipped", true)
	case event.Unreachable:
		shown.Set("unreachable", true)
	}
	play, task := d.task(e.Task)
	task.hosts.Set(e.Host, shown)
	now := stamp(d.o.Now())
	task.duration.Set("end", now)
	play.duration.Set("end", now)
}

// Close writes the document.
func (d *document) Close() error {
	plays := []any{}
	for _, p := range d.plays {
		tasks := []any{}
		for _, t := range p.tasks {
			tasks = append(tasks, value.NewDict("task", t.about, "hosts", t.hosts))
		}
		plays = append(plays, value.NewDict("play", p.about, "tasks", tasks))
	}
	whole := value.NewDict("plays", plays, "stats", d.stats, "custom_stats", value.NewDict(), "global_custom_stats",
		value.NewDict())
	text, err := value.JSON(event.Map(whole, d.o.Redact.Text), value.JSONOptions{Indent: 4, SortKeys: true})
	if err != nil {
		return fmt.Errorf("write the run as JSON: %w", err)
	}
	_, _ = fmt.Fprintln(NewScreen(d.o.Out).JSON(), text) // the screen stores the error
	return nil
}

// Hold implements Sink: nothing is on the screen.
func (d *document) Hold() (release func()) { return func() {} }

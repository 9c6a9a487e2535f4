package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/event"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/ui"
	"kubekey/pkg/value"
)

var start = time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC)

// story is a run in which h2 fails, h3 is lost, and h1 only seems to fail.
func story(id string, at time.Time) []event.Event {
	task := &event.Task{ID: 1, Name: "t", Action: "command"}
	failed := func(host string) event.HostResult {
		return event.HostResult{Task: task, Host: host, Status: event.Failed, Result: value.NewDict("msg", "secret-word",
			"rc", 1)}
	}
	ignored, rescued, item := failed("h1"), failed("h1"), failed("h1")
	ignored.Ignored, rescued.Rescued, item.Item = true, true, &event.Item{Label: "x"}
	lost := failed("h3")
	lost.Status = event.Unreachable
	return []event.Event{
		event.RunStarted{ID: id, Time: at, Playbooks: []string{"secret-word.yml"}, Check: true, Version: "v1"},
		event.TaskStarted{Task: task, Time: at},
		event.Output{Task: task, Host: "h1", Line: "a line"},
		event.Progress{Task: task, Host: "h1", Done: 1, Total: 2},
		ignored, rescued, item, failed("h2"), lost,
		event.RunEnded{
			ID: id, Time: at.Add(time.Minute), Duration: time.Minute, ExitCode: 4, Err: "secret-word",
			Stats: map[string]*event.Stats{"h1": {OK: 1, Ignored: 1, Rescued: 1}, "h2": {Failed: 1}, "h3": {Unreachable: 1}},
		},
	}
}

func record(t *testing.T, dir, id string, events []event.Event) {
	t.Helper()
	var hide redact.Set
	hide.Add("secret-word")
	w, err := Open(dir, id, &hide)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		w.Emit(e)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRunIsJournaled(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, "r1", story("r1", start))
	run, err := Find(dir, Last)
	if err != nil {
		t.Fatal(err)
	}
	want := Run{
		ID: "r1", Started: start, Ended: start.Add(time.Minute), Playbooks: []string{"********.yml"}, Check: true,
		Version:  "v1",
		ExitCode: 4, Err: "********", Failed: []string{"h2", "h3"},
		Hosts: map[string]Counts{"h1": {OK: 1, Ignored: 1, Rescued: 1}, "h2": {Failed: 1}, "h3": {Unreachable: 1}},
	}
	if diff := cmp.Diff(want, run); diff != "" {
		t.Error(diff)
	}
	for name, mode := range map[string]os.FileMode{"runs": 0o700, "runs/r1": 0o700, "runs/r1/events.jsonl": 0o600,
		"runs/r1/run.json": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, want %o (%v)", name, info.Mode(), mode, err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil && strings.Contains(string(text), "secret-word") {
			t.Errorf("%s has a secret", name)
		}
	}
}

func TestShowReplays(t *testing.T) {
	dir := t.TempDir()
	events := story("r1", start)
	record(t, dir, "r1", events)
	var seen event.Recorder
	if err := Show(dir, "r1", &seen, nil); err != nil {
		t.Fatal(err)
	}
	hide := func(s string) string { return strings.ReplaceAll(s, "secret-word", redact.Mask) }
	var want, got []string
	for _, e := range events {
		if r, ok := e.(event.HostResult); ok {
			r.Partial = true // a secret is hidden in each
			e = r
		}
		if _, ok := e.(event.Progress); !ok {
			want = append(want, string(event.Encode(e, time.Time{}, hide)))
		}
	}
	for _, e := range seen.Events {
		got = append(got, string(event.Encode(e, time.Time{}, nil)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestKilledRun(t *testing.T) {
	dir := t.TempDir()
	events := story("r1", start)
	w, err := Open(dir, "r1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events[:len(events)-1] {
		w.Emit(e)
	}
	// No Close: the process is gone. A line was half written.
	path := filepath.Join(dir, "runs/r1/events.jsonl")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"type":"host_res`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	run, err := Find(dir, "")
	if err != nil || run.Finished() || !run.Started.Equal(start) {
		t.Errorf("%+v %v", run, err)
	}
	failed, err := FailedHosts(dir, "")
	if err != nil || !cmp.Equal(failed, []string{"h2", "h3"}) {
		t.Error(failed, err)
	}
	var seen event.Recorder
	if err := Show(dir, "r1", &seen, nil); err != nil || len(seen.Events) != len(events)-1 {
		t.Errorf("%d events, %v", len(seen.Events), err)
	}
	if _, ds, err := Read(dir, "r1", event.Discard{}, nil); err != nil || ds.Err() != nil || len(ds) != 1 ||
		!strings.HasSuffix(ds[0].Error(), "events.jsonl:9: run r1 was killed while it wrote this line of its journal: the line is skipped") {
		t.Errorf("%v %v", ds, err)
	}
}

// What Read says of damages.
const (
	unread    = ": this line of the journal cannot be read: "
	noEnd     = "events.jsonl: the last lines of the journal are missing: run.json has the end of the run"
	noSummary = ": the summary of run r1 cannot be read: "
	instead   = "; its events are used instead"
)

// damages is what may have happened to the files of a run: what to do to them,
// what Read then says without the folder, and how many of its 9 events it has.
var damages = map[string]struct {
	damage func(t *testing.T, dir string)
	want   string
	events int
}{
	"none":              {func(*testing.T, string) {}, "", 9},
	"no final line end": {edit(eventsFile, func(s string) string { return strings.TrimSuffix(s, "\n") }), "", 9},
	"blank lines":       {edit(eventsFile, func(s string) string { return "\n\n" + s + " \n" }), "", 9},
	"no JSON": {line(3, "oh { no"),
		"events.jsonl:3:1" + unread + "decode event: invalid character 'o' looking for beginning of value", 8},
	"JSON cut off": {line(3, `{"type":"output","line":"a`),
		"events.jsonl:3:26" + unread + "decode event: unexpected EOF", 8},
	"bytes flipped": {line(3, `{"type":"output","task":{"id":1},"host":"h1"#"line":"x"}`),
		"events.jsonl:3:45" + unread + "decode event: invalid character '#' after object key:value pair", 8},
	"no UTF-8": {line(3, "{\"type\":\"output\",\"line\":\"a\xff\"}"),
		"events.jsonl:3:28" + unread + "it contains invalid UTF-8, which kk does not write", 9},
	"unknown type": {line(3, `{"type":"from the future"}`),
		"events.jsonl:3" + unread + `decode event: unknown type "from the future"`, 8},
	"wrong type": {line(3, `{"type":"output","line":7}`),
		"events.jsonl:3" + unread + "decode event output: line: expected string, found int", 8},
	"no object": {line(3, `[]`), "events.jsonl:3" + unread + "decode event: not a JSON object", 8},
	"many lines": {line(3, strings.Repeat("x\n", 14)+"x"), strings.TrimSuffix(strings.Join(func() (out []string) {
		for n := range 10 {
			out = append(out, fmt.Sprintf("events.jsonl:%d:1"+unread+
				"decode event: invalid character 'x' looking for beginning of value", n+3))
		}
		return append(out, "events.jsonl: 5 more lines of the journal cannot be read")
	}(), "\n"), "\n"), 8},
	"a line without end": {line(3, strings.Repeat("x", maxLine+1)),
		"events.jsonl:3" + unread + "it is longer than 64 MiB", 8},
	"last line cut off": {edit(eventsFile, func(s string) string { return s[:len(s)-20] }),
		"events.jsonl:9: this line of the journal is truncated\n" + noEnd, 8},
	"last lines gone": {edit(eventsFile, func(s string) string { return s[:strings.LastIndex(s[:len(s)-1], "\n")+1] }),
		noEnd, 8},
	"first lines gone": {edit(eventsFile, func(s string) string { return s[strings.Index(s, "\n")+1:] }),
		"events.jsonl: the first lines of the journal, with the start of the run, are missing", 8},
	"empty": {edit(eventsFile, func(string) string { return "" }),
		"events.jsonl: the first lines of the journal, with the start of the run, are missing\n" + noEnd, 0},
	"another exit code": {edit(runFile, func(s string) string { return strings.Replace(s, `"exit_code": 4`, `"exit_code": 0`, 1) }),
		"events.jsonl: the run ended with exit code 4, but run.json has 0", 9},
	"no end in run.json": {edit(runFile, func(s string) string { return regexp.MustCompile(`"ended".*\n`).ReplaceAllString(s, "") }),
		"events.jsonl: the run has ended, but run.json does not have its end", 9},
	"run.json cut off": {edit(runFile, func(s string) string { return s[:40] }),
		"run.json:3:24" + noSummary + "unexpected end of JSON input" + instead, 9},
	"run.json of another type": {edit(runFile,
		func(s string) string { return strings.Replace(s, `"check": true`, `"check": "yes"`, 1) }),
		"run.json:8:16" + noSummary + "json: cannot unmarshal string into Go struct field Run.check of type bool" + instead,
		9},
	"run.json no object": {edit(runFile, func(string) string { return "[]" }),
		"run.json:1:1" + noSummary + "json: cannot unmarshal array into Go value of type journal.Run" + instead, 9},
	"run.json null": {edit(runFile, func(string) string { return "null" }),
		"run.json" + noSummary + "the start time of the run is missing" + instead, 9},
	"run.json of another": {edit(runFile, func(s string) string { return strings.Replace(s, `"r1"`, `"r2"`, 1) }),
		"run.json" + noSummary + `it belongs to run "r2"` + instead, 9},
	"run.json gone": {func(t *testing.T, dir string) { check(t, os.Remove(filepath.Join(dir, runFile))) },
		"run.json" + noSummary + "no such file or directory" + instead, 9},
	"run.json a folder": {func(t *testing.T, dir string) {
		check(t, os.Remove(filepath.Join(dir, runFile)))
		check(t, os.Mkdir(filepath.Join(dir, runFile), 0o700))
	}, "run.json" + noSummary + "it is not a regular file" + instead, 9},
	"run.json without end": {func(t *testing.T, dir string) { check(t, os.Truncate(filepath.Join(dir, runFile), 1<<40)) },
		"run.json" + noSummary + "it is larger than 16 MiB" + instead, 9},
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// edit changes one of the files of a run.
func edit(name string, change func(string) string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		check(t, err)
		check(t, os.WriteFile(path, []byte(change(string(text))), 0o600))
	}
}

// line puts a text in the place of a line of the events.
func line(number int, text string) func(*testing.T, string) {
	return edit(eventsFile, func(s string) string {
		lines := strings.Split(s, "\n")
		lines[number-1] = text
		return strings.Join(lines, "\n")
	})
}

func TestDamageIsNamed(t *testing.T) {
	for name, c := range damages {
		t.Run(name, func(t *testing.T) {
			workdir := t.TempDir()
			record(t, workdir, "r1", story("r1", start))
			dir := filepath.Join(workdir, runsDir, "r1")
			c.damage(t, dir)
			var seen event.Recorder
			run, ds, err := Read(workdir, "r1", &seen, nil)
			check(t, err)
			if diff := cmp.Diff(c.want, strings.ReplaceAll(source.Diagnostics(ds).Error(), dir+"/", "")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if len(seen.Events) != c.events {
				t.Errorf("%d events, want %d", len(seen.Events), c.events)
			}
			// Whatever happened to the summary, what the run came to is known.
			if c.events == 9 && c.want != "" && strings.HasPrefix(c.want, runFile) {
				if run.ExitCode != 4 || !run.Started.Equal(start) || !cmp.Equal(run.Failed, []string{"h2", "h3"}) {
					t.Errorf("%+v", run)
				}
			}
			runs, err := List(workdir)
			if err != nil || len(runs) != 1 || (len(runs[0].Problems) > 0) != strings.HasPrefix(c.want, runFile) {
				t.Errorf("%+v %v", runs, err)
			}
		})
	}
}

func TestRunWithoutEvents(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, "r1", story("r1", start))
	check(t, os.Remove(filepath.Join(dir, runsDir, "r1", eventsFile)))
	runs, err := List(dir)
	if err != nil || len(runs) != 1 || runs[0].ExitCode != 4 || len(runs[0].Problems) != 1 ||
		!strings.HasSuffix(runs[0].Problems[0].Error(),
			"events.jsonl: the events of run r1 cannot be read: no such file or directory") {
		t.Errorf("%+v %v", runs, err)
	}
	if _, _, err := Read(dir, "r1", event.Discard{}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := FailedHosts(dir, "r1"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Which hosts failed is not guessed from events of which some are missing.
func TestFailedHostsOfADamagedRun(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, "r1", story("r1", start))
	folder := filepath.Join(dir, runsDir, "r1")
	edit(runFile, func(string) string { return "{" })(t, folder)
	if failed, err := FailedHosts(dir, "r1"); err != nil || !cmp.Equal(failed, []string{"h2", "h3"}) {
		t.Error(failed, err)
	}
	line(3, "oh")(t, folder)
	if failed, err := FailedHosts(dir, "r1"); err == nil || !strings.Contains(err.Error(),
		"the failed hosts of run r1 are not known") {
		t.Error(failed, err)
	}
}

func FuzzRead(f *testing.F) {
	var lines []byte
	for _, e := range story("r1", start) {
		lines = append(append(lines, event.Encode(e, start, nil)...), '\n')
	}
	f.Add(lines, []byte(`{"id":"r1","started":"2026-01-02T08:00:00Z","ended":"2026-01-02T08:01:00Z","exit_code":4}`))
	f.Add(lines, []byte(`{"id":"r1"`))
	dir := f.TempDir()
	folder := filepath.Join(dir, runsDir, "r1")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, events, summary []byte) {
		check(t, os.WriteFile(filepath.Join(folder, eventsFile), events, 0o600))
		check(t, os.WriteFile(filepath.Join(folder, runFile), summary, 0o600))
		var screens event.Fanout
		for _, format := range ui.Formats() {
			s, err := ui.New(ui.Options{Out: io.Discard, Err: io.Discard, Format: ui.Format(format), Verbosity: 3, Timing: true})
			check(t, err)
			defer s.Close()
			screens = append(screens, s)
		}
		_, ds, err := Read(dir, "r1", screens, nil)
		check(t, err)
		for _, d := range ds {
			if d.Pos.File == nil {
				t.Errorf("%s: it names no file", d)
			}
		}
		_, err = List(dir)
		check(t, err)
	})
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	if _, err := Find(dir, Last); !errors.Is(err, ErrNoRun) {
		t.Error(err)
	}
	for i, id := range []string{"20260102-aa", "20260102-ab", "20260103-xy"} {
		record(t, dir, id, story(id, start.Add(time.Duration(i)*time.Hour)))
	}
	cases := []struct{ id, want, err string }{
		{"", "20260103-xy", ""},
		{"last", "20260103-xy", ""},
		{"20260102-aa", "20260102-aa", ""},
		{"20260103", "20260103-xy", ""},
		{"20260102", "", `"20260102" is ambiguous: 2 run ids begin with it: 20260102-ab, 20260102-aa`},
		{"20260102-ac", "", `no such run in the journal: "20260102-ac" (did you mean "20260102-aa"?)`},
		{"zzz", "", "no such run in the journal: \"zzz\"; `kk runs list` lists them"},
	}
	for _, c := range cases {
		run, err := Find(dir, c.id)
		if run.ID != c.want || (err != nil || c.err != "") && fmt.Sprint(err) != c.err {
			t.Errorf("%q: %q %v", c.id, run.ID, err)
		}
	}
	for _, f := range []func() error{
		func() error { return Show(dir, "zzz", event.Discard{}, nil) },
		func() error { _, err := FailedHosts(dir, "zzz"); return err },
	} {
		if err := f(); !errors.Is(err, ErrNoRun) {
			t.Error(err)
		}
	}
}

func TestFailedHostsOfAFinishedRun(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, "r1", story("r1", start))
	if failed, err := FailedHosts(dir, Last); err != nil || !cmp.Equal(failed, []string{"h2", "h3"}) {
		t.Error(failed, err)
	}
}

func TestOldRunsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		record(t, dir, fmt.Sprint("r", i), story("r", start.Add(time.Duration(i)*time.Hour)))
	}
	notes := filepath.Join(dir, "runs/r0/notes.txt")
	if err := os.WriteFile(notes, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := prune(dir, 3); err != nil {
		t.Fatal(err)
	}
	runs, err := List(dir)
	if err != nil || len(runs) != 3 || runs[0].ID != "r4" || runs[2].ID != "r2" {
		t.Errorf("%v %v", runs, err)
	}
	if _, err := os.Stat(notes); err != nil {
		t.Error("a file that is not the journal's was removed")
	}
	if _, err := os.Stat(filepath.Join(dir, "runs/r1")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the folder of an old run is still there")
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{"", "..", "a/b", ".hidden", strings.Repeat("x", 200)} {
		if _, err := Open(dir, id, nil); err == nil {
			t.Errorf("id %q is taken", id)
		}
	}
	record(t, dir, "r1", nil)
	if _, err := Open(dir, "r1", nil); !errors.Is(err, os.ErrExist) {
		t.Errorf("the journal of another run is overwritten: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, "r1", nil); err == nil {
		t.Error("a file is taken for a folder")
	}
	if _, err := List(file); err == nil {
		t.Error("a file is listed as a folder")
	}
}

func TestWriteErrorIsReportedOnce(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir, "r1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.file.Close(); err != nil { // stands in for a full disk
		t.Fatal(err)
	}
	for _, e := range story("r1", start) {
		w.Emit(e)
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "write journal") {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error("the second Close should do nothing", err)
	}
	w.Emit(event.NoMoreHosts{})
}

func TestSummaryThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, "r1", story("r1", start))
	if err := os.WriteFile(filepath.Join(dir, "runs/r1/run.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := Find(dir, "r1")
	if err != nil || run.ExitCode != 4 || !run.Started.Equal(start) {
		t.Errorf("%+v %v", run, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "runs/empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if runs, err := List(dir); err != nil || len(runs) != 1 {
		t.Errorf("%v %v", runs, err)
	}
}

func TestLongDiffsAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	task := &event.Task{ID: 1, Name: "t", Action: "copy"}
	short := event.Diff{Before: "a", After: "b"}
	long := event.Diff{Before: "a", After: strings.Repeat("b\n", maxText)}
	record(t, dir, "r1", []event.Event{event.HostResult{Task: task, Host: "h", Status: event.Changed,
		Diff: []event.Diff{short, long}}})
	var seen event.Recorder
	if err := Show(dir, "r1", &seen, nil); err != nil {
		t.Fatal(err)
	}
	diff := seen.Events[0].(event.HostResult).Diff
	if diff[0] != short || diff[1].After != nil || !strings.Contains(diff[1].Note, "omitted") {
		t.Errorf("%+v", diff)
	}
	if long.After == nil {
		t.Error("the event itself was changed")
	}
}

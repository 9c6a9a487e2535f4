package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/event"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

var start = time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC)

// story is a run in which h2 fails, h3 is lost, and h1 only seems to fail.
func story(id string, at time.Time) []event.Event {
	task := &event.Task{ID: 1, Name: "t", Action: "command"}
	failed := func(host string) event.HostResult {
		return event.HostResult{Task: task, Host: host, Status: event.Failed, Result: value.NewDict("msg", "secret-word", "rc", 1)}
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
		ID: "r1", Started: start, Ended: start.Add(time.Minute), Playbooks: []string{"********.yml"}, Check: true, Version: "v1",
		ExitCode: 4, Err: "********", Failed: []string{"h2", "h3"},
		Hosts: map[string]Counts{"h1": {OK: 1, Ignored: 1, Rescued: 1}, "h2": {Failed: 1}, "h3": {Unreachable: 1}},
	}
	if diff := cmp.Diff(want, run); diff != "" {
		t.Error(diff)
	}
	for name, mode := range map[string]os.FileMode{"runs": 0o700, "runs/r1": 0o700, "runs/r1/events.jsonl": 0o600, "runs/r1/run.json": 0o600} {
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
	if err := Show(dir, "r1", &seen, nil); err != nil || len(seen.Events) != len(events)-2 {
		t.Errorf("%d events, %v", len(seen.Events), err)
	}
}

func TestBadLinesAreWarnedOf(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, "r1", nil)
	text := "not json\n{\"type\":\"from the future\"}\n\n{\"type\":\"play_ended\",\"name\":\"p\"}\n"
	if err := os.WriteFile(filepath.Join(dir, "runs/r1/events.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var seen event.Recorder
	if err := Show(dir, "r1", &seen, nil); err != nil || len(seen.Events) != 2 {
		t.Fatalf("%v %v", seen.Events, err)
	}
	if got := seen.Events[1].(event.Warning).Diagnostic.Error(); got != "2 lines of the journal of run r1 cannot be read" {
		t.Error(got)
	}
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
		{"20260102", "", `"20260102" is the beginning of 2 run ids: 20260102-ab, 20260102-aa`},
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
	if err != nil || run.Finished() || run.Started.IsZero() {
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
	record(t, dir, "r1", []event.Event{event.HostResult{Task: task, Host: "h", Status: event.Changed, Diff: []event.Diff{short, long}}})
	var seen event.Recorder
	if err := Show(dir, "r1", &seen, nil); err != nil {
		t.Fatal(err)
	}
	diff := seen.Events[0].(event.HostResult).Diff
	if diff[0] != short || diff[1].After != nil || !strings.Contains(diff[1].Note, "leaves out") {
		t.Errorf("%+v", diff)
	}
	if long.After == nil {
		t.Error("the event itself was changed")
	}
}

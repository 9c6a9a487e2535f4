package event

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// examples is one event of every kind, with every field set.
func examples() []Event {
	at := time.Date(2026, 1, 2, 8, 39, 28, 217e6, time.UTC)
	file := source.NewFile("site.yml", []byte("- hosts: all\n  tasks:\n  - copy: {dst: x}\n"))
	pos := source.Pos{File: file, Line: 3, Col: 12}
	trace := []source.Frame{{What: "role web", At: source.Pos{File: file, Line: 1, Col: 1}}}
	task := &Task{ID: 7, Name: "install", Role: "web", Action: "copy", Handler: true, At: pos, Trace: trace,
		Digest: "d1", Header: true, Recalled: true}
	result := value.NewDict("changed", true, "rc", 0, "ratio", 0.5, "lines", []any{"a", nil, value.NewDict("k", "secret")})
	item := &Item{Label: "x", Index: 2}
	return []Event{
		RunStarted{ID: "r1", Time: at, Playbooks: []string{"site.yml", ""}, Check: true, Diff: true, Version: "v1",
			User: "ann@desk", Command: "kk run site.yml", Dir: "/srv"},
		PlaybookStarted{Path: "site.yml", Plays: 2},
		PlayStarted{Name: "Demo", Hosts: []string{"h1", "h2"}, At: pos},
		Async{Task: task, Host: "h1", Job: "j1.2", State: AsyncRuns},
		BatchStarted{Name: "Demo", Number: 2, Hosts: []string{"h2"}, At: pos},
		PlayEnded{Name: "Demo"},
		PlayEmpty{Name: "web"},
		NoMoreHosts{Aborted: true},
		TaskStarted{Task: task, Time: at},
		HostStarted{Task: task, Host: "h1", Item: "x", Time: at},
		Output{Task: task, Host: "h1", Line: "hello secret", Stderr: true},
		Progress{Task: task, Host: "h1", What: "etcd.tar", Done: 10, Total: -1},
		Retry{Task: task, Host: "h1", Attempts: 1, Left: 2, Result: result},
		HostResult{
			Task: task, Host: "h1", Delegate: "h2", Item: item, Loop: true, Status: Failed, Ignored: true, Rescued: true,
			Include: true, Recalled: true, Partial: true, Result: result, Verbose: true, Message: "no",
			Warnings: []string{"w"}, StartedAt: at, Duration: 1500 * time.Millisecond,
			Diff: []Diff{{BeforeHeader: "/b", AfterHeader: "/a", Before: "x\n", After: value.NewDict("k", 1), Prepared: "p",
				Note: "n"}},
		},
		Included{Task: task, Path: "/x.yml", Hosts: []string{"h1"}, Item: item},
		Notified{Handler: "restart", Host: "h1"},
		MetaRan{Task: task, Action: "end_play", Host: "h1", Message: "end_play", Skipped: "not needed"},
		Warning{Diagnostic: &source.Diagnostic{Severity: source.Warning, Pos: pos, Width: 3, Summary: "odd", Help: "fix",
			Trace: trace}},
		RunEnded{
			ID: "r1", Time: at, Duration: time.Minute, ExitCode: 2, Err: "stopped", Results: value.NewDict("endpoint",
				"https://x"), Retry: "/site.retry",
			Stats: map[string]*Stats{"h1": {OK: 1, Changed: 2, Unreachable: 3, Failed: 4, Skipped: 5, Rescued: 6, Ignored: 7}},
		},
	}
}

func TestExamplesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range examples() {
		v := reflect.ValueOf(e)
		seen[v.Type().Name()] = true
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s.%s is not set", v.Type().Name(), v.Type().Field(i).Name)
			}
		}
	}
	for _, e := range Kinds() {
		if name := reflect.TypeOf(e).Name(); !seen[name] {
			t.Errorf("there is no example of %s", name)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, e := range examples() {
		line := Encode(e, at, nil)
		back, _, err := Decode(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got, want := Encode(back, at, nil), line; !bytes.Equal(got, want) {
			t.Errorf("written again it is another\n%s\n%s", want, got)
		}
		if w, ok := e.(Warning); ok {
			if got := back.(Warning).Diagnostic.Render(); got != w.Diagnostic.Render() {
				t.Errorf("the diagnostic reads differently:\n%s\n%s", w.Diagnostic.Render(), got)
			}
		}
	}
}

// TestNames pins the names that other programs read.
func TestNames(t *testing.T) {
	var b strings.Builder
	for _, e := range examples() {
		b.Write(Encode(e, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			func(s string) string { return strings.ReplaceAll(s, "secret", "***") }))
		b.WriteByte('\n')
	}
	const path = "testdata/events.jsonl"
	want, err := os.ReadFile(path)
	if os.Getenv("UPDATE") != "" {
		want, err = []byte(b.String()), os.WriteFile(path, []byte(b.String()), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if strings.Contains(b.String(), "secret") {
		t.Error("a secret was written")
	}
}

func TestTimeOfWritingStandsIn(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	_, got, err := Decode(Encode(TaskStarted{Task: &Task{}}, at, nil))
	if err != nil || !got.Equal(at) {
		t.Error(got, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, line := range []string{
		``, `[]`, `{`, `{"type":"nope"}`, `{"type":"play_ended","name":1}`, `{"type":"host_result","status":"bad"}`,
		`{"type":"host_result","task":3}`, `{"type":"run_started","playbooks":"x"}`, `{"type":"run_ended","stats":[]}`,
		`{"type":"run_ended","duration":"x"}`, `{"type":"warning","diagnostic":1}`, `{"type":"output","stderr":"x"}`,
		`{"type":"host_result","result":[1]}`, `{"type":"run_started","time":"noon"}`,
	} {
		if e, _, err := Decode([]byte(line)); err == nil {
			t.Errorf("%s decodes to %v", line, e)
		}
	}
}

func TestDecodeCompletes(t *testing.T) {
	for _, line := range []string{`{"type":"host_result"}`, `{"type":"output","task":null}`, `{"type":"warning"}`,
		`{"type":"run_ended","stats":{"h":null}}`} {
		e, _, err := Decode([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		v := reflect.ValueOf(e)
		for _, name := range []string{"Task", "Diagnostic"} {
			if f := v.FieldByName(name); f.IsValid() && f.IsNil() {
				t.Errorf("%s: no %s", line, name)
			}
		}
		if end, ok := e.(RunEnded); ok && end.Stats["h"] == nil {
			t.Error("no statistics")
		}
	}
}

func TestMapCutsDeepData(t *testing.T) {
	var v any = "x"
	for range 500 {
		v = []any{v}
	}
	line := Encode(HostResult{Task: &Task{}, Result: value.NewDict("v", v, "u", &value.Undefined{Name: "x"})},
		time.Time{}, nil)
	if _, _, err := Decode(line); err != nil || !bytes.Contains(line, []byte(`"..."`)) {
		t.Errorf("%v %.200s", err, line)
	}
}

func FuzzDecode(f *testing.F) {
	for _, e := range examples() {
		f.Add(Encode(e, time.Time{}, nil))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, _, err := Decode(line); err == nil {
			Encode(e, time.Time{}, nil)
		}
	})
}

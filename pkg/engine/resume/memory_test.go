package resume

import (
	"strings"
	"testing"

	"kubekey/pkg/event"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func task(id int, name string) *event.Task {
	f := source.NewFile("site.yml", nil)
	return &event.Task{ID: id, Name: name, Action: "command", At: source.Pos{File: f, Line: id, Col: 1}}
}

// recorded returns the memory of a run of two tasks with an exit code; second is the status of the second task on
// host b.
func recorded(code int, second event.Status) *Memory {
	m := &Memory{}
	for _, host := range []string{"a", "b"} {
		m.Emit(event.HostResult{Task: task(1, "one"), Host: host, Result: value.NewDict("n", host)})
	}
	m.Emit(event.HostResult{Task: task(2, "two"), Host: "a"})
	m.Emit(event.HostResult{Task: task(2, "two"), Host: "b", Status: second})
	m.Emit(event.RunEnded{ExitCode: code})
	return m
}

func TestActionsAreRecalledInOrder(t *testing.T) {
	m := recorded(event.ExitFailed, event.Failed)
	if !m.Open() || !m.Behind("b") || m.CanRun("a") || !m.Has("b", task(1, "one")) || m.Has("b", task(2, "two")) {
		t.Error("b is behind at its first task, and a has finished")
	}
	a, passes, err := m.Recall("b", task(1, "one"))
	if err != nil || passes || a.Result(nil) == nil || a.Result(nil).Result.String("n") != "b" {
		t.Errorf("b at task one: %v, %v, %v", a, passes, err)
	}
	a, passes, err = m.Recall("b", task(2, "two"))
	if err != nil || passes || a.Succeeded() || a.Result(nil) != nil {
		t.Errorf("b at the task that failed: %v, %v, %v", a, passes, err)
	}
	if m.Behind("b") || !m.CanRun("b") {
		t.Error("b is live behind the task that failed")
	}
	if a, passes, err = m.Recall("b", task(3, "three")); a != nil || passes || err != nil {
		t.Errorf("b at a task of its own: %v, %v, %v", a, passes, err)
	}
}

func TestHostsThatFinishedPassWhatTheyNeverDid(t *testing.T) {
	m := recorded(event.ExitFailed, event.Failed)
	if a, passes, err := m.Recall("a", task(9, "new")); a != nil || !passes || err != nil {
		t.Errorf("a new task: %v, %v, %v", a, passes, err)
	}
	if a, passes, err := m.Recall("a", task(7, "two")); a == nil || passes || err != nil {
		t.Errorf("a task whose line has changed: %v, %v, %v", a, passes, err)
	}
}

func TestOtherTasksThanBeforeAreAnError(t *testing.T) {
	_, _, err := recorded(event.ExitFailed, event.Failed).Recall("b", task(2, "two"))
	if err == nil || !strings.Contains(err.Error(), `b did "one" (site.yml:1:1)`) {
		t.Errorf("b begins at the second task: %v", err)
	}
}

func TestNothingIsOpenWhenAllHostsFinished(t *testing.T) {
	if recorded(event.ExitOK, event.OK).Open() {
		t.Error("a run that succeeded has nothing to resume")
	}
	for _, code := range []int{event.ExitInterrupted, event.ExitError} {
		if !recorded(code, event.OK).Open() {
			t.Errorf("after exit code %d no host is known to have finished", code)
		}
	}
}

func TestNoMemoryRecallsNothing(t *testing.T) {
	var m *Memory
	if a, passes, err := m.Recall("a", task(1, "one")); a != nil || passes || err != nil || m.Behind("a") ||
		!m.CanRun("a") {
		t.Errorf("without a memory: %v, %v, %v", a, passes, err)
	}
}

func TestDigestCoversTheTaskAndWhatIsAboveIt(t *testing.T) {
	text := "- hosts: all\n  tasks:\n    - command: a\n      register: r\n    - command: b\n"
	at := func(text string, line int) source.Pos {
		return source.Pos{File: source.NewFile("site.yml", []byte(text)), Line: line, Col: 7}
	}
	first := Digest(at(text, 3), false, false)
	if first == "" || first == Digest(at(text, 5), false, false) {
		t.Error("two tasks have one digest")
	}
	if changed := strings.Replace(text, "command: b", "command: c", 1); first != Digest(at(changed, 3), false, false) {
		t.Error("a change below a task changes its digest")
	}
	if changed := strings.Replace(text, "register: r", "register: s", 1); first == Digest(at(changed, 3), false, false) {
		t.Error("a change in a task does not change its digest")
	}
	moved := "# comment\n" + text
	if Digest(at(text, 3), true, false) != Digest(at(moved, 4), true, false) {
		t.Error("the digest of a handler is of its own lines")
	}
}

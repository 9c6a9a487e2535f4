package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/event"
	"kubekey/pkg/value"
)

func TestLongOutputsAreKeptInPart(t *testing.T) {
	dir := t.TempDir()
	task := &event.Task{ID: 1, Name: "t", Action: "command"}
	var events []event.Event
	for i := range 3 * maxLines {
		events = append(events, event.Output{Task: task, Host: "h1", Line: fmt.Sprintf("printed-%d.", i)})
	}
	lines := make([]any, 5000)
	for i := range lines {
		lines[i] = fmt.Sprintf("line-%d.", i)
	}
	// A secret lies across the place of the cut.
	text := "begin" + strings.Repeat("x", maxText/2-5-len("secr")) + "secret-word" + strings.Repeat("y", 1<<20) + "end"
	result := value.NewDict("stdout", text, "stdout_lines", lines, "short", "stays", "deep", value.NewDict("stderr", text))
	events = append(events,
		event.HostResult{Task: task, Host: "h1", Result: result},
		event.Output{Task: task, Host: "h1", Line: "printed-again."},
	)
	record(t, dir, "r1", events)
	kept, err := os.ReadFile(filepath.Join(dir, "runs/r1/events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) > 600<<10 {
		t.Errorf("the journal has %d bytes", len(kept))
	}
	for want, holds := range map[string]bool{
		"printed-0.": true, "printed-999.": true, "printed-1000.": false, "printed-again.": true, "more lines": true,
		"line-0.": false, "line-4000.": true, "line-4999.": true, "4000 items": true,
		"beginx": true, "yend\"": true, "bytes, omitted": true, "stays": true, "secr": false,
	} {
		if bytes.Contains(kept, []byte(want)) != holds {
			t.Errorf("the journal has %q: %v, want %v", want, !holds, holds)
		}
	}
	if value.Str(result) == "" || len(result.String("stdout")) != len(text) {
		t.Error("the result itself was changed")
	}
}

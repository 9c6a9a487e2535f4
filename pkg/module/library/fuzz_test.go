package library

import (
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/value"
)

// FuzzResult has a program print anything as its result.
func FuzzResult(f *testing.F) {
	for _, out := range []string{
		"", "{}", "null", `{"changed": true, "msg": "done", "rc": 1}`, "noise\n{\"failed\": 1}\nnoise",
		`{"msg": [], "warnings": [1, "x"], "warnings": null}`,
		`{"ansible_facts": {"a": 1}, "diff": [{"before": {}, "after": 1}, 2], "skipped": "yes"}`,
		`{"diff": {"prepared": [1]}, "rc": []}`, `{"ansible_facts": []}`,
	} {
		f.Add(0, out, "")
		f.Add(1, out, "Traceback")
	}
	f.Fuzz(func(t *testing.T, code int, stdout, stderr string) {
		r := result(code, stdout, stderr)
		diffs := make([]any, len(r.Diff))
		for i, d := range r.Diff {
			diffs[i] = d.Value()
		}
		whole := value.NewDict("data", r.Data, "facts", r.Facts, "diff", diffs)
		if _, err := value.JSON(whole, value.JSONOptions{}); err != nil {
			t.Errorf("a result that cannot be written down: %v", err)
		}
		if code != 0 && !r.Failed && len(r.Warnings) == 0 {
			t.Errorf("exit code %d goes unsaid: %+v", code, r)
		}
	})
}

// A program that prints 16 MB of lines that begin no object is read to its end.
func TestEndlessBegins(t *testing.T) {
	noise := strings.Repeat("{\n", connector.MaxAnswer/2-1)
	if r := result(0, noise+"}", ""); !r.Failed {
		t.Errorf("it is taken for a result: %+v", r)
	}
	if r := result(0, strings.Repeat("{\n", maxBegins-1)+`{"msg": "done"}`, ""); r.Failed || r.Msg != "done" {
		t.Errorf("the result after some noise is not seen: %+v", r)
	}
}

package difflib

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnified compares with what Python's difflib.unified_diff makes of the
// same texts.
func TestUnified(t *testing.T) {
	text, err := os.ReadFile("testdata/difflib.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ A, B, Diff string }
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) == 0 {
		t.Fatal(err)
	}
	for i, c := range cases {
		got := strings.Join(Unified(Lines(c.A), Lines(c.B), "before: /x", "after: /y"), "")
		if diff := cmp.Diff(c.Diff, got); diff != "" {
			t.Errorf("case %d: -want +got\n%s", i, diff)
		}
	}
}

func FuzzUnified(f *testing.F) {
	f.Add("a\nb\n", "b\nc")
	f.Fuzz(func(t *testing.T, a, b string) {
		out := Unified(Lines(a), Lines(b), "a", "b")
		if (len(out) == 0) != (a == b) && strings.HasSuffix(a, "\n") == strings.HasSuffix(b, "\n") {
			t.Errorf("%q %q: %q", a, b, out)
		}
	})
}

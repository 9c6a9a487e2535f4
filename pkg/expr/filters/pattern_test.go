package filters

import (
	"strings"
	"testing"
)

func TestPatternsAreDropped(t *testing.T) {
	ps := NewPatterns()
	for i := range maxPatterns + 1 {
		if _, err := ps.Get(strings.Repeat("a", i), 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(ps.kept); n != 1 {
		t.Errorf("%d patterns are kept after the limit, want 1", n)
	}
}

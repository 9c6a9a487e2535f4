package expr

import (
	"context"
	"testing"

	"kubekey/pkg/source"
)

// The language itself names no collection: the rows define which collections exist.
func TestCollectionsAreThoseOfTheRows(t *testing.T) {
	same := func(_ *Call, in any, _ *Bound) (any, error) { return in, nil }
	env := New(Options{}, Library{Filters: []Filter{{Names: "same", Of: "a.b c.d", Do: same}}})
	for name, want := range map[string]bool{"a.b": true, "c.d": true, "ansible.builtin": true,
		"community.general": false} {
		if env.HasCollection(name) != want {
			t.Errorf("%s: %v, want %v", name, !want, want)
		}
	}
	for _, src := range []string{"1 | same", "1 | a.b.same", "1 | c.d.same", "none_x | ansible.builtin.default(1)"} {
		x, err := env.Compile(src, source.Pos{}, Escaped)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if v, err := x.Eval(context.Background(), Names{}); v != any(1) || err != nil {
			t.Errorf("%s = %v, %v", src, v, err)
		}
	}
	if _, err := env.Compile("1 | community.general.same", source.Pos{}, Escaped); err == nil {
		t.Error("a filter was found in a collection of which there are no rows")
	}
}

package expr

import (
	"context"
	"sync"
	"testing"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// TestConcurrentUse compiles and evaluates from many goroutines with one Env
// and one shared expression; the race detector watches.
func TestConcurrentUse(t *testing.T) {
	env := New(Options{}, Standard())
	const src = "list.append(4) or list | map('string') | join('-') ~ (x is match('a+')) ~ ('%s' % d.k) ~ x.upper()"
	shared, err := env.Compile(src, source.Pos{}, Escaped)
	if err != nil {
		t.Fatal(err)
	}
	list, d := []any{1, 2, 3}, value.NewDict("k", "v")
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 50 {
				own, err := env.Compile(src, source.Pos{}, Raw)
				if err != nil {
					t.Error(err)
					return
				}
				for _, x := range []*Expr{shared, own} {
					got, err := x.Eval(context.Background(), Names{"list": list, "x": "aa", "d": d})
					if err != nil || got != any("1-2-3-4TruevAA") {
						t.Errorf("%v %v", got, err)
						return
					}
				}
			}
		})
	}
	group.Wait()
}

package expr_test

import (
	"context"
	"sync"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// TestConcurrentUse compiles and evaluates from many goroutines with one Env and one shared expression. It is meant
// for the race detector.
func TestConcurrentUse(t *testing.T) {
	env := expr.New(expr.Options{}, everything()...)
	const src = "list.append(4) or list | map('string') | join('-') ~ (x is match('a+')) ~ ('%s' % d.k) ~ x.upper()"
	shared, err := env.Compile(src, source.Pos{}, expr.Escaped)
	if err != nil {
		t.Fatal(err)
	}
	list, d := []any{1, 2, 3}, value.NewDict("k", "v")
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 50 {
				own, err := env.Compile(src, source.Pos{}, expr.Raw)
				if err != nil {
					t.Error(err)
					return
				}
				for _, x := range []*expr.Expr{shared, own} {
					got, err := x.Eval(context.Background(), expr.Names{"list": list, "x": "aa", "d": d})
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

package expr_test

import (
	"context"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func BenchmarkEval(b *testing.B) {
	scope := expr.Names{
		"a":    value.NewDict("b", "x"),
		"c":    1,
		"name": "etcd",
		"list": []any{"a", "b", "c"},
	}
	for _, src := range []string{
		`a.b == 'x' and c is defined`,
		`name in ['etcd', 'kube']`,
		`list | length > 2`,
		`undef_x | default('y')`,
		`name`,
	} {
		b.Run(src, func(b *testing.B) {
			x, err := expr.New(expr.Options{}, library.Standard()).Compile(src, source.Pos{}, expr.Escaped)
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.Eval(ctx, scope); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	env := expr.New(expr.Options{}, library.Standard())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := env.Compile(`a.b == 'x' and c | default([]) | length > 2`, source.Pos{}, expr.Escaped); err != nil {
			b.Fatal(err)
		}
	}
}

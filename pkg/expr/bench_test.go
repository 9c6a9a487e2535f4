package expr

import (
	"context"
	"testing"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func BenchmarkEval(b *testing.B) {
	scope := Names{
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
			x, err := New(Options{}, Standard()).Compile(src, source.Pos{}, Escaped)
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
	env := New(Options{}, Standard())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := env.Compile(`a.b == 'x' and c | default([]) | length > 2`, source.Pos{}, Escaped); err != nil {
			b.Fatal(err)
		}
	}
}

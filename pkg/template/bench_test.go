package template

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// hundredLines is a configuration file with ten loops of ten hosts.
func hundredLines() string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "section%d:\n  enabled: {{ enabled }}\n  cluster: {{ cluster.name | upper }}\n", i)
		b.WriteString("{% for h in groups.etcd %}\n  - name: {{ h }}\n    address: https://{{ hostvars[h].ip }}:{{ port }}\n    last: {{ loop.last }}\n{% endfor %}\n")
		b.WriteString("{% if enabled and port == 2379 %}\n  tls: yes\n{% endif %}\n")
	}
	return b.String()
}

func hundredScope(variables int) expr.Names {
	hosts, hostvars := []any{}, value.NewDict()
	for i := range 10 {
		name := fmt.Sprintf("node%d", i)
		hosts = append(hosts, name)
		hostvars.Set(name, value.NewDict("ip", fmt.Sprintf("10.0.0.%d", i)))
	}
	s := expr.Names{
		"enabled": true, "port": 2379, "cluster": value.NewDict("name", "c1"),
		"groups": value.NewDict("etcd", hosts), "hostvars": hostvars,
	}
	for i := range variables {
		s[fmt.Sprintf("var%d", i)] = i
	}
	return s
}

func BenchmarkConfigurationFile(b *testing.B) {
	for _, variables := range []int{0, 2000} {
		b.Run(fmt.Sprintf("%dvars", variables), func(b *testing.B) {
			src := hundredLines()
			tpl, err := newEngine().String(src, at(src))
			if err != nil {
				b.Fatal(err)
			}
			scope := hundredScope(variables)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tpl.Text(context.Background(), scope); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	src := hundredLines()
	e := newEngine()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.compileString(src, source.Pos{}, FileOptions{}.syntax(), expr.Raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCachedString(b *testing.B) {
	e := newEngine()
	for _, src := range []string{"plain text", "{{ a.b.c }}", "a {{ b }} c"} {
		b.Run(src, func(b *testing.B) {
			pos := at(src)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.String(src, pos); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPureValue(b *testing.B) {
	tpl, err := newEngine().String("{{ groups.etcd }}", source.Pos{})
	if err != nil {
		b.Fatal(err)
	}
	scope := hundredScope(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tpl.Value(context.Background(), scope); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMixedString(b *testing.B) {
	tpl, err := newEngine().String("https://{{ cluster.name }}:{{ port }}", source.Pos{})
	if err != nil {
		b.Fatal(err)
	}
	scope := hundredScope(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tpl.Value(context.Background(), scope); err != nil {
			b.Fatal(err)
		}
	}
}

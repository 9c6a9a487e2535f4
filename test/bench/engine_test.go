// Package bench measures kk against a floor or a peer in the same run, and
// prints ratios. Nothing here asserts wall time: the machine may be shared.
package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/engine"
	"kubekey/pkg/event"
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/inventory"
	"kubekey/pkg/module"
	"kubekey/pkg/module/exec"
	"kubekey/pkg/module/file"
	"kubekey/pkg/module/flow"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
)

// machine is an engine's surroundings for hosts that answer at once.
type machine struct {
	inv    *inventory.Inventory
	linker *project.Linker
	e      *template.Engine
	books  []*project.Playbook
}

func write(tb testing.TB, dir, name, text string) string {
	tb.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func newMachine(tb testing.TB, playbook string, hosts, variables int) *machine {
	tb.Helper()
	dir := tb.TempDir()
	var b strings.Builder
	b.WriteString("all:\n  vars:\n    shared: value\n")
	for i := range variables {
		fmt.Fprintf(&b, "    var_%d: \"value {{ shared }} %d\"\n", i, i)
	}
	b.WriteString("  hosts:\n")
	for i := range hosts {
		fmt.Fprintf(&b, "    host-%05d: {number: %d}\n", i, i)
	}
	ctx := context.Background()
	m := &machine{e: template.New(expr.New(expr.Options{}, library.Standard()), source.Tree{})}
	inv, ds := inventory.Load(ctx, []string{write(tb, dir, "inventory.yaml", b.String())}, inventory.Options{})
	if err := ds.Err(); err != nil {
		tb.Fatal(err)
	}
	m.inv = inv
	reg, err := module.NewRegistry(exec.Modules(), file.Modules(), flow.Modules())
	if err != nil {
		tb.Fatal(err)
	}
	m.linker = project.New(project.Options{Engine: m.e, Modules: reg})
	pb, more := m.linker.Playbook(write(tb, dir, "site.yaml", playbook))
	if err := more.Err(); err != nil {
		tb.Fatal(err)
	}
	m.books = []*project.Playbook{pb}
	return m
}

func (m *machine) engine() *engine.Engine {
	return engine.New(engine.Options{
		Project: engine.Project{Inventory: m.inv, Linker: m.linker, Templates: m.e},
		Mode:    engine.Mode{Forks: 50},
		Reach: engine.Reach{Connect: func(context.Context, engine.Target) (connector.Connector, error) {
			return connectortest.Noop(), nil
		}},
		Record: engine.Record{Sink: event.Discard{}, RunID: "bench"},
	})
}

func (m *machine) run(tb testing.TB) {
	tb.Helper()
	if code := m.engine().Run(context.Background(), m.books); code != 0 {
		tb.Fatalf("exit code %d", code)
	}
}

const tasksPerPlay = 20

func play(task string) string {
	var b strings.Builder
	b.WriteString("- hosts: all\n  gather_facts: false\n  vars: {greeting: \"hello {{ inventory_hostname }}\"}\n  tasks:\n")
	for i := range tasksPerPlay {
		fmt.Fprintf(&b, "    - name: task %d\n      %s\n", i, strings.ReplaceAll(task, "@", fmt.Sprint(i)))
	}
	return b.String()
}

// BenchmarkEngine is the engine's own cost for one task on one host, with a
// connector that does nothing: µs/host-task is to be at most 20 and flat from
// 10 to 10 000 hosts.
func BenchmarkEngine(b *testing.B) {
	for _, c := range []struct{ name, task string }{
		{"command", "command: /bin/true"},
		{"command_template", "command: \"echo {{ greeting }} {{ var_7 }}\""},
		{"set_fact", "set_fact: {fact_@: \"{{ greeting }} @\"}"},
		{"skipped", "{command: /bin/true, when: number is not defined}"},
	} {
		task := c.task
		if strings.HasPrefix(task, "{") {
			task = strings.TrimSuffix(strings.TrimPrefix(task, "{"), "}")
			task = strings.ReplaceAll(task, ", when", "\n      when")
		}
		for _, hosts := range []int{10, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, hosts), func(b *testing.B) {
				m := newMachine(b, play(task), hosts, 500)
				b.ResetTimer()
				start := time.Now()
				for range b.N {
					m.run(b)
				}
				per := time.Since(start).Seconds() * 1e6 / float64(b.N*hosts*tasksPerPlay)
				b.ReportMetric(per, "µs/host-task")
			})
		}
	}
}

// BenchmarkMemory is what a run holds for each host at its end, with 500
// variables in the group all: kB/host is to be at most 20.
func BenchmarkMemory(b *testing.B) {
	for _, task := range []string{"command: /bin/true\n      register: out_@", "set_fact: {fact_@: \"{{ greeting }}\"}"} {
		b.Run(strings.Fields(task)[0], func(b *testing.B) {
			for range b.N {
				before := heap()
				m := newMachine(b, play(task), 10000, 500)
				e := m.engine()
				if code := e.Run(context.Background(), m.books); code != 0 {
					b.Fatalf("exit code %d", code)
				}
				b.ReportMetric(float64(heap()-before)/10000/1024, "kB/host")
				runtime.KeepAlive(e)
				runtime.KeepAlive(m)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

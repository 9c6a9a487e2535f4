package engine

import (
	"context"
	"slices"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
)

// TestConnectToOthers checks that a module that works once for all hosts reaches each of them as a task would: with
// its own variables, and read-only in check mode.
func TestConnectToOthers(t *testing.T) {
	b := newBench(t, `
-- hosts --
all:
  hosts:
    h1: {ansible_host: 10.0.0.1}
    h2: {ansible_host: 10.0.0.2, ansible_port: 2222}
-- site.yml --
- hosts: all
  gather_facts: false
  tasks:
    - download: {items: []}
    - download: {items: []}
      check_mode: true
    - command: hostname
`)
	var seen []string
	var refused error
	b.o.Perform = func(ctx context.Context, task *project.Task, r module.Runner, c *module.Call) (module.Result, error) {
		if task.Action == "command" {
			if c.Connect != nil {
				t.Error("a module that runs on its host connects to others")
			}
			return module.Result{}, nil
		}
		conns := make([]connector.Connector, 2)
		module.Parallel(2, 2, func(i int) {
			var err error
			if conns[i], err = c.Connect(ctx, []string{"h1", "h2"}[i]); err != nil {
				t.Error(err)
			}
		})
		for _, conn := range conns {
			_, err := conn.Run(ctx, connector.Command{Line: "true"})
			if c.Check {
				refused = err
			} else if err != nil {
				t.Error(err)
			}
		}
		return module.Result{}, nil
	}
	b.expect(ExitOK)
	for _, target := range b.targets {
		seen = append(seen, target.Host+" "+target.Address)
	}
	slices.Sort(seen)
	if want := []string{"h1 10.0.0.1", "h2 10.0.0.2"}; !slices.Equal(slices.Compact(seen), want) {
		t.Errorf("connected to %q", seen)
	}
	if refused == nil {
		t.Error("a command was run in check mode")
	}
}

package engine

import (
	"context"
	"slices"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/value"
)

// Perform gets the decoded arguments of a module and the host that the task is delegated to. Its return value is the
// result of the task.
func TestPerform(t *testing.T) {
	b := newBench(t, `
-- site.yml --
- hosts: h1
  gather_facts: false
  tasks:
    - command: hostname
      delegate_to: h2
      register: told
    - debug: {msg: "{{ told.stdout }} {{ told.changed }}"}
`)
	var targets []string
	b.o.Perform = func(ctx context.Context, task *project.Task, r module.Runner, c *module.Call) (module.Result, error) {
		if task.Action != "command" {
			return r.Run(ctx, c)
		}
		targets = append(targets, c.Host+" on "+c.Target)
		return module.Result{Data: value.NewDict("stdout", "answered")}, nil
	}
	b.expect(ExitOK).wants("h1: answered False")
	if !slices.Equal(targets, []string{"h1 on h2"}) {
		t.Errorf("performed %q", targets)
	}
}

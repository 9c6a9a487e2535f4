package peer

import (
	"strings"
	"testing"

	"kubekey/pkg/cli"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// refuseLate gives a task its arguments by a variable, if kk would refuse the
// playbook for what they require of each other: both programs then say so when
// the task runs.
func refuseLate(t *testing.T, task map[string]any) {
	t.Helper()
	all, err := cli.Modules()
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range task {
		args, isMapping := v.(map[string]any)
		spec := all.Find(name)
		if spec == nil || spec.New == nil || !isMapping && v != nil || !breaksRule(spec, args) {
			continue
		}
		vars, _ := task["vars"].(map[string]any)
		late := map[string]any{"late_args": args}
		for k, v := range vars {
			late[k] = v
		}
		task[name], task["vars"], task["args"] = nil, late, "{{ late_args }}"
	}
}

func breaksRule(spec *module.Spec, args map[string]any) bool {
	given, _ := value.Of(args).(*value.Dict)
	for _, p := range schema.Check(spec.New(), given, &redact.Set{}, schema.Unsure{Dynamic: hasTemplate}) {
		if p.Kind == schema.Conflict {
			return true
		}
	}
	return false
}

func hasTemplate(v any) bool { return strings.Contains(value.Str(v), "{{") }

package kube

import (
	"regexp"
	"strconv"
	"strings"

	"kubekey/pkg/value"
)

// Hiding is the argument for fields to omit from results.
type Hiding struct {
	HiddenFields []string `kk:"hidden_fields" doc:"fields to omit from results and diffs, such as status, spec.containers[0].env, or metadata.annotations[example.org/note]; metadata.managedFields is always omitted"`
}

// shown is the object as the task's results have it.
func (h Hiding) shown(o object) *value.Dict { return h.less(shown(o)) }

// desired is the object as the task's differences have it.
func (h Hiding) desired(o object) *value.Dict { return h.less(desired(o)) }

func (h Hiding) less(d *value.Dict) *value.Dict {
	for _, field := range h.HiddenFields {
		leaveOut(d, fieldSteps(field))
	}
	return d
}

// fieldStep is one step of a path: a name, or what brackets hold.
var fieldStep = regexp.MustCompile(`\[([^\]]*)\]|[^.\[]+`)

func fieldSteps(path string) []string {
	var steps []string
	for _, m := range fieldStep.FindAllStringSubmatch(path, -1) {
		step := m[0]
		if strings.HasPrefix(step, "[") {
			step = strings.Trim(m[1], `'"`)
		}
		steps = append(steps, step)
	}
	return steps
}

// leaveOut deletes the value at the path, if it exists, and
// returns v without it.
func leaveOut(v any, path []string) any {
	if len(path) == 0 {
		return v
	}
	switch v := v.(type) {
	case *value.Dict:
		below, ok := v.Get(path[0])
		switch {
		case ok && len(path) == 1:
			v.Delete(path[0])
		case ok:
			v.Set(path[0], leaveOut(below, path[1:]))
		}
	case []any:
		i, err := strconv.Atoi(path[0])
		switch {
		case err != nil || i < 0 || i >= len(v):
		case len(path) == 1:
			return append(v[:i:i], v[i+1:]...)
		default:
			v[i] = leaveOut(v[i], path[1:])
		}
	}
	return v
}

package engine

import (
	"time"

	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// following provides the task variables that have a value even if nothing sets them, as in Ansible: connection
// variables derive from other variables, from keywords and from settings. hostvars contains only variables that are
// set.
type following struct{ e *Engine }

// FallbackNames implements vars.Fallback.
func (f following) FallbackNames() []string {
	var out []string
	for _, m := range playbook.MagicVariables() {
		if m.Yields && !m.Bound() {
			out = append(out, m.Names()...)
		}
	}
	for _, c := range playbook.ConnectionVariables() {
		if c.Given {
			out = append(out, c.Strongest()...)
		}
	}
	return out
}

// Fallback implements vars.Fallback.
func (f following) Fallback(name string, v *vars.View) (any, bool) {
	row := connectionRows()[name]
	given := row != nil && row.Given
	if !given && name != "environment" {
		return nil, false
	}
	h := at(v)
	if h.task == nil || h.keyword {
		return nil, false
	}
	outer := forKeywords(v)
	if !given {
		return f.e.environment(h.task, outer)
	}
	reached := outer
	if d, set, err := f.e.attr(outer, &h.task.Attrs, project.DelegateTo); err == nil && set && value.Str(d) != "" {
		reached = f.e.reachedFrom(outer, value.Str(d), h.task)
	}
	return f.e.settings(reached, &h.task.Attrs, outer).given(row.Name)
}

// reachedFrom returns the view of the host that a task is delegated to. Its variables specify how the host is
// reached.
func (e *Engine) reachedFrom(v *vars.View, host string, t *project.Task) *vars.View {
	return e.seenFrom(v, host, t.Static).Sharing(v)
}

// given returns a connection variable as tasks read it; ok is false if it has no value.
func (s *settings) given(name string) (any, bool) {
	val := s.value(name)
	switch name {
	case "ansible_connection":
		val = s.connection(s.v.Host())
	case "ansible_timeout":
		limit, _ := val.(time.Duration)
		if limit == 0 {
			limit = 10 * time.Second // the default of connector/ssh
		}
		val = int(limit.Seconds())
	}
	return val, s.err == nil && val != "" && val != 0
}

// environment returns the value of the variable environment: the mappings of the keyword, those of the play first.
func (e *Engine) environment(t *project.Task, v *vars.View) (any, bool) {
	out := []any{}
	for _, d := range t.Attrs.Environment {
		val, err := d.Value(v.Context(), v)
		if err != nil {
			return nil, false
		}
		if env, ok := val.(*value.Dict); ok {
			e.hideNamed("", env)
			out = append(out, env)
		}
	}
	return out, true
}

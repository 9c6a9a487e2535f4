package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
)

// plain reports whether the task only applies objects.
func (m *K8s) plain(objects []object) bool {
	return m.Apply || !m.Force && len(m.MergeType) == 0 && !slices.ContainsFunc(objects, object.generated)
}

// verbs are those of kubectl that the objects are sent by, given those that
// are there. What is new is applied too, so that its fields have the owner
// that a later task of kk goes by.
func (m *K8s) verbs(objects, live []object) []string {
	var verbs []string
	for _, o := range objects {
		there := slices.ContainsFunc(live, o.names)
		switch {
		case o.generated():
			verbs = append(verbs, "create")
		case m.Apply || !there:
			verbs = append(verbs, "apply")
		case m.Force:
			verbs = append(verbs, "replace")
		case len(m.MergeType) > 0:
			verbs = append(verbs, "patch")
		default:
			verbs = append(verbs, "apply")
		}
	}
	return verbs
}

// send sends objects of which some are not applied: it first queries which exist.
func (m *K8s) send(ctx context.Context, c *module.Call, objects []object) ([]outcome, []string, error) {
	live, err := m.live(ctx, c, objects)
	var missing *missingError
	if c.Check && errors.As(err, &missing) {
		return m.created(objects), []string{err.Error()}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	s := m.script("k8s_send").Set("manager", m.FieldManager).Flag("force", m.ForceConflicts)
	s.Set("verbs", strings.Join(m.verbs(objects, live), " "))
	s.Set("types", strings.ReplaceAll(strings.Join(m.MergeType, " "), "strategic-merge", "strategic"))
	text, err := lines(objects)
	if err != nil {
		return nil, nil, err
	}
	s.Stdin = strings.NewReader(text)
	a, err := run(ctx, c, s)
	if err != nil {
		return nil, nil, err
	}
	return m.singly(c, objects, live, a)
}

// singly reads the answers to objects that were sent one by one.
func (m *K8s) singly(c *module.Call, objects, live []object, a hostscript.Answer) ([]outcome, []string, error) {
	if err := a.Together("rc", "out", "err"); err != nil {
		return nil, nil, err
	}
	if len(a["rc"]) != len(objects) {
		return nil, nil, fmt.Errorf("kubectl answers for %d of %d objects", len(a["rc"]), len(objects))
	}
	var done []outcome
	for i, o := range objects {
		if said := a["err"][i]; a["rc"][i] != "0" {
			one := outcome{object: o, err: fmt.Errorf("%s: %s", o, reason(o, said))}
			if c.Check && notYet(said) {
				one = m.created([]object{o})[0]
			}
			done = append(done, one)
			continue
		}
		sent, err := fromJSON(a["out"][i])
		if err != nil {
			return nil, nil, err
		}
		for _, o := range sent {
			done = append(done, m.evaluate(c, o, live))
		}
	}
	return done, warnings(a["err"]), nil
}

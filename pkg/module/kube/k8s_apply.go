package kube

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

func (m *K8s) present(ctx context.Context, c *module.Call, objects []object) (module.Result, error) {
	objects, all, err := m.selected(objects)
	if err != nil {
		return module.Result{}, err
	}
	single := len(objects)+len(all) == 1
	var warnings []string
	var failed error
	for _, stage := range stages(objects) {
		if len(stage) == 0 {
			continue
		}
		done, warned, err := m.apply(ctx, c, stage)
		all, warnings = append(all, done...), append(warnings, warned...)
		if failed = err; failed == nil && !m.Continue {
			failed = errorsOf(done)
		}
		if failed == nil {
			failed = m.established(ctx, c, stage)
		}
		if failed != nil {
			break
		}
	}
	if m.Wait && !c.Check && failed == nil {
		return m.wait(ctx, c, warnings, all, single)
	}
	r := m.report(c, all, single)
	r.Warnings = warnings
	if failed != nil {
		return fail(r, failed)
	}
	return r, nil
}

// selected parts the objects that label_selectors mean from the others. What
// has no labels is not meant.
func (m *K8s) selected(objects []object) (meantObjects []object, others []outcome, err error) {
	desired, err := requirements(m.Labels)
	if err != nil || len(m.Labels) == 0 {
		return objects, nil, err
	}
	for _, o := range objects {
		if o.at("metadata", "labels") != nil && meant(o, desired) {
			meantObjects = append(meantObjects, o)
			continue
		}
		others = append(others, outcome{object: o,
			note: fmt.Sprintf("%s is skipped: its labels do not match label_selectors", o)})
	}
	for _, o := range meantObjects {
		if err := o.check(); err != nil {
			return nil, nil, err
		}
	}
	return meantObjects, others, nil
}

// report is the result, with the differences if they are asked for.
func (m *K8s) report(c *module.Call, all []outcome, single bool) module.Result {
	r := m.result(all, single)
	if c.Diff {
		r.Diff = m.diffs(all)
	}
	return r
}

// patched applies the objects that the cluster has.
func (m *K8s) patched(ctx context.Context, c *module.Call, objects []object) (module.Result, error) {
	live, err := m.live(ctx, c, objects)
	if err != nil {
		return module.Result{}, err
	}
	var there []object
	var warnings []string
	for _, o := range objects {
		if slices.ContainsFunc(live, o.names) {
			there = append(there, o)
		} else {
			warnings = append(warnings, fmt.Sprintf("%s does not exist, and state: patched does not create it", o))
		}
	}
	if len(there) == 0 {
		return module.Result{Warnings: warnings, Data: value.NewDict("result", value.NewDict())}, nil
	}
	r, err := m.present(ctx, c, there)
	r.Warnings = append(warnings, r.Warnings...)
	return r, err
}

// stages is the order of application: namespaces and definitions of kinds
// first, in a stage of their own if objects of these kinds may follow.
func stages(objects []object) [][]object {
	var first, rest []object
	defines := false
	for _, kind := range []string{"Namespace", "CustomResourceDefinition"} {
		for _, o := range objects {
			if o.kind() == kind {
				first = append(first, o)
				defines = defines || kind == "CustomResourceDefinition"
			}
		}
	}
	for _, o := range objects {
		if o.kind() != "Namespace" && o.kind() != "CustomResourceDefinition" {
			rest = append(rest, o)
		}
	}
	if !defines || len(rest) == 0 {
		return [][]object{append(first, rest...)}
	}
	return [][]object{first, rest}
}

// apply applies objects in one round trip, if the task allows it.
func (m *K8s) apply(ctx context.Context, c *module.Call, objects []object) ([]outcome, []string, error) {
	if !m.plain(objects) {
		return m.send(ctx, c, objects)
	}
	text, err := lines(objects)
	if err != nil {
		return nil, nil, err
	}
	s := m.script("k8s_apply").Set("manager", m.FieldManager).Flag("force", m.ForceConflicts)
	s.Set("verbs", strings.Join(m.verbs(objects, nil), " ")) // if any is rejected
	s.Stdin = strings.NewReader(text)
	a, err := run(ctx, c, s)
	var missing *missingError
	if c.Check && errors.As(err, &missing) {
		return m.created(objects), []string{err.Error()}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	live, err := fromJSON(a.Get("live"))
	if err != nil {
		return nil, nil, err
	}
	var done []outcome
	if whole, ok := a["all"]; ok {
		applied, err := fromJSON(whole[0])
		if err != nil {
			return nil, nil, err
		}
		if len(applied) != len(objects) {
			return nil, nil, fmt.Errorf("kubectl answers with %d objects for %d", len(applied), len(objects))
		}
		for _, o := range applied {
			done = append(done, m.evaluate(c, o, live))
		}
		return done, warnings(a["warn"]), nil
	}
	return m.singly(c, objects, live, a)
}

// notYet reports errors that an earlier task will have fixed.
func notYet(said string) bool {
	return strings.Contains(said, "no matches for kind") || absentNamespace.MatchString(said)
}

var absentNamespace = regexp.MustCompile(`namespaces "[^"]*" not found`)

func (m *K8s) created(objects []object) []outcome {
	var all []outcome
	for _, o := range objects {
		all = append(all, outcome{object: o, changed: true, method: m.method(false)})
	}
	return all
}

// method is the name in results for what was done to an object, existing or not. Most
// are applied; Ansible does so only on request.
func (m *K8s) method(there bool) string {
	switch {
	case m.Apply:
		return "apply"
	case there && m.Force:
		return "replace"
	case there:
		return "update"
	}
	return "create"
}

func (m *K8s) evaluate(c *module.Call, o object, live []object) outcome {
	for i, l := range live {
		if l.key() != o.key() {
			continue
		}
		same := !c.Check && l.text("metadata", "resourceVersion") == o.text("metadata", "resourceVersion")
		changed := !same && !value.Equal(normalized(l), normalized(o))
		return outcome{object: o, before: &live[i], changed: changed, method: m.method(true)}
	}
	return outcome{object: o, changed: true, method: m.method(false)}
}

// reason is kubectl's error for a rejected object, less its advice on conflicts, and
// without the content of a Secret.
func reason(o object, said string) string {
	said, _, conflict := strings.Cut(strings.TrimSpace(said), "\nPlease review the fields above")
	said = strings.TrimPrefix(said, "error: ")
	// Of what kubectl reads first, only why it could not: the rest is about its own flags.
	if _, why, ok := strings.Cut(said, "failed to download openapi: "); ok {
		said, _, _ = strings.Cut(why, "; if you choose to ignore these errors")
	}
	if conflict {
		said += "\nset force_conflicts to take these fields over, or remove them from the task"
	}
	if o.kind() != "Secret" {
		return said
	}
	said, _, _ = strings.Cut(said, ", error found in")
	for _, part := range []string{"data", "stringData"} {
		data, _ := o.at(part).(*value.Dict)
		for _, v := range data.All() {
			if text := value.Str(v); len(text) > 3 {
				said = strings.ReplaceAll(said, text, hidden)
			}
		}
	}
	return said
}

func warnings(texts []string) []string {
	var all []string
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Warning: "); ok {
				all = append(all, rest)
			}
		}
	}
	return all
}

func (m *K8s) wait(ctx context.Context, c *module.Call, warnings []string, all []outcome,
	single bool) (module.Result, error) {
	var first []object
	for _, o := range all {
		if o.err == nil && o.note == "" {
			first = append(first, o.object)
		}
	}
	start := time.Now()
	var err error
	if len(first) > 0 {
		var found []object
		found, err = m.until(ctx, first, func(ctx context.Context) ([]object, error) { return m.live(ctx, c, first) })
		all = after(all, found)
	}
	if m.Continue && err != nil && !lostHost(err) && ctx.Err() == nil {
		for i, o := range all {
			if s := m.state(o.object); o.err == nil && o.note == "" && !s.ready {
				all[i].err = fmt.Errorf("wait for %s: %s", o.object, s.why)
			}
		}
		err = nil
	}
	r := m.report(c, all, single)
	r.Warnings = warnings
	r.Data.Set("duration", int(time.Since(start).Seconds()))
	if err != nil {
		return fail(r, err)
	}
	return r, nil
}

// after is the outcomes with the objects as they were found later.
func after(all []outcome, found []object) []outcome {
	all = slices.Clone(all)
	for i := range all {
		for _, o := range found {
			if o.key() == all[i].object.key() {
				all[i].object = o
			}
		}
	}
	return all
}
